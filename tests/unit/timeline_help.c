/* Timelines from the text of a trace; what it leaks dies with the test's process. */
#include "timeline_help.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "trace/dump.h"

struct trace *trace_from_text(const char *text)
{
	struct error err = { 0 };
	struct trace *trace;
	void *bytes;
	size_t size;

	cr_assert_eq(trace_assemble_memory(text, &bytes, &size, &err), 0, "%s", err.text);
	cr_assert_eq(trace_open_memory(bytes, size, &trace, &err), 0, "%s", err.text);
	return trace;
}

struct timeline *timeline_from_text(const char *text)
{
	struct error err = { 0 };
	struct timeline *timeline;

	cr_assert_eq(timeline_build(trace_from_text(text), &timeline, &err), 0, "%s", err.text);
	return timeline;
}

const struct function *function_named(const struct timeline *timeline, const char *name)
{
	for (size_t i = 0; i < timeline->function_count; i++)
		if (strcmp(timeline->functions[i].name, name) == 0)
			return &timeline->functions[i];
	cr_assert_fail("no function %s", name);
	return NULL;
}

const struct tree_node *node_at(const struct timeline *timeline, const char *path)
{
	uint32_t at = 0;

	for (const char *part = path; part; part = strchr(part, ';') ? strchr(part, ';') + 1 : NULL) {
		size_t length = strcspn(part, ";");
		uint32_t found = UINT32_MAX;

		for (size_t i = 1; i < timeline->node_count; i++) {
			const char *name = timeline->functions[timeline->nodes[i].function].name;

			if (timeline->nodes[i].parent == at && strlen(name) == length && strncmp(name, part, length) == 0)
				found = (uint32_t)i;
		}
		if (found == UINT32_MAX)
			return NULL;
		at = found;
	}
	return &timeline->nodes[at];
}
