if HAVE_CRITERION
check_PROGRAMS += tests/unit/test_trace
TESTS += tests/unit/test_trace
endif
tests_unit_test_trace_SOURCES = \
	tests/unit/trace_events.c \
	tests/unit/trace_file.c \
	tests/unit/trace_help.c tests/unit/trace_help.h \
	tests/unit/trace_text.c
tests_unit_test_trace_CFLAGS = $(UNIT_CFLAGS)
tests_unit_test_trace_LDADD = libtrace.a libbase.a $(CRITERION_LIBS) $(ZSTD_LIBS) $(ZLIB_LIBS)
