/* Analyses of texts and files; freed when the test's process ends. */
#include "analyze_help.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analyze_golden.h"
#include "timeline_help.h"

char *read_text(const char *folder, const char *name)
{
	char path[1024], *text;
	long size;
	FILE *file;

	snprintf(path, sizeof path, "%s/%s/%s", SOURCE_FOLDER, folder, name);
	file = fopen(path, "r");
	cr_assert_not_null(file, "%s is missing", path);
	fseek(file, 0, SEEK_END);
	size = ftell(file);
	rewind(file);
	text = calloc(1, (size_t)size + 1);
	cr_assert_eq(fread(text, 1, (size_t)size, file), (size_t)size);
	fclose(file);
	keep_until_end(text, free);
	return text;
}

static void free_timeline(void *timeline)
{
	timeline_free(timeline);
}

static void free_analysis(void *analysis)
{
	analysis_free(analysis);
}

const struct analysis *analysis_of_text(const char *text, const struct parameter *parameters, size_t count)
{
	struct analysis *analysis;
	struct error err;

	cr_assert_eq(analysis_build(timeline_from_text(text), parameters, count, &analysis, &err), 0);
	keep_until_end(analysis, free_analysis);
	return analysis;
}

const struct analysis *analysis_of_golden(const char *name)
{
	char file[256];

	snprintf(file, sizeof file, "%s.trace", name);
	return analysis_of_text(read_text("tests/golden/analyze", file), NULL, 0);
}

const struct analysis *analysis_of_rule(const char *rule, const char *part)
{
	char name[128], path[1024];
	struct golden_trace golden;
	struct scope_patterns patterns = { 0 };
	const char *scopes[GOLDEN_SCOPES];
	struct timeline *timeline;
	struct analysis *analysis;
	struct error err;

	snprintf(path, sizeof path, "%s/tests/golden/rules/%s.trace", SOURCE_FOLDER, rule);
	if (access(path, R_OK) != 0) {
		snprintf(name, sizeof name, "%s.%s", rule, part);
		return analysis_of_golden(name);
	}
	snprintf(name, sizeof name, "%s.trace", rule);
	golden = golden_expand(read_text("tests/golden/rules", name), part);
	cr_assert_not_null(golden.text, "%s has no part %s", name, part);
	keep_until_end(golden.text, free);
	for (size_t i = 0; i < golden.scope_count; i++)
		scopes[i] = golden.scope_room[i];
	patterns = (struct scope_patterns){ scopes, golden.scope_count };
	cr_assert_eq(timeline_build_scoped(trace_from_text(golden.text), &patterns, &timeline, &err), 0);
	keep_until_end(timeline, free_timeline);
	cr_assert_eq(analysis_build(timeline, NULL, 0, &analysis, &err), 0);
	keep_until_end(analysis, free_analysis);
	return analysis;
}

const struct finding_report *finding_of(const struct analysis *analysis, const char *rule)
{
	for (size_t i = 0; i < analysis->finding_count; i++)
		if (strcmp(analysis->findings[i].rule, rule) == 0)
			return &analysis->findings[i];
	return NULL;
}

const char *why_not_evaluated(const struct analysis *analysis, const char *rule)
{
	for (size_t i = 0; i < analysis->not_evaluated_count; i++)
		if (strcmp(analysis->not_evaluated[i].rule, rule) == 0)
			return analysis->not_evaluated[i].reason;
	return NULL;
}
