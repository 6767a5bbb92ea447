# The gate of `inferscope run`, compared with plain Pythons: tests/live/launch/run
noinst_PROGRAMS += tests/live/launch/launch_driver
tests_live_launch_launch_driver_SOURCES = tests/live/launch/launch_driver.c
tests_live_launch_launch_driver_LDADD = libinject.a libbase.a $(CJSON_LIBS) $(ZSTD_LIBS) $(ZLIB_LIBS)
dist_noinst_SCRIPTS += tests/live/launch/run
