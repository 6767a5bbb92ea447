# The gate of `inferscope run`, compared with plain Pythons: tests/live/launch/run
noinst_PROGRAMS += tests/live/launch/launch_driver
tests_live_launch_launch_driver_SOURCES = tests/live/launch/launch_driver.c
tests_live_launch_launch_driver_LDADD = libinject.a libbase.a $(CJSON_LIBS) $(ZSTD_LIBS) $(ZLIB_LIBS)
dist_noinst_SCRIPTS += tests/live/launch/run

# Without the attacher's flags: a sanitizer must not be loaded into a target.
tests/live/launch/payload.so: $(srcdir)/tests/live/launch/payload.c
	@$(MKDIR_P) tests/live/launch
	$(AM_V_CCLD)$(CC) -std=gnu11 -D_GNU_SOURCE -O2 -g -fPIC -shared -Wl,--build-id -o $@ $(srcdir)/tests/live/launch/payload.c
noinst_DATA += tests/live/launch/payload.so
CLEANFILES += tests/live/launch/payload.so
EXTRA_DIST += tests/live/launch/payload.c
