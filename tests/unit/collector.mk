TESTS += tests/unit/cpython_layouts.test tests/unit/collector_symbols.test
dist_noinst_SCRIPTS += tests/unit/cpython_layouts.test tests/unit/collector_symbols.test
EXTRA_DIST += tests/unit/cpython_layouts.c
if HAVE_CRITERION
check_PROGRAMS += tests/unit/test_collector
TESTS += tests/unit/test_collector
endif
tests_unit_test_collector_SOURCES = tests/unit/collector_guest.c tests/unit/collector_lane.c tests/unit/collector_sampled.c tests/unit/collector_spending.c tests/unit/collector_skip.c tests/unit/collector_text.c \
	$(libinferscope_collector_so_SOURCES)
tests_unit_test_collector_CPPFLAGS = $(AM_CPPFLAGS) -DCOLLECTOR_PLAIN_LIBC
tests_unit_test_collector_CFLAGS = $(UNIT_CFLAGS)
tests_unit_test_collector_LDADD = $(CRITERION_LIBS) -lm

# Under ThreadSanitizer, which takes a build of its own: with other sanitizers, as in CI, or by itself.
dist_noinst_SCRIPTS += tests/unit/lanes_threads.test
EXTRA_DIST += tests/unit/lanes_threads.c
if SANITIZERS
TESTS += tests/unit/lanes_threads.test
endif
check-threads:
	SRCDIR="$(abs_top_srcdir)" CC="$(CC)" $(srcdir)/tests/unit/lanes_threads.test

# What an event costs beside cProfile; wants a quiet machine.
dist_noinst_SCRIPTS += tests/hot/run
EXTRA_DIST += tests/hot/calls.py
check-hot: libinferscope-collector.so
	BUILD="$(abs_top_builddir)" $(srcdir)/tests/hot/run
