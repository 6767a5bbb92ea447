# The Python package; contrib/python/build makes its wheel, tests/live/python/run tries it.
dist_noinst_SCRIPTS += contrib/python/build contrib/python/manylinux tests/live/python/run
EXTRA_DIST += contrib/python/pyproject.toml contrib/python/setup.py contrib/python/tests/test_inferscope.py contrib/python/tests/test_integrations.py \
	contrib/python/tests/interface.txt \
	contrib/python/src/inferscope/__init__.py contrib/python/src/inferscope/_engine.py contrib/python/src/inferscope/_enter.c contrib/python/src/inferscope/_inside.py contrib/python/src/inferscope/_library.py contrib/python/src/inferscope/_native.c contrib/python/src/inferscope/_native.pyi \
	contrib/python/src/inferscope/_scopes.c contrib/python/src/inferscope/_scopes.h \
	contrib/python/src/inferscope/_program.py contrib/python/src/inferscope/_types.py contrib/python/src/inferscope/analyzer.py contrib/python/src/inferscope/api.py contrib/python/src/inferscope/buffer.py \
	contrib/python/src/inferscope/middleware.py contrib/python/src/inferscope/profiler.py contrib/python/src/inferscope/py.typed contrib/python/src/inferscope/pytest_plugin.py \
	contrib/python/src/inferscope/reporter.py contrib/python/src/inferscope/timeline.py contrib/python/src/inferscope/collectors/__init__.py contrib/python/src/inferscope/collectors/base.py \
	contrib/python/src/inferscope/collectors/cpu.py contrib/python/src/inferscope/collectors/gpu.py docs/python.md
