noinst_LIBRARIES += libanalyze.a
libanalyze_a_SOURCES = \
	src/analyze/align.c src/analyze/align.h \
	src/analyze/analysis.c src/analyze/analysis.h \
	src/analyze/condition.c \
	src/analyze/diff.c src/analyze/diff.h src/analyze/diff_tree.c src/analyze/diff_tree.h \
	src/analyze/job.c src/analyze/job.h \
	src/analyze/evidence.c src/analyze/expression.h src/analyze/expression_name.c src/analyze/expression_parse.c src/analyze/expression_parser.h src/analyze/expression_token.c src/analyze/expression_token.h src/analyze/expression_value.c \
	src/analyze/judge.c \
	src/analyze/load.c \
	src/analyze/metrics.c src/analyze/metrics.def src/analyze/metrics_around.c src/analyze/metrics_gpu.c src/analyze/metrics_memory.c src/analyze/metrics_operations.c src/analyze/metrics_syscalls.c src/analyze/syscalls.h \
	src/analyze/needs.c \
	src/analyze/parameters.def \
	src/analyze/paths.c \
	src/analyze/places.c \
	src/analyze/private.h \
	src/analyze/rule.h src/analyze/rule_names.c src/analyze/rules.def src/analyze/rules_gpu.def src/analyze/rules_explain.c src/analyze/rules_file.c src/analyze/rules_values.c src/analyze/rules_values.h \
	src/analyze/request_path.c src/analyze/request_path.h \
	src/analyze/ruleset.c \
	src/analyze/sets.c src/analyze/sets.h \
	src/analyze/verdict.c \
	src/analyze/yaml_parse.c src/analyze/yaml_tree.c src/analyze/yaml_tree.h
