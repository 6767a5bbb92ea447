if HAVE_CRITERION
check_PROGRAMS += tests/unit/test_session
TESTS += tests/unit/test_session
endif
tests_unit_test_session_SOURCES = tests/unit/test_session_drain.c tests/unit/test_session_spool.c tests/unit/test_session_observe.c
tests_unit_test_session_CFLAGS = $(UNIT_CFLAGS)
tests_unit_test_session_LDADD = libsession.a libtrace.a libbase.a $(CRITERION_LIBS) $(ZSTD_LIBS) $(ZLIB_LIBS)
