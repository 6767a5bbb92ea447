if HAVE_CRITERION
check_PROGRAMS += tests/unit/test_hold
TESTS += tests/unit/test_hold
endif
tests_unit_test_hold_SOURCES = tests/unit/hold_process.c tests/unit/hold_subject.c tests/unit/hold_subject.h tests/unit/hold_waits.c tests/unit/test_hold.c
tests_unit_test_hold_CFLAGS = $(UNIT_CFLAGS)
tests_unit_test_hold_LDADD = libinject.a libbase.a $(CRITERION_LIBS) -lpthread
include tests/live/hold/hold.mk
