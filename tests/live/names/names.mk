# Names in real processes, compared with nm and with what is known: tests/live/names/run
noinst_PROGRAMS += tests/live/names/names_driver
tests_live_names_names_driver_SOURCES = tests/live/names/names_driver.c
tests_live_names_names_driver_LDADD = libunwinding.a libbase.a $(ZSTD_LIBS) $(ZLIB_LIBS) $(NATIVE_LIBS)
dist_noinst_SCRIPTS += tests/live/names/run
EXTRA_DIST += tests/live/names/program.py
