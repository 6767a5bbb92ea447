# Killing the attacher, and a machine in trouble: tests/fault/run
dist_noinst_SCRIPTS += tests/fault/run
EXTRA_DIST += tests/fault/host.py tests/fault/failing.c

# Preloaded, so that no sanitizer may be in it.
noinst_DATA += tests/fault/failing.so
CLEANFILES += tests/fault/failing.so
tests/fault/failing.so: $(srcdir)/tests/fault/failing.c
	$(AM_V_CCLD)$(MKDIR_P) tests/fault && $(CC) -std=gnu11 -D_GNU_SOURCE -O2 -g $(WARN_CFLAGS) -Wno-missing-prototypes -fPIC -shared -o $@ $(srcdir)/tests/fault/failing.c -ldl

check-fault: all
	BUILD="$(abs_top_builddir)" $(srcdir)/tests/fault/run $${QUICK:+--quick}
