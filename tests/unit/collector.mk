TESTS += tests/unit/cpython_layouts.test
dist_noinst_SCRIPTS += tests/unit/cpython_layouts.test
EXTRA_DIST += tests/unit/cpython_layouts.c
