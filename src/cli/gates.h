/*
 * What --fail-on may name: of a report a class, a severity or a rule; of a difference what has become worse. A setting (environment, file) may hold words
 * of both, and each command takes its own; on the command line every word must be one of the command's.
 */
#ifndef INFERSCOPE_CLI_GATES_H
#define INFERSCOPE_CLI_GATES_H

#include "analyze/analysis.h"
#include "analyze/diff.h"
#include "cli/options.h"

/* Of a report, judged by RULES. */
int gates_check(const struct options *options, const struct ruleset *rules, struct error *err);
/* Does one hold? WHY says which. */
bool gates_hold(const struct options *options, const struct analysis *analysis, char *why, size_t size);

/* Of a difference. */
int diff_gates_check(const struct options *options, const struct ruleset *rules, struct error *err);
/* ERR_GATE when one holds. */
int diff_gates_apply(const struct options *options, const struct diff *diff, struct error *err);

#endif
