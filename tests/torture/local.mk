# Whole sessions on a program that notices, with attachers that die or freeze. INFERSCOPE_ROUNDS=N attaches per Python (1000), QUICK=1 the short form.
noinst_PROGRAMS += tests/torture/attach_loop
tests_torture_attach_loop_SOURCES = tests/torture/attach_loop.c
tests_torture_attach_loop_LDADD = libsession.a libinject.a libunwinding.a libtrace.a libbase.a $(ZSTD_LIBS) $(ZLIB_LIBS) $(NATIVE_LIBS)
dist_noinst_SCRIPTS += tests/torture/run
EXTRA_DIST += tests/torture/target.py tests/torture/eventful.py tests/torture/sessions.py tests/torture/steps.py tests/torture/corners.py

check-torture: all
	BUILD="$(abs_top_builddir)" $(srcdir)/tests/torture/run $${QUICK:+--quick}
