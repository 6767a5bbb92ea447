# Benches are built by name and run by hand: `make tests/bench/bench_timeline && tests/bench/bench_timeline`.
EXTRA_PROGRAMS = tests/bench/bench_timeline tests/bench/bench_sampling tests/bench/bench_lanes
tests_bench_bench_timeline_SOURCES = tests/bench/bench_timeline.c
tests_bench_bench_timeline_LDADD = libanalyze.a libtimeline.a libtrace.a libbase.a $(ZSTD_LIBS) $(ZLIB_LIBS) -lm
tests_bench_bench_sampling_SOURCES = tests/bench/bench_sampling.c
tests_bench_bench_sampling_LDADD = libsession.a libinject.a libunwinding.a libtrace.a libbase.a $(ZSTD_LIBS) $(ZLIB_LIBS) $(NATIVE_LIBS) -lpthread -lm
tests_bench_bench_lanes_SOURCES = tests/bench/bench_lanes.c $(libinferscope_collector_so_SOURCES)
tests_bench_bench_lanes_CPPFLAGS = $(AM_CPPFLAGS) -DCOLLECTOR_PLAIN_LIBC
tests_bench_bench_lanes_LDADD = libsession.a libinject.a libunwinding.a libtrace.a libbase.a $(ZSTD_LIBS) $(ZLIB_LIBS) $(NATIVE_LIBS) -lpthread -lm
dist_noinst_SCRIPTS += tests/bench/chrome tests/bench/sampling.py tests/bench/symbols

EXTRA_DIST += tests/bench/all tests/bench/attacher tests/bench/counted.py tests/bench/instructions tests/bench/overhead tests/bench/peers tests/bench/scopes tests/bench/worker.py tests/bench/holds tests/bench/gaps.c

# By hand, on a machine at rest: about 40 minutes. BENCH_ARGS: see tests/bench/all --help.
bench: all tests/bench/bench_lanes tests/bench/bench_timeline
	BUILD=$(abs_top_builddir) $(srcdir)/tests/bench/all $(BENCH_ARGS)

# What the target's threads lose, beside py-spy: about 3 minutes. BENCH_ARGS: see tests/bench/holds --help.
bench-holds: all
	BUILD=$(abs_top_builddir) $(srcdir)/tests/bench/holds $(BENCH_ARGS)
