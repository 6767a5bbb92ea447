# Entering a process, on targets that notice: a driver, a payload, and programs that check themselves.
noinst_PROGRAMS += tests/live/inject/enter
tests_live_inject_enter_SOURCES = tests/live/inject/enter.c tests/live/inject/payload.h
tests_live_inject_enter_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests/live/inject
tests_live_inject_enter_LDADD = libinject.a libbase.a

# Not through automake: without libtool it knows no shared objects, and a sanitizer must not be loaded into a target.
inject_payload_command = $(CC) -std=gnu11 -O2 -g -fPIC -shared -Wl,--build-id -I$(srcdir)/tests/live/inject
tests/live/inject/payload.so: $(srcdir)/tests/live/inject/payload.c $(srcdir)/tests/live/inject/payload.h
	@$(MKDIR_P) tests/live/inject
	$(AM_V_CCLD)$(inject_payload_command) -o $@ $(srcdir)/tests/live/inject/payload.c
tests/live/inject/payload_missing.so: $(srcdir)/tests/live/inject/payload.c $(srcdir)/tests/live/inject/payload.h
	@$(MKDIR_P) tests/live/inject
	$(AM_V_CCLD)$(inject_payload_command) -DPAYLOAD_MISSING -o $@ $(srcdir)/tests/live/inject/payload.c
noinst_DATA = tests/live/inject/payload.so tests/live/inject/payload_missing.so
CLEANFILES += tests/live/inject/payload.so tests/live/inject/payload_missing.so
EXTRA_DIST += tests/live/inject/payload.c
