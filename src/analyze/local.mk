noinst_LIBRARIES += libanalyze.a
libanalyze_a_SOURCES = \
	src/analyze/analysis.c src/analyze/analysis.h \
	src/analyze/diff.c src/analyze/diff.h \
	src/analyze/job.c src/analyze/job.h \
	src/analyze/load.c \
	src/analyze/metrics.c src/analyze/metrics.def src/analyze/metrics_gpu.c \
	src/analyze/parameters.def \
	src/analyze/paths.c \
	src/analyze/private.h \
	src/analyze/rules.c src/analyze/rules.def \
	src/analyze/verdict.c
