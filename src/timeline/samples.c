/* Puts the sampled stacks into the tree, so that samples and calls of the same stack are the same node, and tells those that were taken
 * while calls could not be seen. */
#include "timeline/private.h"

/* The lanes of each thread: mostly one. */
struct first_lane { uint32_t *first, *next; };

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

/* True when calls of THREAD could be seen at that moment. */
static bool is_covered(const struct timeline_private *p, const struct first_lane *lanes, uint32_t thread, uint64_t at_ns)
{
	for (uint32_t i = lanes->first[thread]; i != NONE; i = lanes->next[i]) {
		const struct lane *lane = &p->lanes.items[i];
		size_t low = 0, high = lane->segments.count;

		while (low < high) { /* the first segment that ends later */
			size_t middle = low + (high - low) / 2;

			if (lane->segments.items[middle].end_ns > at_ns)
				high = middle;
			else
				low = middle + 1;
		}
		if (low < lane->segments.count && lane->segments.items[low].start_ns <= at_ns)
			return true;
	}
	return false;
}

static bool list_lanes(const struct timeline_private *p, struct first_lane *out)
{
	out->first = malloc((p->threads.count + 1) * sizeof *out->first);
	out->next = malloc((p->lanes.count + 1) * sizeof *out->next);
	if (!out->first || !out->next)
		return false;
	memset(out->first, 0xff, (p->threads.count + 1) * sizeof *out->first);
	for (size_t i = 0; i < p->lanes.count; i++) {
		uint32_t thread = p->lanes.items[i].thread;

		if (thread == NONE)
			continue;
		out->next[i] = out->first[thread];
		out->first[thread] = (uint32_t)i;
	}
	return true;
}

static void add_to_node(struct timeline_private *p, const struct sample *sample, uint32_t node, bool covered)
{
	struct thread_build *thread = &p->threads.items[sample->thread];

	p->nodes.items[node].samples++;
	if (covered)
		return;
	p->nodes.items[node].gap_samples++;
	thread->gap_samples++;
	*(sample->running ? &p->nodes.items[node].gap_running_ns : &p->nodes.items[node].gap_blocked_ns) += sample->weight_ns;
	*(sample->running ? &thread->gap_running_ns : &thread->gap_blocked_ns) += sample->weight_ns;
}

void samples_resolve(struct timeline_private *p)
{
	uint64_t start = p->timeline.start_ns;
	struct first_lane lanes = { 0 };
	struct map known = { 0 };

	p->failed |= !list_lanes(p, &lanes);
	for (size_t i = 0; i < p->samples.count && !p->failed; i++) {
		const struct sample *sample = &p->samples.items[i];

		if (sample->at_ns < start || sample->at_ns - start > p->timeline.duration_ns)
			continue;
		add_to_node(p, sample, node_of_stack(p, sample->thread, sample->stack, &known), is_covered(p, &lanes, sample->thread, sample->at_ns - start));
	}
	map_done(&known);
	free(lanes.first);
	free(lanes.next);
}

void samples_weigh(struct timeline_private *p)
{
	for (size_t i = 0; i < p->samples.count; i++) {
		const struct sample *sample = &p->samples.items[i];
		struct wait_frames frames = wait_frames_of_stack(p, sample->stack);

		if (!frames.count)
			continue;
		struct name *innermost = &p->names.list.items[frames.frames[0] - p->names.list.items];

		innermost->ran += sample->running;
		innermost->waited += !sample->running;
	}
}
