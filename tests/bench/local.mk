# Benches are built by name and run by hand: `make tests/bench/bench_timeline && tests/bench/bench_timeline`.
EXTRA_PROGRAMS = tests/bench/bench_timeline
tests_bench_bench_timeline_SOURCES = tests/bench/bench_timeline.c
tests_bench_bench_timeline_LDADD = libanalyze.a libtimeline.a libtrace.a libbase.a $(ZSTD_LIBS) $(ZLIB_LIBS) -lm
