/* Puts the sampled stacks into the tree, so that samples and calls of the same stack are the same node. */
#include "timeline/private.h"

static uint32_t function_of(const struct timeline_private *p, const struct stack_entry *entry)
{
	return entry->kind == 1 ? names_find_native(p, entry->process, entry->ref) : names_find(p, entry->process, entry->ref);
}

/* The node of a sampled stack, outermost frame first. PATH is room for the frames between it and the nearest stack with a node. */
static uint32_t node_of_stack(struct timeline_private *p, uint32_t thread, uint32_t stack, struct map *known)
{
	LIST(uint32_t) path = { 0 };
	uint32_t node = MAP_ABSENT;

	for (; stack != NONE; stack = p->stacks.items[stack].parent) {
		node = map_get(known, (uint64_t)thread << 32 | stack);
		if (node != MAP_ABSENT)
			break;
		uint32_t *entry = list_add(&path, STACKS_LIMIT);

		if (!entry) {
			p->failed = true;
			break;
		}
		*entry = stack;
	}
	if (node == MAP_ABSENT)
		node = tree_root(p, thread);
	while (path.count) {
		stack = path.items[--path.count];
		node = tree_child(p, node, function_of(p, &p->stacks.items[stack]), thread);
		if (!map_put(known, (uint64_t)thread << 32 | stack, node))
			p->failed = true;
	}
	list_done(&path);
	return node;
}

void samples_resolve(struct timeline_private *p)
{
	struct map known = { 0 };

	for (size_t i = 0; i < p->samples.count && !p->failed; i++) {
		const struct sample_row *row = &p->samples.items[i];
		uint32_t node = node_of_stack(p, row->thread, row->stack, &known);

		p->nodes.items[node].samples_running += row->running;
		p->nodes.items[node].samples_blocked += row->blocked;
	}
	map_done(&known);
}

void samples_weigh(struct timeline_private *p)
{
	for (size_t i = 0; i < p->samples.count; i++) {
		const struct sample_row *row = &p->samples.items[i];
		struct wait_frames frames = wait_frames_of_stack(p, row->stack);

		if (!frames.count)
			continue;
		struct name *innermost = &p->names.list.items[frames.frames[0] - p->names.list.items];

		innermost->ran += row->running;
		innermost->waited += row->blocked;
	}
}
