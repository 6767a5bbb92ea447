/* From a trace file to reports: the one way that attach, run and analyze share, so that they give the same bytes. */
#ifndef INFERSCOPE_CLI_PRESENT_H
#define INFERSCOPE_CLI_PRESENT_H

#include "analyze/job.h"
#include "cli/failure.h"
#include "base/text.h"
#include "cli/outputs.h"
#include "cli/status.h"

struct presentation {
	const struct options *options;
	const struct outputs *outputs;
	int summary_fd;    /* where the summary goes; -1 = none */
	enum log_level level;
	struct status *status; /* what is told of progress; NULL = nothing */
	const char *source_root; /* the folder that plays "/" for the program's source files */
	struct rank *rank;     /* gets what a joint report needs of the trace; NULL = nothing does */
	const char *rank_name; /* where the trace does not say */
};

struct present_result {
	bool gate_failed;  /* a --fail-on condition holds; gate says which */
	char gate[256];
	bool partial;      /* loss, damage, truncation; partial_why says what */
	char partial_why[256];
};

/* A trace read to its end, with what it means. */
struct capture {
	struct trace *trace;
	struct timeline *timeline;
	struct ruleset *rules; /* the built-in ones, or those of --rules-file */
	const struct ruleset *instead; /* judge by these, which stay the caller's; NULL: by rules */
	struct analysis *analysis;
	const struct parameter *parameters; /* those of the options */
	size_t parameter_count;
	struct capture_settings *settings;
};
/* *OUT is zeroed by the caller, but for instead, and to be closed also after a failure. */
int capture_open(const char *path, const struct options *options, struct capture *out, struct error *err);
void capture_close(struct capture *capture);
/* Adds to RESULT what --fail-on says of CAPTURE, and what is missing of it. */
void present_judge(const struct capture *capture, const struct options *options, struct present_result *result);
/* Reads TRACE_PATH, writes every report of outputs, then the summary. NOTE_TRACE: the trace's own name for the summary, or NULL. */
int present_trace(const char *trace_path, const char *note_trace, const struct presentation *how, struct present_result *result, struct error *err);
/* --fail-on, --parameter and --rules-file are well-formed. */
int present_check(const struct options *options, struct error *err);
/* The rules that OPTIONS ask for. */
int present_rules(const struct options *options, struct ruleset **out, struct error *err);
/* What RULE means, and with a TRACE_PATH how it comes to its judgement there. */
int present_explain(const char *trace_path, const char *rule, const struct options *options, struct text *out, struct error *err);
/* The exit status of a finished command. */
int present_status(const struct options *options, const struct present_result *result, struct error *err);
bool colour_wanted(const struct options *options, int fd);

#endif
