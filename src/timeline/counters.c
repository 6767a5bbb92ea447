/* Counters of threads, and what they gained from sample to sample, by the function that was at work. */
#include "timeline/private.h"

enum { GAINS_LIMIT = 1 << 24 };

static enum thread_counter which_of(const struct timeline_private *p, uint32_t name)
{
	return thread_counter_named(strings_get(p->strings, name));
}

void counters_thread(struct timeline_private *p, uint32_t process, const struct event_cursor *c)
{
	struct thread_build *thread = lanes_thread(p, process, c->event.ref);
	enum thread_counter which = which_of(p, facts_string(p, c, 1));
	uint64_t value = event_u64(c, 0);

	if (!thread || which == THREAD_COUNTERS)
		return;
	/* Less than before is another thread that got the number of one that ended. */
	thread->out.counters[which] += value >= thread->counted[which] ? value - thread->counted[which] : value;
	thread->counted[which] = value;
	thread->out.counters_known |= 1u << which;
	if (c->event.flags & EVENT_FLAG_SAMPLED)
		thread->out.counters_scaled |= 1u << which;
	p->timeline.counters_known |= 1u << which;
}

/* It stands right after the sample that it belongs to. */
void counters_sample(struct timeline_private *p, uint32_t process, const struct event_cursor *c)
{
	struct thread_build *thread = lanes_thread(p, process, event_u32(c, 0));
	enum thread_counter which = which_of(p, facts_string(p, c, 2));
	struct gain *gain;

	if (!thread || which == THREAD_COUNTERS || which < (enum thread_counter)COUNTERS_SAMPLED || !p->samples.count || p->samples.items[p->samples.count - 1].thread != (uint32_t)(thread - p->threads.items))
		return;
	gain = keep_event(p, &p->gains, GAINS_LIMIT);
	if (gain)
		*gain = (struct gain){ (uint32_t)p->samples.count - 1, (uint32_t)(which - COUNTERS_SAMPLED), event_u64(c, 1) };
}

/* The innermost Python function, else the innermost one; NONE: no stack is known. */
static uint32_t function_of(const struct timeline_private *p, uint32_t node)
{
	uint32_t innermost = NONE;

	for (; node != NONE && p->nodes.items[node].function != NONE; node = p->nodes.items[node].parent) {
		uint32_t name = p->nodes.items[node].function;

		if (name == NAME_UNKNOWN)
			continue;
		if (innermost == NONE)
			innermost = p->export_function[name];
		if (p->names.list.items[name].kind == FUNCTION_PYTHON)
			return p->export_function[name];
	}
	return innermost;
}

/* Most page faults first, then most cycles. */
static int compare_sites(const void *left, const void *right)
{
	const struct counter_site *a = left, *b = right;
	uint64_t faults_a = a->gained[0] + a->gained[1], faults_b = b->gained[0] + b->gained[1];

	if (faults_a != faults_b)
		return faults_a > faults_b ? -1 : 1;
	for (int i = 2; i < SAMPLED_COUNTERS; i++)
		if (a->gained[i] != b->gained[i])
			return a->gained[i] > b->gained[i] ? -1 : 1;
	return a->function < b->function ? -1 : a->function > b->function;
}

static void add_instructions(struct timeline_private *p)
{
	struct tree_node *nodes = (struct tree_node *)p->timeline.nodes; /* ours, so far */

	for (size_t i = 0; i < p->gains.count; i++) {
		const struct gain *gain = &p->gains.items[i];
		uint32_t node = p->samples.items[gain->sample].stack_node;

		if (gain->which == COUNTER_INSTRUCTIONS - COUNTERS_SAMPLED && node < p->nodes.count && p->export_node[node])
			nodes[p->export_node[node]].instructions += gain->value;
	}
}

void counters_build(struct timeline_private *p)
{
	struct counter_site *sites = timeline_keep(p, p->timeline.function_count + 1, sizeof *sites);
	size_t kept = 0, none = p->timeline.function_count;

	if (!sites || !p->gains.count)
		return;
	add_instructions(p);
	memset(sites, 0, (none + 1) * sizeof *sites);
	for (size_t i = 0; i < p->gains.count; i++) {
		const struct gain *gain = &p->gains.items[i];
		uint32_t node = p->samples.items[gain->sample].stack_node, function = node && node < p->nodes.count ? function_of(p, node) : NONE;

		sites[function < none ? function : none].gained[gain->which] += gain->value;
	}
	for (size_t i = 0; i <= none; i++) {
		uint64_t all = 0;

		for (int which = 0; which < SAMPLED_COUNTERS; which++)
			all |= sites[i].gained[which];
		if (!all)
			continue;
		sites[kept] = sites[i];
		sites[kept++].function = i < none ? (uint32_t)i : UINT32_MAX;
	}
	qsort(sites, kept, sizeof *sites, compare_sites);
	p->timeline.counter_sites = sites;
	p->timeline.counter_site_count = kept;
}
