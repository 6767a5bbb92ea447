/* analyze with several traces: they are the ranks of one job. */
#ifndef INFERSCOPE_CLI_JOB_H
#define INFERSCOPE_CLI_JOB_H

#include "cli/present.h"

/* ALIGN: their clocks are laid side by side. The report goes to --output, else to stdout. */
int job_present(char *const *paths, size_t count, bool align, const struct options *options, struct present_result *result, struct error *err);

#endif
