if HAVE_CRITERION
check_PROGRAMS += tests/unit/test_launch
TESTS += tests/unit/test_launch
endif
tests_unit_test_launch_SOURCES = tests/unit/test_launch.c
tests_unit_test_launch_CFLAGS = $(UNIT_CFLAGS)
tests_unit_test_launch_LDADD = libinject.a libbase.a $(CRITERION_LIBS) $(ZSTD_LIBS) $(ZLIB_LIBS) $(CJSON_LIBS)
include tests/live/launch/launch.mk
