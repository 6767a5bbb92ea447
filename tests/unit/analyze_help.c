/* Analyses of texts and files; freed when the test's process ends. */
#include "analyze_help.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
