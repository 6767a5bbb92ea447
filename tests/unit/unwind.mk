if HAVE_CRITERION
check_PROGRAMS += tests/unit/test_unwind
TESTS += tests/unit/test_unwind
endif
tests_unit_test_unwind_SOURCES = tests/unit/test_unwind.c \
	tests/unit/unwind_fake.c tests/unit/unwind_fake.h \
	tests/unit/unwind_frames.c \
	tests/unit/unwind_join.c \
	tests/unit/unwind_jitnames.c \
	tests/unit/unwind_modules.c \
	tests/unit/unwind_moment.c \
	tests/unit/unwind_names.c \
	tests/unit/unwind_symfile.c \
	tests/unit/unwind_symtab.c \
	tests/unit/unwind_tasks.c \
	tests/unit/unwind_walk.c
tests_unit_test_unwind_CFLAGS = $(UNIT_CFLAGS)
tests_unit_test_unwind_LDADD = libunwinding.a libbase.a $(CRITERION_LIBS) $(ZSTD_LIBS) $(ZLIB_LIBS) $(NATIVE_LIBS) $(CJSON_LIBS)
include tests/live/pystack/pystack.mk
include tests/live/names/names.mk
include tests/live/dump/dump.mk
include tests/live/tasks/tasks.mk
check_PROGRAMS += tests/fuzz/replay_pystack
tests_fuzz_replay_pystack_SOURCES = tests/fuzz/replay.c tests/fuzz/fuzz_pystack.c
tests_fuzz_replay_pystack_LDADD = libunwinding.a libbase.a $(ZSTD_LIBS) $(ZLIB_LIBS) $(NATIVE_LIBS)
include tests/live/walk/walk.mk
