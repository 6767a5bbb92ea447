if HAVE_CRITERION
check_PROGRAMS += tests/unit/test_perf
TESTS += tests/unit/test_perf
endif
tests_unit_test_perf_SOURCES = tests/unit/test_perf.c tests/unit/perf_ring.c
tests_unit_test_perf_CFLAGS = $(UNIT_CFLAGS)
tests_unit_test_perf_LDADD = libunwinding.a libbase.a $(CRITERION_LIBS) $(ZSTD_LIBS) $(ZLIB_LIBS) $(NATIVE_LIBS) -lpthread
