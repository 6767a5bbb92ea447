# Traces with planted causes: `tests/simulator/run` judges the verdict on hundreds of them, `make check` on one of each.
TESTS += tests/simulator/simulator.test
dist_noinst_SCRIPTS += tests/simulator/run tests/simulator/simulator.test
EXTRA_DIST += tests/simulator/causes.py tests/simulator/engine.py
