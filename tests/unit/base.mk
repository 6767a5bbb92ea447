if HAVE_CRITERION
check_PROGRAMS += tests/unit/test_base
TESTS += tests/unit/test_base
endif
tests_unit_test_base_SOURCES = \
	tests/unit/base_clock.c \
	tests/unit/base_error.c \
	tests/unit/base_memory.c \
	tests/unit/base_pattern.c \
	tests/unit/base_procfs.c \
	tests/unit/base_sink.c tests/unit/folder.h \
	tests/unit/base_text.c
tests_unit_test_base_CFLAGS = $(UNIT_CFLAGS)
tests_unit_test_base_LDADD = libbase.a $(CRITERION_LIBS) $(PCRE2_LIBS)
