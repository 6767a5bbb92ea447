# The Python package; contrib/python/build makes its wheel, tests/live/python/run tries it.
dist_noinst_SCRIPTS += contrib/python/build contrib/python/floor contrib/python/manylinux tests/live/python/run tests/unit/wheel_symbols.test
TESTS += tests/unit/wheel_symbols.test
EXTRA_DIST += contrib/python/glibc_2_28.c contrib/python/pyproject.toml contrib/python/setup.py contrib/python/tests/common.py contrib/python/tests/test_inside.py \
	contrib/python/tests/test_integrations.py contrib/python/tests/test_outside.py contrib/python/tests/test_pieces.py contrib/python/tests/test_scopes.py \
	contrib/python/tests/interface.txt \
	contrib/python/src/inferscope/__init__.py contrib/python/src/inferscope/_around.py contrib/python/src/inferscope/_engine.py contrib/python/src/inferscope/_enter.c contrib/python/src/inferscope/_inside.py contrib/python/src/inferscope/_library.py contrib/python/src/inferscope/_native.c contrib/python/src/inferscope/_native.pyi \
	contrib/python/src/inferscope/_metadata.c contrib/python/src/inferscope/_scopes.c contrib/python/src/inferscope/_scopes.h \
	contrib/python/src/inferscope/_program.py contrib/python/src/inferscope/_types.py contrib/python/src/inferscope/analyzer.py contrib/python/src/inferscope/api.py contrib/python/src/inferscope/buffer.py \
	contrib/python/src/inferscope/middleware.py contrib/python/src/inferscope/profiler.py contrib/python/src/inferscope/py.typed contrib/python/src/inferscope/pytest_plugin.py \
	contrib/python/src/inferscope/reporter.py contrib/python/src/inferscope/timeline.py contrib/python/src/inferscope/collectors/__init__.py contrib/python/src/inferscope/collectors/base.py \
	contrib/python/src/inferscope/collectors/cpu.py contrib/python/src/inferscope/collectors/gpu.py docs/python.md

# The wheel for glibc 2.28 and later, and that very file in every Python and root here. Root and network.
check-wheel:
	$(srcdir)/contrib/python/manylinux $(abs_top_builddir)/wheel
	BUILD="$(abs_top_builddir)" WHEEL="$$(ls $(abs_top_builddir)/wheel/inferscope-*manylinux_2_28_x86_64.whl)" $(srcdir)/tests/live/python/run
.PHONY: check-wheel
