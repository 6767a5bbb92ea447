if HAVE_CRITERION
check_PROGRAMS += tests/unit/test_analyze
TESTS += tests/unit/test_analyze
endif
EXTRA_DIST += tests/golden/analyze tests/golden/rules docs/metrics.md docs/rules.md
tests_unit_test_analyze_SOURCES = \
	tests/unit/analyze_golden.c tests/unit/analyze_golden.h \
	tests/unit/analyze_help.c tests/unit/analyze_help.h \
	tests/unit/analyze_expression.c \
	tests/unit/analyze_job.c \
	tests/unit/analyze_requests.c \
	tests/unit/analyze_paths.c \
	tests/unit/analyze_rules.c \
	tests/unit/analyze_rules_file.c \
	tests/unit/analyze_verdict.c \
	tests/unit/timeline_help.c
tests_unit_test_analyze_CFLAGS = $(UNIT_CFLAGS) -DSOURCE_FOLDER='"$(abs_top_srcdir)"'
tests_unit_test_analyze_LDADD = libanalyze.a libtimeline.a libtrace.a libbase.a $(CRITERION_LIBS) $(YAML_LIBS) $(PCRE2_LIBS) $(ZSTD_LIBS) $(ZLIB_LIBS) -lm
