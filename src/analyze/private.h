/* What the parts of the analysis share. Nobody outside src/analyze includes it. */
#ifndef INFERSCOPE_ANALYZE_PRIVATE_H
#define INFERSCOPE_ANALYZE_PRIVATE_H

#include <math.h>

#include "analyze/analysis.h"
#include "base/arena.h"

enum metric_index {
#define METRIC(id, name, unit, definition) METRIC_##id,
#include "analyze/metrics.def"
#undef METRIC
	METRIC_COUNT
};

enum parameter_index {
#define PARAMETER(id, name, value, meaning) PARAMETER_##id,
#include "analyze/parameters.def"
#undef PARAMETER
	PARAMETER_COUNT
};

/* Sums over slots and threads that metrics, verdict and rules all start from. Times in ns. */
struct load {
	double state_ns[THREAD_STATES];  /* of all threads */
	double share_ns[THREAD_STATES];  /* of the wall: each slot's time shared among what its threads with something to do did */
	double demand_ns;                /* wall time with something to do; all of it where SEEN is not set */
	double wanted_ns;                /* thread time with something to do */
	double cpu_ns, busiest_ns;       /* of all threads; of the busiest */
	double wanted_cores;             /* threads on a CPU or waiting for one, on average */
	uint32_t busiest;                /* thread, or UINT32_MAX */
	uint64_t voluntary, involuntary;
	uint32_t threads, active, python, unhooked; /* InferScope's own not among them */
	bool seen;                       /* something is known of what the threads did, also of the one that asks devices for most: else nobody knows whether there was anything to do */
	bool read;                       /* the kernel's clocks of at least one thread were read */
};

struct analysis_private {
	struct analysis analysis;
	struct arena arena;
	bool failed; /* out of memory */
	const struct timeline *timeline;
	struct load load;
	const struct ruleset *rules;
	struct ruleset *own_rules; /* where nobody gave any */
	double *parameters;        /* by index in the rules' list: the verdict's first */
	struct metric metrics[METRIC_COUNT];
	const struct device *device; /* the busiest, or NULL */
	struct walk *walk;           /* of paths.c */
};

/* load.c */
void load_build(struct analysis_private *p);

/* metrics.c, metrics_gpu.c: one function for each row; *WHY is set where the result is NAN. */
typedef double (*metric_function)(const struct analysis_private *p, const char **why);
#define METRIC(id, name, unit, definition) double metric_##id(const struct analysis_private *p, const char **why);
#include "analyze/metrics.def"
#undef METRIC
double metric_unknown(const char **why, const char *reason); /* NAN */
double metric_pct(double part, double whole, const char **why);
double gpu_demand(const struct analysis_private *p); /* ns; only where there is a device */
void metrics_build(struct analysis_private *p);
static inline double metric_value(const struct analysis_private *p, enum metric_index index) { return p->metrics[index].value; }
const char *metric_name(enum metric_index index);
const char *metric_unit(enum metric_index index);

/* verdict.c */
void verdict_build(struct analysis_private *p);

/* judge.c */
void rules_build(struct analysis_private *p);

/* paths.c: questions about functions and their place in the tree. */
typedef bool (*function_test)(const struct function *function);
bool function_is_logging(const struct function *function);
bool function_is_import(const struct function *function);     /* the import machinery, or a module's body; inclusive_time() leaves out that of a script */
bool function_is_tokenizer(const struct function *function);
struct memory_site;
bool memory_site_grows(const struct memory_site *site); /* what it allocated stays, and more and more of it */
bool function_is_collector(const struct function *function);     /* gc.collect */
bool function_is_loop_callback(const struct function *function); /* asyncio's Handle._run */
/* With most CPU time of those that are not there to wait, or NULL. */
const struct function *function_hottest(const struct timeline *timeline);
struct inclusive {
	double ns;        /* outermost such calls, with all below them, in the whole capture: a part of their callers' total_ns */
	uint32_t caller;  /* function that called most of it, or UINT32_MAX */
	uint32_t top;     /* the outermost such function with most of it, or UINT32_MAX */
};
/* Before the first inclusive_time(). */
void walk_begin(struct analysis_private *p);
/* Time under functions for which TEST holds, counted once however they nest; only calls that were entered, not those that were open from the start on. IN_CALL: only below some
 * other function that is no module body. */
struct inclusive inclusive_time(const struct analysis_private *p, function_test test, bool in_call);
/* The longest asyncio callback: *out is the function that ran in it, *thread its thread. 0 when there was none. */
uint64_t longest_callback(const struct analysis_private *p, uint32_t *out, uint32_t *thread);

/* analysis.c */
void *analysis_keep(struct analysis_private *p, size_t count, size_t size);
const char *analysis_printf(struct analysis_private *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* How far the data can be trusted, 0–1. */
double analysis_quality(const struct analysis_private *p);
static inline double clamp(double value, double low, double high) { return value < low ? low : value > high ? high : value; }

#endif
