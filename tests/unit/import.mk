if HAVE_CRITERION
check_PROGRAMS += tests/unit/test_import
TESTS += tests/unit/test_import
endif
tests_unit_test_import_SOURCES = tests/unit/test_import.c
tests_unit_test_import_CFLAGS = $(UNIT_CFLAGS)
tests_unit_test_import_LDADD = libimport.a libtrace.a libbase.a $(CRITERION_LIBS) $(ZSTD_LIBS) $(ZLIB_LIBS) $(SQLITE_LIBS)

check_PROGRAMS += tests/fuzz/replay_import
tests_fuzz_replay_import_SOURCES = tests/fuzz/replay.c tests/fuzz/fuzz_import.c
tests_fuzz_replay_import_LDADD = libimport.a libtrace.a libbase.a $(ZSTD_LIBS) $(ZLIB_LIBS) $(SQLITE_LIBS)

check_PROGRAMS += tests/fuzz/replay_nsys
tests_fuzz_replay_nsys_SOURCES = tests/fuzz/replay.c tests/fuzz/fuzz_nsys.c
tests_fuzz_replay_nsys_LDADD = libimport.a libtrace.a libbase.a $(ZSTD_LIBS) $(ZLIB_LIBS) $(SQLITE_LIBS)
