/* Words and files from an analysis. One view model, computed once; a writer is a row of one table and computes nothing. */
#ifndef INFERSCOPE_REPORT_REPORT_H
#define INFERSCOPE_REPORT_REPORT_H

#include "analyze/analysis.h"
#include "base/sink.h"

struct report_options {
	uint32_t top;          /* rows of the functions table in text, md, html; 0 = the format's own default */
	bool colour;           /* text only */
	uint32_t width;        /* text only; 0 = 80 */
	bool unicode;          /* text only: bars of block characters */
	uint32_t max_report_mb; /* html only: what the file may have; 0 = 25 */
	const char *const *files; /* summary only: files that were written, NULL-terminated, or NULL */
	const char *service;   /* otlp only: service.name; NULL = not known */
	const char *source_root; /* the folder that plays "/" for the program's source files; NULL = none is read */
};

struct report; /* the view model */
const char *verdict_label(enum verdict_class class_); /* "CPU-bound" */

/* Keeps TIMELINE and ANALYSIS (the caller's, must outlive it). TRACE is needed by formats that list intervals (events); may be NULL for the others. */
int report_build(const struct timeline *timeline, const struct analysis *analysis, struct trace *trace, const struct report_options *options, struct report **out, struct error *err);
void report_free(struct report *report);

struct report_format {
	const char *name;      /* "md" */
	const char *extension; /* "md" */
	const char *about;     /* for help */
	int (*write)(const struct report *report, struct sink *sink, struct error *err);
};
const struct report_format *report_formats(size_t *count);
/* By name, alias (markdown) or file extension; NULL when there is none. */
const struct report_format *report_format_find(const char *name);
const struct report_format *report_format_of_path(const char *path);

/* The summary that attach and run end with: at most 24 lines of 80 columns. */
int report_summary(const struct report *report, struct sink *sink, struct error *err);

#endif
