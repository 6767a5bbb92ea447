if HAVE_CRITERION
check_PROGRAMS += tests/unit/test_profiler
TESTS += tests/unit/test_profiler
endif
tests_unit_test_profiler_SOURCES = tests/unit/test_profiler.c src/profiler/profiler.h src/profiler/profiler.c src/profiler/child.h src/profiler/child.c
tests_unit_test_profiler_CFLAGS = $(UNIT_CFLAGS) -DCHILD_END_MS=1500
tests_unit_test_profiler_LDADD = $(CRITERION_LIBS)
TESTS += tests/unit/profiler_symbols.test
dist_noinst_SCRIPTS += tests/unit/profiler_symbols.test
