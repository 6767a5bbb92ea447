# Killing the attacher: tests/fault/run
dist_noinst_SCRIPTS += tests/fault/run

check-fault: all
	BUILD="$(abs_top_builddir)" $(srcdir)/tests/fault/run $${QUICK:+--quick}
.PHONY: check-fault
