TESTS += tests/unit/cpython_layouts
dist_noinst_SCRIPTS += tests/unit/cpython_layouts
EXTRA_DIST += tests/unit/cpython_layouts.c
