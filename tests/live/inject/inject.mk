# Entering a process, on targets that notice: a driver, a payload, and programs that check themselves. tests/live/inject/run
inject_live = tests/live/inject
noinst_PROGRAMS += tests/live/inject/enter
tests_live_inject_enter_SOURCES = tests/live/inject/enter.c tests/live/inject/payload.h
tests_live_inject_enter_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests/live/inject
tests_live_inject_enter_LDADD = libinject.a libbase.a

# Not through automake: without libtool it knows no shared objects, and no sanitizer may come into a target.
inject_tool = $(MKDIR_P) $(inject_live) && $(CC) -std=gnu11 -D_GNU_SOURCE -O2 -g $(WARN_CFLAGS) -Wno-missing-prototypes -o $@
inject_shared = -fPIC -shared -Wl,--build-id
inject_tools = $(inject_live)/payload.so $(inject_live)/payload_missing.so $(inject_live)/storm.so $(inject_live)/pretend.so \
	$(inject_live)/single $(inject_live)/registers $(inject_live)/rseq $(inject_live)/blocked $(inject_live)/blocked.so
$(inject_live)/payload.so: $(srcdir)/$(inject_live)/payload.c $(srcdir)/$(inject_live)/payload.h
	$(AM_V_CCLD)$(inject_tool) $(inject_shared) $(srcdir)/$(inject_live)/payload.c
$(inject_live)/payload_missing.so: $(srcdir)/$(inject_live)/payload.c $(srcdir)/$(inject_live)/payload.h
	$(AM_V_CCLD)$(inject_tool) $(inject_shared) -DPAYLOAD_MISSING $(srcdir)/$(inject_live)/payload.c
$(inject_live)/storm.so: $(srcdir)/$(inject_live)/storm.c
	$(AM_V_CCLD)$(inject_tool) $(inject_shared) $(srcdir)/$(inject_live)/storm.c -ldl
$(inject_live)/pretend.so: $(srcdir)/$(inject_live)/pretend.c
	$(AM_V_CCLD)$(inject_tool) $(inject_shared) $(srcdir)/$(inject_live)/pretend.c
$(inject_live)/single: $(srcdir)/$(inject_live)/single.c
	$(AM_V_CCLD)$(inject_tool) $(srcdir)/$(inject_live)/single.c
$(inject_live)/registers: $(srcdir)/$(inject_live)/registers.c
	$(AM_V_CCLD)$(inject_tool) $(srcdir)/$(inject_live)/registers.c
$(inject_live)/rseq: $(srcdir)/$(inject_live)/rseq.c
	$(AM_V_CCLD)$(inject_tool) $(srcdir)/$(inject_live)/rseq.c
$(inject_live)/blocked: $(srcdir)/$(inject_live)/blocked.c
	$(AM_V_CCLD)$(inject_tool) $(srcdir)/$(inject_live)/blocked.c
$(inject_live)/blocked.so: $(srcdir)/$(inject_live)/blocked.c
	$(AM_V_CCLD)$(inject_tool) $(inject_shared) $(srcdir)/$(inject_live)/blocked.c
noinst_DATA = $(inject_tools)
CLEANFILES += $(inject_tools)
dist_noinst_SCRIPTS += tests/live/inject/run
EXTRA_DIST += tests/live/inject/entering.py tests/live/inject/eintr.py tests/live/inject/refusals.py tests/live/inject/targets.py tests/live/inject/payload.c tests/live/inject/storm.c \
	tests/live/inject/pretend.c tests/live/inject/single.c tests/live/inject/registers.c tests/live/inject/rseq.c tests/live/inject/blocked.c
