# Native stacks of stopped processes, compared with gdb's: tests/live/walk/run
noinst_PROGRAMS += tests/live/walk/walk_driver
tests_live_walk_walk_driver_SOURCES = tests/live/walk/walk_driver.c
tests_live_walk_walk_driver_LDADD = libunwinding.a libinject.a libbase.a $(CJSON_LIBS) $(ZSTD_LIBS) $(ZLIB_LIBS) $(NATIVE_LIBS)
dist_noinst_SCRIPTS += tests/live/walk/run
EXTRA_DIST += tests/live/walk/gdb_stacks.py tests/live/walk/library.c tests/live/walk/native.c tests/live/walk/program.py
check_PROGRAMS += tests/fuzz/replay_walk
tests_fuzz_replay_walk_SOURCES = tests/fuzz/replay.c tests/fuzz/fuzz_walk.c
tests_fuzz_replay_walk_LDADD = libunwinding.a libbase.a $(ZSTD_LIBS) $(ZLIB_LIBS) $(NATIVE_LIBS) $(CJSON_LIBS)
