/* Adds up what each function and each stack did in the whole capture, by what was seen of it. */
#include "timeline/totals.h"

enum { SAMPLES_ENOUGH = 50, SAMPLES_TELL = 10, RATIO_FAR = 100 };
#define COVERAGE_LOW 0.5

static bool is_covered(const struct thread_build *thread)
{
	return (double)thread->out.covered_ns >= FULL_COVERAGE * (double)thread->out.wall_ns;
}

/* Samples are taken all along, so they know what happened while calls could not be seen; the weights of the windows around would only
 * guess, and are biased where a program calls much in bursts. Few samples know less than the windows. */
static void choose_sampled(struct timeline_private *p)
{
	for (size_t i = 0; i < p->threads.count; i++) {
		struct thread_build *thread = &p->threads.items[i];

		thread->gap_ns = (double)thread->out.wall_ns - (double)thread->out.covered_ns;
		if (!thread->gap_waits_sampled && thread->out.wall_ns) /* a sampler that sees running threads only */
			thread->gap_ns *= (double)(thread->out.python_ns + thread->out.native_ns + thread->out.runnable_ns + thread->out.unknown_ns + (thread->syncs_sleep ? 0 : thread->out.gpu_wait_ns)) / (double)thread->out.wall_ns;
		thread->gaps_sampled = thread->gap_samples && !is_covered(thread) && (thread->gap_samples >= SAMPLES_ENOUGH || !thread->out.covered_ns);
	}
}

static void use_samples(struct timeline_private *p)
{
	for (size_t i = 0; i < p->nodes.count; i++) {
		struct node *node = &p->nodes.items[i];
		const struct thread_build *thread;
		double all, running;

		if (node->thread == NONE || !(thread = &p->threads.items[node->thread])->gaps_sampled)
			continue;
		running = (double)(thread->out.python_ns + thread->out.native_ns) - thread->cpu_seen;
		all = thread->gap_running_ns + thread->gap_blocked_ns;
		node->estimated_self = (double)node->self_ns + thread->gap_ns * (node->gap_running_ns + node->gap_blocked_ns) / all;
		node->cpu_self = node->cpu_seen;
		if (thread->gap_running_ns > 0 && running > 0)
			node->cpu_self += running * node->gap_running_ns / thread->gap_running_ns;
	}
}

/* Children come after their parents, so one walk backwards adds up. */
static void sum_nodes(struct totals *totals)
{
	struct timeline_private *p = totals->p;

	for (size_t i = p->nodes.count; i-- > 1;) {
		const struct node *node = &p->nodes.items[i];
		struct node_totals *own = &totals->nodes[i], *parent = &totals->nodes[node->parent];

		own->total_ns += node->self_ns;
		own->total += node->estimated_self;
		own->samples += node->samples;
		own->gap_samples += node->gap_samples;
		own->calls += node->calls;
		parent->total_ns += own->total_ns;
		parent->total += own->total;
		parent->samples += own->samples;
		parent->gap_samples += own->gap_samples;
		parent->calls += own->calls;
	}
}

/* What hooks cost for one call (enter and leave), ns: the collector's own measure. */
static double hook_cost(const struct timeline_private *p)
{
	double cost = (double)timeline_counter(&p->timeline, "cost_ns", 0), events = (double)timeline_counter(&p->timeline, "events", 0);

	return events > 0 && cost > 0 ? 2 * cost / events : 0;
}

/* Time of a stack in the whole capture to what was seen, as far as calls go: without hooks more of them fit into the time not seen. */
static double ratio_of_calls(const struct node_totals *own, double cost)
{
	double seen = (double)own->total_ns, unhooked = seen - cost * (double)own->calls;

	/* The collector's measure holds its other work too: more than half is not believed. */
	if (unhooked < seen / 2)
		unhooked = seen / 2;
	return 1 + (own->total - seen) / unhooked;
}

/* A function is called as often as its caller has time to: as many calls are missing as of the caller's time (its own time would
 * mislead: a window that ends in the middle of a long call has seen its enter, and little of its time). A caller with few samples
 * takes the ratio of its own caller; one far from that of the thread is noise of something that was hardly seen. */
static void scale_calls(struct totals *totals)
{
	struct timeline_private *p = totals->p;
	double cost = hook_cost(p);

	for (size_t i = 1; i < p->nodes.count; i++) {
		struct node *node = &p->nodes.items[i];
		struct node_totals *own = &totals->nodes[i];
		const struct thread_build *thread = &p->threads.items[node->thread];
		double usual = thread->out.covered_ns ? (double)thread->out.wall_ns / (double)thread->out.covered_ns : 0;

		if (!thread->gaps_sampled)
			continue;
		if (node->function == NONE || !own->total_ns)
			own->ratio = node->parent ? totals->nodes[node->parent].ratio : usual;
		else if (own->gap_samples < SAMPLES_TELL)
			own->ratio = totals->nodes[node->parent].ratio;
		else
			own->ratio = ratio_of_calls(own, cost);
		if (own->ratio > RATIO_FAR * usual)
			own->ratio = RATIO_FAR * usual;
		node->estimated_calls = (double)node->calls * (node->parent ? totals->nodes[node->parent].ratio : usual);
	}
}

/* Walks the tree without recursion: stacks in traces may be thousands deep. */
static bool mark_recursion(struct totals *totals)
{
	struct timeline_private *p = totals->p;
	size_t count = p->nodes.count;
	uint32_t *child = malloc(count * sizeof *child), *sibling = malloc(count * sizeof *sibling);
	uint32_t *active = calloc(p->names.list.count, sizeof *active);
	uint32_t at = 0;
	bool done = child && sibling && active;

	if (!done)
		goto out;
	memset(child, 0xff, count * sizeof *child);
	for (size_t i = count; i-- > 1;) {
		uint32_t parent = p->nodes.items[i].parent;

		sibling[i] = child[parent];
		child[parent] = (uint32_t)i;
	}
	for (;;) {
		if (child[at] != NONE) { /* down; its parent goes on with the next one */
			uint32_t next = child[at];

			child[at] = sibling[next];
			at = next;
			if (p->nodes.items[at].function != NONE)
				totals->nodes[at].recursive = active[p->nodes.items[at].function]++ > 0;
			continue;
		}
		if (!at)
			break;
		if (p->nodes.items[at].function != NONE)
			active[p->nodes.items[at].function]--;
		at = p->nodes.items[at].parent;
	}
out:
	free(child);
	free(sibling);
	free(active);
	return done;
}

static bool order_by_thread(struct totals *totals)
{
	struct timeline_private *p = totals->p;
	size_t *starts = calloc(p->threads.count + 1, sizeof *starts);

	if (!starts)
		return false;
	for (size_t i = 1; i < p->nodes.count; i++)
		starts[p->nodes.items[i].thread + 1]++;
	for (size_t i = 1; i <= p->threads.count; i++)
		starts[i] += starts[i - 1];
	for (size_t i = 1; i < p->nodes.count; i++)
		totals->order[starts[p->nodes.items[i].thread]++] = (uint32_t)i;
	free(starts);
	return true;
}

static void add_node(struct totals *totals, uint32_t index)
{
	const struct node *node = &totals->p->nodes.items[index];
	const struct node_totals *sums = &totals->nodes[index];
	const struct thread_build *thread = &totals->p->threads.items[node->thread];
	struct function_build *function;

	if (node->function == NONE)
		return;
	function = &totals->functions[node->function];
	function->used = true;
	function->out.seen_calls += node->calls;
	function->out.seen_self_ns += node->self_ns;
	function->out.exceptions += node->exceptions;
	function->out.samples_self += node->samples;
	function->calls += node->estimated_calls;
	function->self += node->estimated_self;
	function->cpu_self += node->cpu_self;
	spread_add(totals->p, &function->spread, node);
	if (node->longest_ns > function->out.longest_ns)
		function->out.longest_ns = node->longest_ns;
	if (!sums->recursive) {
		function->outer_calls += node->estimated_calls;
		function->out.seen_total_ns += sums->total_ns;
		function->total += sums->total;
		function->out.samples_total += sums->samples;
	}
	if (function->last_thread != node->thread + 1) {
		function->last_thread = node->thread + 1;
		function->out.threads++;
		function->wall_ns += thread->out.wall_ns;
		function->covered_ns += thread->out.covered_ns;
		bool sampled = thread->gaps_sampled && (double)thread->out.covered_ns < COVERAGE_LOW * (double)thread->out.wall_ns;

		function->sampled |= sampled;
		function->estimated |= !sampled && !is_covered(thread);
	}
}

void totals_build(struct timeline_private *p)
{
	struct totals totals = { .p = p };

	for (size_t i = 0; i < p->threads.count; i++)
		p->threads.items[i].out.python = p->threads.items[i].has_lane || p->threads.items[i].python_sampled;
	gpu_build(p);
	lists_small(p);
	partition_build(p);
	choose_sampled(p);
	use_samples(p);
	totals.functions = calloc(p->names.list.count, sizeof *totals.functions);
	totals.nodes = calloc(p->nodes.count, sizeof *totals.nodes);
	totals.order = malloc(p->nodes.count * sizeof *totals.order);
	if (!totals.functions || !totals.nodes || !totals.order || !order_by_thread(&totals) || !mark_recursion(&totals))
		p->failed = true;
	if (p->failed)
		goto out;
	sum_nodes(&totals);
	scale_calls(&totals);
	for (size_t i = 0; i + 1 < p->nodes.count; i++)
		add_node(&totals, totals.order[i]);
	lists_windows(p);
	spread_windows(p);
	functions_export(&totals);
	lists_throttles(p);
	lists_threads(p);
	if (!p->failed)
		nodes_export(&totals);
	/* cppcheck-suppress duplicateCondition ; it may have failed */
	if (!p->failed) {
		gpu_idle_stacks_build(p);
		gpu_sites_build(p);
		scopes_build(p);
	}
	gil_build(p);
	lists_processes(p);
	lists_quality(p);
out:
	free(totals.functions);
	free(totals.nodes);
	free(totals.order);
}
