/* A stack is interned as its bytes. */
#include "report/stack_paths.h"

#include <stddef.h>
#include <string.h>

#include "abi/thread_counter.h"

static uint32_t add(struct strings *paths, const struct stack_path *path)
{
	return strings_add(paths, (const char *)path, offsetof(struct stack_path, functions) + path->count * sizeof *path->functions);
}

uint32_t stack_path_add(struct strings *paths, const struct timeline *timeline, const struct tree_node *node)
{
	struct stack_path path = { 0 };

	for (; node->parent != UINT32_MAX && path.count < STACK_PATH_MAX; node = &timeline->nodes[node->parent])
		path.functions[path.count++] = node->function;
	path.cut = node->parent != UINT32_MAX;
	return add(paths, &path);
}

static uint32_t add_memory(struct strings *paths, const struct memory_path *memory)
{
	struct stack_path path = { .cut = memory->cut, .count = memory->count };

	memcpy(path.functions, memory->functions, memory->count * sizeof *path.functions);
	return add(paths, &path);
}

bool stack_paths_add_memory(struct strings *paths, const struct timeline *timeline, stack_memory_each *each, void *context)
{
	const struct memory_facts *memory = timeline_memory(timeline);

	for (size_t i = 0; i < memory->path_count; i++) {
		uint32_t number = memory->paths[i].count ? add_memory(paths, &memory->paths[i]) : 0;

		if (number == UINT32_MAX)
			return false;
		if (number)
			each(context, number, memory->paths[i].live_bytes);
	}
	return true;
}

void stack_path_get(const struct strings *paths, uint32_t number, struct stack_path *out)
{
	const char *kept = strings_get(paths, number);

	memcpy(out, kept, offsetof(struct stack_path, functions));
	memcpy(out->functions, kept + offsetof(struct stack_path, functions), out->count * sizeof *out->functions);
}

static bool begins_with(const char *text, const char *beginning)
{
	return text && strncmp(text, beginning, strlen(beginning)) == 0;
}

const char *stacks_no_instructions(const struct timeline *timeline)
{
	bool wanted = begins_with(timeline_capture(timeline, "counters"), "by perf_event");

	for (size_t i = 0; i < timeline->counter_site_count; i++)
		if (timeline->counter_sites[i].gained[COUNTER_INSTRUCTIONS - COUNTERS_SAMPLED])
			return NULL;
	return wanted ? "this machine shows no counter of instructions" : "they are counted with --counters where samples come from perf_event";
}

const char *stacks_no_memory(const struct timeline *timeline)
{
	const struct memory_facts *memory = timeline_memory(timeline);

	if (!memory->all.samples && !begins_with(timeline_capture(timeline, "memory"), "sampled"))
		return "allocations are sampled with --memory";
	return memory->ends_missing;
}
