/* Timelines from the text of a trace. What it hands out is freed when the test's process ends. */
#include "timeline_help.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "trace/dump.h"

static struct kept { void *object; void (*free)(void *object); } kept[1024];
static size_t kept_count;

static void free_kept(void)
{
	while (kept_count--)
		kept[kept_count].free(kept[kept_count].object);
}

void keep_until_end(void *object, void (*free_object)(void *object))
{
	if (!kept_count)
		atexit(free_kept);
	cr_assert_lt(kept_count, sizeof kept / sizeof *kept);
	kept[kept_count++] = (struct kept){ object, free_object };
}

static void free_trace(void *trace)
{
	trace_close(trace);
}

static void free_timeline(void *timeline)
{
	timeline_free(timeline);
}

struct trace *trace_from_text(const char *text)
{
	struct error err = { 0 };
	struct trace *trace;
	void *bytes;
	size_t size;

	cr_assert_eq(trace_assemble_memory(text, &bytes, &size, &err), 0, "%s", err.text);
	keep_until_end(bytes, free);
	cr_assert_eq(trace_open_memory(bytes, size, &trace, &err), 0, "%s", err.text);
	keep_until_end(trace, free_trace);
	return trace;
}

struct timeline *timeline_from_text(const char *text)
{
	struct error err = { 0 };
	struct timeline *timeline;

	cr_assert_eq(timeline_build(trace_from_text(text), &timeline, &err), 0, "%s", err.text);
	keep_until_end(timeline, free_timeline);
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
