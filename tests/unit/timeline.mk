if HAVE_CRITERION
check_PROGRAMS += tests/unit/test_timeline
TESTS += tests/unit/test_timeline
endif
tests_unit_test_timeline_SOURCES = \
	tests/unit/timeline_calls.c \
	tests/unit/timeline_gpu.c \
	tests/unit/timeline_help.c tests/unit/timeline_help.h \
	tests/unit/timeline_intervals.c \
	tests/unit/timeline_limits.c \
	tests/unit/timeline_counters.c tests/unit/timeline_memory.c tests/unit/timeline_natives.c \
	tests/unit/timeline_percentile.c \
	tests/unit/timeline_syscalls.c \
	tests/unit/timeline_spread.c \
	tests/unit/timeline_tasks.c \
	tests/unit/timeline_threads.c \
	tests/unit/timeline_turns.c \
	tests/unit/timeline_wall.c \
	tests/unit/timeline_windows.c
tests_unit_test_timeline_CFLAGS = $(UNIT_CFLAGS)
tests_unit_test_timeline_LDADD = libtimeline.a libtrace.a libbase.a $(CRITERION_LIBS) $(ZSTD_LIBS) $(ZLIB_LIBS) -lm
