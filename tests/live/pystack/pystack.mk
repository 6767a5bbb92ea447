# Stacks read from outside, compared with what the program says of itself: tests/live/pystack/run
noinst_PROGRAMS += tests/live/pystack/pystack_driver
tests_live_pystack_pystack_driver_SOURCES = tests/live/pystack/pystack_driver.c
tests_live_pystack_pystack_driver_LDADD = libunwinding.a libinject.a libbase.a $(CJSON_LIBS) $(ZSTD_LIBS) $(ZLIB_LIBS) $(NATIVE_LIBS)
dist_noinst_SCRIPTS += tests/live/pystack/run
EXTRA_DIST += tests/live/pystack/program.py tests/live/pystack/busy.py tests/live/pystack/spin.py
