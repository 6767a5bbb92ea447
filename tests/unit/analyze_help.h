/* Analyses of golden traces (tests/golden/analyze/NAME.trace) and of text. */
#ifndef TESTS_ANALYZE_HELP_H
#define TESTS_ANALYZE_HELP_H

#include "analyze/analysis.h"

const struct analysis *analysis_of_golden(const char *name);
/* PART: "fire" or "quiet". */
const struct analysis *analysis_of_rule(const char *rule, const char *part);
const struct analysis *analysis_of_text(const char *text, const struct parameter *parameters, size_t count);
const struct finding_report *finding_of(const struct analysis *analysis, const char *rule); /* NULL = none */
const char *why_not_evaluated(const struct analysis *analysis, const char *rule);      /* NULL = it was */
char *read_text(const char *folder, const char *name);

#endif
