/* Ranks of one job in words and JSON. */
#ifndef INFERSCOPE_REPORT_JOB_H
#define INFERSCOPE_REPORT_JOB_H

#include "analyze/job.h"
#include "base/sink.h"

struct job_format {
	const char *name;
	int (*write)(const struct job *job, struct sink *sink, struct error *err);
};
/* By name, alias or extension of a report's format; NULL when jobs have none such. */
const struct job_format *job_format_find(const char *name);
/* What a terminal gets at the end: at most MOST ranks. */
int job_summary(const struct job *job, size_t most, struct sink *sink, struct error *err);

/* For the writers: PART of WHOLE in per cent, NAN of nothing; and the one for JSON (job_json.c). */
double job_share_pct(uint64_t part, uint64_t whole);
int job_write_json(const struct job *job, struct sink *sink, struct error *err);

#endif
