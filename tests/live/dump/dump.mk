# `inferscope dump` on real processes: tests/live/dump/run
dist_noinst_SCRIPTS += tests/live/dump/run
EXTRA_DIST += tests/live/dump/program.py tests/live/dump/states.py
EXTRA_DIST += tests/live/dump/busy.py tests/live/dump/tasks.py
noinst_PROGRAMS += tests/live/dump/join_driver
tests_live_dump_join_driver_SOURCES = tests/live/dump/join_driver.c
tests_live_dump_join_driver_LDADD = libsession.a libinject.a libunwinding.a libtrace.a libbase.a $(CJSON_LIBS) $(ZSTD_LIBS) $(ZLIB_LIBS) $(NATIVE_LIBS)
