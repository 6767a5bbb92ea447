/* Puts the sampled stacks into the tree, so that samples and calls of the same stack are the same node, and tells those that were taken
 * while calls could not be seen. */
#include "base/search.h"
#include "timeline/private.h"

/* The lanes of each thread: mostly one. */
struct first_lane { uint32_t *first, *next; };

enum { UNTRACED_MAX = 64 /* frames, native ones included */, RESOLVED_LIMIT = 1 << 23 /* remembered; beyond, each stack is looked up anew */ };

struct resolve {
	struct timeline_private *p;
	struct map of_python; /* thread << 32 | stack to node: of stacks up to their innermost Python frame */
	struct map of_base;   /* node << 32 | stack << 1 | running to node */
};

static uint32_t function_of(const struct timeline_private *p, const struct stack_entry *entry)
{
	return entry->kind == 1 ? names_find_native(p, entry->process, entry->ref) : names_find(p, entry->process, entry->ref);
}

/* Native frames between Python frames: where calls were traced they stay out, so that samples and calls meet in the same nodes; what
 * the interpreter does between two frames is never told. */
static bool is_shown(struct timeline_private *p, uint32_t thread, const struct stack_entry *entry, bool below_python)
{
	if (!entry->kind)
		return true;
	return below_python && !p->threads.items[thread].has_lane && native_role(p, function_of(p, entry)) == NATIVE_FOREIGN;
}

/* The node of a stack that ends with a Python frame. PATH is room for the frames between it and the nearest stack with a node. */
static uint32_t node_of_python(struct resolve *resolve, uint32_t thread, uint32_t stack)
{
	struct timeline_private *p = resolve->p;
	LIST(uint32_t) path = { 0 };
	uint32_t node = MAP_ABSENT, root = tree_root(p, thread);

	for (; stack != NONE; stack = p->stacks.items[stack].parent) {
		node = map_get(&resolve->of_python, (uint64_t)thread << 32 | stack);
		if (node != MAP_ABSENT)
			break;
		uint32_t *entry = list_add_or_fail(&path, STACKS_LIMIT, &p->failed);

		if (!entry) {
			p->failed = true;
			break;
		}
		*entry = stack;
	}
	if (node == MAP_ABSENT)
		node = root;
	while (path.count) {
		stack = path.items[--path.count];
		if (is_shown(p, thread, &p->stacks.items[stack], node != root))
			node = tree_child(p, node, function_of(p, &p->stacks.items[stack]), thread);
		if (resolve->of_python.count < RESOLVED_LIMIT && !map_put(&resolve->of_python, (uint64_t)thread << 32 | stack, node))
			p->failed = true;
	}
	list_done(&path);
	return node;
}

static uint32_t innermost_python(const struct timeline_private *p, uint32_t stack)
{
	while (stack != NONE && p->stacks.items[stack].kind)
		stack = p->stacks.items[stack].parent;
	return stack;
}

/* Does the stack hold the innermost Python function of NODE? The last ones may be missing in the node: functions that are not traced. */
static bool agrees(const struct timeline_private *p, uint32_t stack, uint32_t node)
{
	while (p->nodes.items[node].function != NONE && p->names.list.items[p->nodes.items[node].function].kind == FUNCTION_C)
		node = p->nodes.items[node].parent;
	for (uint32_t tried = 0; stack != NONE && tried < UNTRACED_MAX; stack = p->stacks.items[stack].parent, tried++)
		if (!p->stacks.items[stack].kind && function_of(p, &p->stacks.items[stack]) == p->nodes.items[node].function)
			return true;
	return false;
}

static bool is_counted(const struct timeline_private *p, uint32_t function, uint64_t at_ns)
{
	uint64_t from_ns = p->names.list.items[function].counted_from_ns;

	return from_ns && at_ns >= from_ns;
}

/* Functions that are only counted open no call: the sample tells those within NODE. */
static uint32_t counted_within(struct timeline_private *p, const struct sample *sample, uint32_t stack, uint32_t node)
{
	uint32_t functions[UNTRACED_MAX], count = 0, outer = p->nodes.items[node].function;

	if (outer == NONE || p->names.list.items[outer].kind == FUNCTION_C)
		return node;
	for (uint32_t tried = 0; stack != NONE && tried < UNTRACED_MAX; stack = p->stacks.items[stack].parent, tried++) {
		uint32_t function = p->stacks.items[stack].kind ? NONE : function_of(p, &p->stacks.items[stack]);

		if (function == outer)
			break;
		if (function != NONE && is_counted(p, function, sample->at_ns))
			functions[count++] = function;
	}
	while (count)
		node = tree_child(p, node, functions[--count], sample->thread);
	return node;
}

/* The call that the sample was in: the one that was open at that time, else by its own Python frames. */
static uint32_t base_of_sample(struct resolve *resolve, const struct sample *sample)
{
	struct timeline_private *p = resolve->p;
	uint32_t python = innermost_python(p, sample->stack);

	/* Calls tell of that very moment, Python frames that were read later do not. */
	if (sample->node != NONE && (python == NONE || sample->later || agrees(p, python, sample->node)))
		return p->throttles.count ? counted_within(p, sample, python, sample->node) : sample->node;
	p->timeline.quality.unjoined_samples += sample->node != NONE;
	return python == NONE ? tree_root(p, sample->thread) : node_of_python(resolve, sample->thread, python);
}

static uint32_t node_of_sample(struct resolve *resolve, const struct sample *sample)
{
	struct timeline_private *p = resolve->p;
	uint32_t base, node, natives[NATIVES_MAX];
	enum native_base kind = BASE_PYTHON;
	uint64_t key;
	size_t count;

	if (sample->stack == NONE)
		return sample->node != NONE ? sample->node : tree_root(p, sample->thread);
	base = base_of_sample(resolve, sample);
	if (!p->stacks.items[sample->stack].kind)
		return base;
	key = (uint64_t)base << 32 | sample->stack << 1 | sample->running;
	node = map_get(&resolve->of_base, key);
	if (node != MAP_ABSENT)
		return node;
	if (p->nodes.items[base].function != NONE && p->names.list.items[p->nodes.items[base].function].kind == FUNCTION_C)
		kind = BASE_C_CALL;
	count = natives_of_stack(p, sample->stack, kind, sample->running, natives);
	node = base;
	for (size_t i = 0; i < count; i++)
		node = tree_child(p, node, natives[i], sample->thread);
	if (!map_put(&resolve->of_base, key, node))
		p->failed = true;
	return node;
}

/* True when calls of THREAD could be seen at that moment. */
static bool is_covered(const struct timeline_private *p, const struct first_lane *lanes, uint32_t thread, uint64_t at_ns)
{
	for (uint32_t i = lanes->first[thread]; i != NONE; i = lanes->next[i]) {
		const struct lane *lane = &p->lanes.items[i];
		size_t next = search_first(lane->segments.count, at, lane->segments.items[at].end_ns <= at_ns); /* the first segment that ends later */

		if (next < lane->segments.count && lane->segments.items[next].start_ns <= at_ns)
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

static void add_to_node(struct timeline_private *p, const struct sample *sample, uint32_t index, bool covered)
{
	struct thread_build *thread = &p->threads.items[sample->thread];
	struct node *node = &p->nodes.items[index];
	bool running = sample->running && sample->state != THREAD_GPU_WAIT; /* a driver that spins does not work */

	node->samples++;
	if (covered) {
		*(running ? &node->covered_running_ns : &node->covered_blocked_ns) += sample->weight_ns;
		node->counted_samples += node->function != NONE && is_counted(p, node->function, sample->at_ns);
		return;
	}
	node->gap_samples++;
	thread->gap_samples++;
	thread->gap_squares += (double)sample->weight_ns * sample->weight_ns;
	thread->gap_waits_sampled |= !sample->running;
	*(running ? &node->gap_running_ns : &node->gap_blocked_ns) += sample->weight_ns;
	*(running ? &thread->gap_running_ns : &thread->gap_blocked_ns) += sample->weight_ns;
}

void samples_resolve(struct timeline_private *p)
{
	uint64_t start = p->timeline.start_ns;
	struct first_lane lanes = { 0 };
	struct resolve resolve = { .p = p };

	p->failed |= !list_lanes(p, &lanes);
	for (size_t i = 0; i < p->samples.count && !p->failed; i++) {
		struct sample *sample = &p->samples.items[i];

		if (sample->at_ns < start || sample->at_ns - start > p->timeline.duration_ns)
			continue;
		sample->stack_node = node_of_sample(&resolve, sample);
		add_to_node(p, sample, sample->stack_node, is_covered(p, &lanes, sample->thread, sample->at_ns - start));
	}
	map_done(&resolve.of_python);
	map_done(&resolve.of_base);
	free(lanes.first);
	free(lanes.next);
}

static int compare_samples(const void *left, const void *right, void *context)
{
	const struct sample *samples = context, *a = &samples[*(const uint32_t *)left], *b = &samples[*(const uint32_t *)right];

	if (a->thread != b->thread)
		return a->thread < b->thread ? -1 : 1;
	return a->at_ns < b->at_ns ? -1 : a->at_ns > b->at_ns;
}

void samples_sort(struct timeline_private *p)
{
	uint32_t count = (uint32_t)p->samples.count;

	p->sample_order = malloc((count + (size_t)1) * sizeof *p->sample_order);
	if (!p->sample_order) {
		p->failed = true;
		return;
	}
	for (uint32_t i = 0; i < count; i++)
		p->sample_order[i] = i;
	qsort_r(p->sample_order, count, sizeof *p->sample_order, compare_samples, p->samples.items);
	for (uint32_t i = 0; i < count; i++) {
		struct thread_build *thread = &p->threads.items[p->samples.items[p->sample_order[i]].thread];

		if (thread->sample_end != i || !i)
			thread->first_sample = i;
		thread->sample_end = i + 1;
	}
	for (size_t i = 0; i < p->lanes.count; i++)
		if (p->lanes.items[i].thread != NONE)
			p->lanes.items[i].sample = p->threads.items[p->lanes.items[i].thread].first_sample;
}

static void weigh(struct timeline_private *p, uint32_t function, bool running)
{
	struct name *name = &p->names.list.items[function];

	name->ran += running;
	name->waited += !running;
}

/* Calls know that the thread waited for a device then, whatever a sampler saw. */
static void wait_for_device(struct timeline_private *p, struct sample *sample)
{
	struct thread_build *thread = &p->threads.items[sample->thread];
	uint64_t at_ns = sample->at_ns - p->timeline.start_ns, weight = sample->weight_ns;
	size_t next = search_first(thread->points.count, i, thread->points.items[i].out.at_ns < at_ns);
	struct point *point = next < thread->points.count ? &thread->points.items[next] : NULL;
	int state = sample->state, spun = state == THREAD_PYTHON || state == THREAD_NATIVE;

	sample->state = THREAD_GPU_WAIT;
	if (state == THREAD_GPU_WAIT)
		return;
	thread->sampled_all_ns[state] -= weight;
	thread->sampled_all_ns[THREAD_GPU_WAIT] += weight;
	thread->spun_all_ns += spun ? weight : 0;
	if (!point || point->sampled_ns[state] < weight) /* time went backwards */
		return;
	point->sampled_ns[state] -= weight;
	point->sampled_ns[THREAD_GPU_WAIT] += weight;
	point->spun_ns += spun ? weight : 0;
}

void samples_weigh(struct timeline_private *p)
{
	for (size_t i = 0; i < p->samples.count; i++) {
		struct sample *sample = &p->samples.items[i];
		struct wait_frames frames = wait_frames_of_stack(p, sample->stack);
		bool waits = pieces_within(&p->threads.items[sample->thread].syncs, sample->at_ns, sample->at_ns + 1);

		if (waits)
			wait_for_device(p, sample);
		else if (frames.count)
			weigh(p, (uint32_t)(frames.frames[0] - p->names.list.items), sample->running);
		if (sample->stack != NONE && p->stacks.items[sample->stack].kind)
			weigh(p, function_of(p, &p->stacks.items[sample->stack]), sample->running);
	}
}
