/* What a timeline means: metrics, verdict, findings. Reads the timeline and nothing else; never prints. */
#ifndef INFERSCOPE_ANALYZE_ANALYSIS_H
#define INFERSCOPE_ANALYZE_ANALYSIS_H

#include "base/text.h"
#include "timeline/timeline.h"

enum { REQUESTS_ENOUGH = 30 }; /* fewer lower the confidence */

enum verdict_class { VERDICT_UNKNOWN = 0, VERDICT_CPU_BOUND, VERDICT_GPU_BOUND, VERDICT_MEMORY_BOUND, VERDICT_BALANCED };

/* Where the window of the busiest demand went, in per cent; the parts add to 100 (rounded to 0.1 so that they still do). */
struct breakdown {
	double python_pct;  /* running Python */
	double native_pct;  /* running native code */
	double gil_wait_pct, lock_wait_pct, io_wait_pct, gpu_pct, transfer_pct, runnable_pct, sleep_pct, idle_pct;
};

struct verdict {
	enum verdict_class class_;
	const char *reason;    /* no_demand, no_host_data, no_gpu, too_short, no_data, one_core_saturated, lock_waits, … : stable words, docs/metrics */
	const char *sentence;  /* one sentence for people */
	double confidence;     /* 0–1; <= 0.6 without GPU data */
	struct breakdown breakdown;
	const char *gpu;       /* why there are no GPU data, or "" */
};

struct metric {
	const char *name;  /* "cpu.busy_cores" */
	const char *unit;  /* ns, count, ratio, pct, bytes, per_second */
	double value;      /* NAN = unknown: `why` says why */
	const char *why;
};
/* Every metric there is, with its definition: `analyze --list-metrics`, docs/metrics. */
struct metric_definition { const char *name, *unit, *definition; };
const struct metric_definition *metric_definitions(size_t *count);

enum severity { SEVERITY_INFO = 0, SEVERITY_LOW, SEVERITY_MEDIUM, SEVERITY_HIGH };

struct evidence { const char *metric; double value; const char *unit; double threshold; const char *op; };
/* A moment of the capture to look at. */
struct example { uint64_t at_ns, duration_ns; const char *what; };
struct location { const char *file; uint32_t line; const char *function; enum function_kind kind; };

struct finding_report {
	const char *id;        /* rule id + hash of the primary location */
	const char *rule;      /* "py.import_in_request" */
	uint32_t rule_version;
	const char *title;
	enum severity severity;
	double confidence;
	enum verdict_class class_;
	uint64_t recoverable_ns; /* estimate */
	double recoverable_pct;  /* of the capture */
	double throughput_pct;   /* at most so much more could be done in the same time if the cause vanished; an upper bound */
	const char *scope;       /* of rules about requests, else "" */
	uint8_t general;         /* above 0: it measures an effect; others name causes */
	size_t evidence_count, location_count, example_count;
	const struct evidence *evidence;
	const struct location *locations;
	const struct example *examples; /* longest first */
	const char *suggestion;
};

struct not_evaluated { const char *rule, *reason; };

/* Rules: those that are built in, changed and added to by a rules file (docs/rules.md). Outlives the analyses made with it. */
struct ruleset;
struct analysis;
int ruleset_new(struct ruleset **out, struct error *err); /* the built-in ones */
int ruleset_read(const char *path, struct ruleset **out, struct error *err);
int ruleset_parse(const char *text, size_t length, const char *name, struct ruleset **out, struct error *err); /* a file's text */
/* One rule, "condition": its finding holds where TEXT does, and has as evidence what was compared. ERR_RULES says what is wrong with it, and where. */
int ruleset_condition(const char *text, struct ruleset **out, struct error *err);
void ruleset_free(struct ruleset *rules);
/* Whether NAME is a threshold of the verdict or of a rule; else *suggestion is the closest one, or NULL. */
bool ruleset_has_parameter(const struct ruleset *rules, const char *name, const char **suggestion);
bool ruleset_has_rule(const struct ruleset *rules, const char *id, const char **suggestion);
/* "3 rules of its own, 1 threshold set, 2 rules turned off" */
void ruleset_describe(const struct ruleset *rules, char *out, size_t size);
/* What a rule means, and with ANALYSIS, each value on the way to its judgement. ERR_RULES when there is no such rule. */
int ruleset_explain(const struct ruleset *rules, const char *id, const struct analysis *analysis, struct text *out, struct error *err);

/* The built-in rules, for tests and documentation. */
struct rule_info { const char *id; uint32_t version; const char *title, *definition; double threshold; const char *threshold_name; };
size_t rule_infos(struct rule_info *out, size_t limit); /* returns how many there are */

struct analysis {
	struct verdict verdict;
	size_t metric_count, finding_count, not_evaluated_count;
	const struct metric *metrics;          /* sorted by name */
	const struct finding_report *findings; /* sorted: severity, then recoverable (general ones count less), then id */
	const struct not_evaluated *not_evaluated; /* sorted by rule */
	struct analysis_private *private_;
};

/* Named parameters ("gpu.idle_pct_threshold" …) as given by the user; NULL and 0 for the defaults. */
struct parameter { const char *name; double value; };

int analysis_build(const struct timeline *timeline, const struct parameter *parameters, size_t parameter_count, struct analysis **out, struct error *err);
/* The same with RULES (NULL = the built-in ones). */
int analysis_build_with(const struct timeline *timeline, const struct ruleset *rules, const struct parameter *parameters, size_t parameter_count, struct analysis **out, struct error *err);
void analysis_free(struct analysis *analysis);
double analysis_metric(const struct analysis *analysis, const char *name); /* NAN when unknown */
const char *verdict_name(enum verdict_class class_);   /* "cpu_bound" */
const char *severity_name(enum severity severity);
const char *precision_name(enum precision precision);

#endif
