/*
 * The view model: everything a report says, computed once from timeline and analysis. Writers choose words, order and markup; a number
 * that two of them show is computed here. All of it lies in one arena.
 */
#ifndef INFERSCOPE_REPORT_MODEL_H
#define INFERSCOPE_REPORT_MODEL_H

#include "base/arena.h"
#include "base/text.h"
#include "report/quantity.h"
#include "report/report.h"
#include "report/source.h"
#include "timeline/memory.h"

enum part {
#define PART(id, key, label, brief, letter, sgr, colour, pattern, meaning) PART_##id,
#include "report/parts.def"
#undef PART
	PART_COUNT
};

struct part_info { const char *key, *label, *brief; char letter; int sgr; const char *colour, *pattern, *meaning; };
extern const struct part_info PARTS[PART_COUNT];

enum term {
#define TERM(id, key, word, meaning) TERM_##id,
#include "report/glossary.def"
#undef TERM
	TERM_COUNT
};

struct term_info { const char *key, *word, *meaning; };
extern const struct term_info TERMS[TERM_COUNT];

struct function_row {
	const struct function *function;
	double self_pct, total_pct; /* of the self time of all functions, all threads */
	double cpu_pct;             /* of its self time: how much was on a CPU */
	double cpu_share_pct;       /* of the CPU time of all functions */
	double self_error_pct;      /* half of the 95 % confidence interval of its self time, of that, NAN: exact, or not known */
	double bar_pct;             /* self time of the largest one is 100 */
	bool calls_known;           /* samples know no calls */
	bool calls_about, times_about, self_about; /* estimates: shown with ~ */
};

struct thread_row {
	const struct thread *thread;
	double pct[PART_COUNT]; /* of its wall time; adds to 100 when that is known */
	double cpu_pct;         /* of its wall time, from the kernel's clock */
	double covered_pct;     /* of its wall time */
	enum part mostly, second; /* the two largest parts; equal when there is only one */
};

/* How long WAITER waited for the GIL while HOLDER had it. */
struct gil_row {
	const struct thread *holder, *waiter; /* holder NULL = not known */
	uint64_t wait_ns;
	double pct; /* of the waiter's wall time */
};

/* Collections of garbage of one generation; most time first. */
struct collection_row {
	const char *generation; /* "generation 2" */
	uint64_t count, time_ns, longest_ns, freed; /* freed: objects */
	double p50_ns, p99_ns;  /* to about 7 per cent */
	double pct;             /* of the capture */
};

/* Allocations of one line, by samples; most bytes first. */
struct site_row {
	const struct memory_site *site;
	double bytes_per_second, error_pct; /* half of the 95 % confidence interval */
};

/* One line of the call tree, in the order of printing: a node, its kept children, then what was left out below it. */
struct tree_row {
	const struct function *function;
	const struct thread *thread;  /* of rows of depth 0; NULL = all threads */
	uint32_t depth;               /* 0 = the line above all others */
	uint32_t children;            /* rows of depth + 1 that follow below it */
	uint32_t omitted;             /* a rest row: how many nodes it stands for; total_ns is theirs */
	uint64_t self_ns, total_ns, calls;
	double pct;                   /* of its thread's time in the tree */
	double left_pct;              /* where it begins in a flame graph, right of its elder siblings */
};

struct tree_rows { struct tree_row *rows; size_t count, omitted; /* nodes below every line that is shown */ };

enum { SOURCE_FINDINGS = 50, SOURCE_PLACES = 5 };

enum quality_state { QUALITY_FINE = 0, QUALITY_NOTE, QUALITY_BAD };

/* System calls of one name. */
struct syscall_row {
	const struct syscall_summary *summary;
	const struct function *caller; /* the Python function that spent most time in them, as far as stacks are known; NULL = none is */
	uint64_t caller_ns;
	double caller_pct;             /* of the time of those whose stack is known */
};

/* Counters of a thread, or of a function (NULL: the stack is not known) while it ran. ABOUT: those that are estimates. */
struct counter_row { const char *name; uint32_t tid; const struct function *function; uint64_t counters[THREAD_COUNTERS]; uint32_t known, about; /* bits */ };
struct counter_table { struct counter_row *rows; size_t count; uint32_t known; /* of any row */ };

/* A fact about what surrounds the process. */
struct around_row { const char *label, *value; };

struct quality_row { enum quality_state state; const char *key, *label, *value, *meaning; };

struct report {
	const struct timeline *timeline;
	const struct analysis *analysis;
	struct trace *trace;
	struct report_options options;
	struct arena arena;
	bool failed; /* out of memory while it was built */

	const char *class_label; /* "CPU-bound" */
	const char *sentence;    /* the verdict's, without the class that every format says before it */
	const char *reason;      /* "one core saturated" */
	const char *command;     /* of the process, or "" */
	const char *python;
	uint32_t pid;
	bool imported;           /* another tool recorded it: no hooks of ours, no clocks */
	const char *reproduce;   /* the command that makes such a capture, visible text on one line */
	const char *started;     /* RFC 3339, UTC, or "" */
	const char *ended;

	double parts[PART_COUNT]; /* the verdict's breakdown, per cent */
	bool parts_known;

	size_t function_count, thread_count, quality_count, warning_count, around_count;
	struct function_row *functions; /* as many as any format may show: FUNCTIONS_MAX at most */
	size_t functions_omitted;
	struct function_row **ranked;   /* the same rows as people want them: by CPU time when the verdict is about the CPU, else by self time */
	bool ranked_by_cpu;
	uint64_t self_sum_ns;
	struct thread_row *threads;     /* busiest first */
	struct gil_row *gil;            /* longest first, without those too short to matter */
	size_t gil_count;
	struct collection_row *collections;
	struct site_row *sites;
	size_t collection_count, site_count; /* sites: SITES_MAX at most */
	const struct memory_facts *memory;
	struct tree_rows tree;          /* all threads merged */
	struct tree_rows thread_trees;  /* busiest thread first */
	struct quality_row *quality;    /* bad ones first */
	struct around_row *around;
	struct syscall_row *syscalls;   /* as the timeline has them: those that only wait last */
	size_t syscall_count;
	struct counter_table counted_threads, counted_functions; /* busiest first; COUNTER_FUNCTIONS_MAX at most, most page faults first */
	const char **warnings;
	const struct source *(*sources)[SOURCE_PLACES]; /* of the first findings' first places; see report_source() */
	size_t source_count;

	uint64_t calls;       /* seen, all functions */
	double cpu_cores;     /* CPU time of the process / duration; NAN = unknown */
	double overhead_pct;  /* NAN = unknown */
	double target_pct;    /* what it may be; NAN = no limit, or unknown */
	double hold_max_ns;   /* NAN = unknown */
	const char *measured; /* what turns with and without collection say of it, in a few words; NULL = there were none */
	double coverage_pct;
};

enum { GIL_ROWS_MAX = 12, SYSCALL_ROWS_MAX = 200, SITES_MAX = 500, COUNTER_FUNCTIONS_MAX = 200 };
enum { FUNCTIONS_MAX = 20000, TREE_ROWS_MAX = 1200, TREE_DEPTH_MAX = 60 };

/* Copies FORMAT's text into the arena; "" and report->failed when out of memory. */
const char *report_note(struct report *report, const char *format, ...) __attribute__((format(printf, 2, 3)));

int quality_build(struct report *report, struct error *err); /* quality.c */
int tree_build(struct report *report, struct error *err);    /* tree.c */
int around_build(struct report *report, struct error *err);  /* around.c */
int counter_rows_build(struct report *report, struct error *err); /* counter_rows.c */
int syscall_rows_build(struct report *report, struct error *err); /* syscall_rows.c */
int memory_rows(struct report *report, struct error *err);  /* memory.c */

/* The program's lines at a place of a finding; NULL when they are not known. */
const struct source *report_source(const struct report *report, size_t finding, size_t place);
/* How a number of ROW reads: with ~ where it is an estimate, – where it is not known. */
struct quantity row_calls(const struct function_row *row, unsigned flags);
struct quantity row_share(const struct function_row *row, bool cpu);
struct quantity row_ns(const struct function_row *row, uint64_t ns, unsigned flags);
struct quantity row_self(const struct function_row *row, unsigned flags); /* its self time */
struct quantity syscall_calls(const struct syscall_row *row, unsigned flags); /* how often; – where samples cannot tell */
/* "MainThread (4121)", "(not known)": raw, for name_add(). Clears OUT first. */
void gil_thread(const struct thread *thread, struct text *out);
/* The file and line of FUNCTION as one string, into OUT: raw, for name_add(); "" when unknown. */
void location_string(const char *file, uint32_t line, struct text *out);

int write_text(const struct report *report, struct sink *sink, struct error *err);
int write_md(const struct report *report, struct sink *sink, struct error *err);
int write_html(const struct report *report, struct sink *sink, struct error *err);
int write_json(const struct report *report, struct sink *sink, struct error *err);
int write_events(const struct report *report, struct sink *sink, struct error *err);
int write_perfetto(const struct report *report, struct sink *sink, struct error *err);
int write_chrome(const struct report *report, struct sink *sink, struct error *err);
int write_speedscope(const struct report *report, struct sink *sink, struct error *err);
int write_collapsed(const struct report *report, struct sink *sink, struct error *err);
int write_otlp(const struct report *report, struct sink *sink, struct error *err);
int write_pprof(const struct report *report, struct sink *sink, struct error *err);
int write_profile(const struct report *report, struct sink *sink, struct error *err);
int write_stacks(const struct report *report, struct sink *sink, struct error *err);
int write_csv(const struct report *report, struct sink *sink, struct error *err);

#endif
