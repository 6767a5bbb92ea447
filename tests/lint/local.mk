# Habits that a script can hold: which layer includes which, headers that compile alone, tables without doubles, docs that are current.
LINTS = \
	tests/lint/commands.test \
	tests/lint/debian.test \
	tests/lint/docs.test \
	tests/lint/headers.test \
	tests/lint/layers.test \
	tests/lint/paths.test \
	tests/lint/pins.test \
	tests/lint/tables.test \
	tests/lint/words.test
TESTS += $(LINTS)
dist_noinst_SCRIPTS += $(LINTS) tests/lint/distributed.test tests/lint/runners.test
if ENTERING_TESTS
TESTS += tests/lint/distributed.test tests/lint/runners.test
endif

# What goes into the tarball, for distributed.test.
check_DATA = tests/lint/distributed.txt
CLEANFILES += tests/lint/distributed.txt
tests/lint/distributed.txt: Makefile
	$(AM_V_GEN)$(MKDIR_P) tests/lint && printf '%s\n' $(DISTFILES) | sed 's|^$(srcdir)/||; s|^$(top_srcdir)/||' >$@
