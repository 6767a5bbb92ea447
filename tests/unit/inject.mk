if HAVE_CRITERION
check_PROGRAMS += tests/unit/test_inject
TESTS += tests/unit/test_inject
endif
tests_unit_test_inject_SOURCES = tests/unit/test_inject.c tests/unit/inject_aarch64.c tests/unit/inject_code.c tests/unit/inject_refusal.c
tests_unit_test_inject_CFLAGS = $(UNIT_CFLAGS)
tests_unit_test_inject_LDADD = libinject.a libbase.a $(CRITERION_LIBS)
include tests/live/inject/inject.mk
include tests/fault/fault.mk
