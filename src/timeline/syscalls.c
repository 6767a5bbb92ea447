/* System calls by name, and the stacks that made them: by the calls that were open then, else by a sample that was taken meanwhile. */
#include "abi/syscall.h"
#include "base/sort.h"
#include "timeline/operations.h"
#include "timeline/private.h"

/* A sample so soon after a moment that was asked for shows its stack, as a rule. */
#define ASKED_NS 20000000ull
enum { CALLS_LIMIT = 1 << 21, NAMES_LIMIT = 1 << 12, SITES_LIMIT = 1 << 16 };

struct syscall_sites { struct syscall_site *items; size_t count, capacity; };

static struct syscall_build *name_of(struct timeline_private *p, const struct event_cursor *c, uint32_t *index)
{
	uint32_t name = facts_string(p, c, 3);
	struct syscall_build *build;

	*index = map_get(&p->syscall_index, name);
	if (*index != MAP_ABSENT)
		return &p->syscalls.items[*index];
	build = list_add_or_fail(&p->syscalls, NAMES_LIMIT, &p->failed);
	if (!build)
		return NULL;
	*index = (uint32_t)p->syscalls.count - 1;
	build->name = name;
	p->failed |= !map_put(&p->syscall_index, name, *index);
	return build;
}

void syscalls_add(struct timeline_private *p, const struct lane *lane, const struct event_cursor *c, uint64_t at_ns)
{
	uint64_t duration_ns = event_u64(c, 0), end_ns;
	const struct syscall_row *row = syscall_row(event_u32(c, 1));
	struct thread_build *thread = c->event.ref ? lanes_thread(p, lane->process, c->event.ref) : lane->thread == NONE ? NULL : &p->threads.items[lane->thread];
	int64_t result = event_i64(c, 2);
	struct syscall_call *call;
	struct syscall_build *build;
	uint32_t name;

	if (__builtin_add_overflow(at_ns, duration_ns, &end_ns) || !(build = name_of(p, c, &name)))
		return;
	build->out.count++;
	build->out.time_ns += duration_ns;
	build->out.sampled |= (c->event.flags & EVENT_FLAG_SAMPLED) != 0;
	build->out.failed += result < 0;
	build->out.waits = row && row->what & SYSCALL_WAITS;
	if (row && row->what & SYSCALL_BYTES && result > 0)
		build->out.bytes += (uint64_t)result;
	call = thread ? keep_event(p, &p->syscall_calls, CALLS_LIMIT) : NULL;
	if (call)
		*call = (struct syscall_call){ at_ns, end_ns, (uint32_t)(thread - p->threads.items), name, NONE };
}

uint32_t syscalls_ask(struct timeline_private *p, uint32_t process, uint32_t tid, uint64_t at_ns)
{
	struct thread_build *thread = lanes_thread(p, process, tid);
	struct syscall_call *call = thread && at_ns < UINT64_MAX - ASKED_NS ? keep_event(p, &p->syscall_calls, CALLS_LIMIT) : NULL;

	if (!call)
		return NONE;
	*call = (struct syscall_call){ at_ns, at_ns + ASKED_NS, (uint32_t)(thread - p->threads.items), NONE, NONE };
	return (uint32_t)p->syscall_calls.count - 1;
}

uint32_t syscalls_answer(const struct timeline_private *p, uint32_t asked)
{
	return asked == NONE ? NONE : p->syscall_calls.items[asked].node;
}

static int compare_calls(const void *left, const void *right, const void *context)
{
	const struct syscall_call *calls = context, *a = &calls[*(const uint32_t *)left], *b = &calls[*(const uint32_t *)right];

	if (a->thread != b->thread)
		return a->thread < b->thread ? -1 : 1;
	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	return a < b ? -1 : a > b;
}

void syscalls_prepare(struct timeline_private *p)
{
	uint32_t count = (uint32_t)p->syscall_calls.count;

	if (!count)
		return;
	p->syscall_order = malloc(count * sizeof *p->syscall_order);
	if (!p->syscall_order) {
		p->failed = true;
		return;
	}
	for (uint32_t i = 0; i < count; i++)
		p->syscall_order[i] = i;
	p->failed |= !sort_runs(p->syscall_order, count, sizeof *p->syscall_order, compare_calls, p->syscall_calls.items);
	for (uint32_t i = 0; i < count; i++) {
		struct thread_build *thread = &p->threads.items[p->syscall_calls.items[p->syscall_order[i]].thread];

		if (!thread->syscall_end)
			thread->first_syscall = i;
		thread->syscall_end = i + 1;
	}
	for (size_t i = 0; i < p->lanes.count; i++)
		if (p->lanes.items[i].thread != NONE)
			p->lanes.items[i].syscall = p->threads.items[p->lanes.items[i].thread].first_syscall;
}

void syscalls_run(struct timeline_private *p, struct lane *lane, uint32_t node, uint64_t from_ns, uint64_t to_ns)
{
	const struct thread_build *thread = &p->threads.items[lane->thread];

	for (; lane->syscall < thread->syscall_end; lane->syscall++) {
		struct syscall_call *call = &p->syscall_calls.items[p->syscall_order[lane->syscall]];

		if (call->start_ns >= p->timeline.start_ns + to_ns)
			return;
		if (call->start_ns >= p->timeline.start_ns + from_ns)
			call->node = node;
	}
}

/* Samples and calls of one thread, both by time. */
static void join_thread(struct timeline_private *p, const struct thread_build *thread)
{
	uint32_t at = thread->first_sample;

	for (uint32_t i = thread->first_syscall; i < thread->syscall_end; i++) {
		struct syscall_call *call = &p->syscall_calls.items[p->syscall_order[i]];

		while (at < thread->sample_end && p->samples.items[p->sample_order[at]].at_ns < call->start_ns)
			at++;
		if (call->node == NONE && at < thread->sample_end && p->samples.items[p->sample_order[at]].at_ns <= call->end_ns)
			call->node = p->samples.items[p->sample_order[at]].stack_node;
	}
}

void syscalls_join(struct timeline_private *p)
{
	for (size_t i = 0; i < p->threads.count && p->syscall_order; i++)
		if (p->threads.items[i].syscall_end)
			join_thread(p, &p->threads.items[i]);
}

/* ---- what came of it ---- */

/* The innermost Python function; where there is none, none. */
static uint32_t python_of(const struct timeline_private *p, uint32_t node)
{
	for (; node != NONE && p->nodes.items[node].function != NONE; node = p->nodes.items[node].parent)
		if (p->names.list.items[p->nodes.items[node].function].kind == FUNCTION_PYTHON)
			return p->export_function[p->nodes.items[node].function];
	return NONE;
}

static struct syscall_site *site_of(struct timeline_private *p, struct syscall_sites *sites, struct map *index, const struct syscall_call *call)
{
	uint64_t key = (uint64_t)call->name << 32 | call->node;
	uint32_t at = map_get(index, key);
	struct syscall_site *site;

	if (at != MAP_ABSENT)
		return &sites->items[at];
	site = list_add_or_fail(sites, SITES_LIMIT, &p->failed);
	if (!site)
		return NULL;
	*site = (struct syscall_site){ .syscall = call->name, .function = python_of(p, call->node), .node = call->node == NONE ? 0 : p->export_node[call->node] };
	p->failed |= !map_put(index, key, (uint32_t)sites->count - 1);
	return site;
}

static void percentiles(const struct timeline_private *p, struct syscall_summary *out)
{
	const struct operations *all = timeline_operations(&p->timeline);

	for (size_t i = 0; i < all->count; i++) {
		if (all->items[i].kind != EVENT_CPU_SYSCALL || strcmp(all->items[i].name, out->name) != 0)
			continue;
		out->longest_ns = all->items[i].longest_ns;
		out->p50_ns = (uint64_t)operation_percentile(&all->items[i], 50);
		out->p95_ns = (uint64_t)operation_percentile(&all->items[i], 95);
		return;
	}
}

/* Those that only wait for others, or for time, last; then most time first. */
static int compare_summaries(const void *left, const void *right)
{
	const struct syscall_summary *a = left, *b = right;

	if (a->waits != b->waits)
		return a->waits ? 1 : -1;
	if (a->time_ns != b->time_ns)
		return a->time_ns > b->time_ns ? -1 : 1;
	return strcmp(a->name, b->name);
}

static int compare_sites(const void *left, const void *right)
{
	const struct syscall_site *a = left, *b = right;

	if (a->time_ns != b->time_ns)
		return a->time_ns > b->time_ns ? -1 : 1;
	if (a->syscall != b->syscall)
		return a->syscall < b->syscall ? -1 : 1;
	return a->node < b->node ? -1 : a->node > b->node;
}

/* Places of the names after sorting: PLACES[i] of the one that was at I. */
static void sort_summaries(struct timeline_private *p, struct syscall_summary *items, uint32_t *places)
{
	size_t count = p->syscalls.count;

	for (size_t i = 0; i < count; i++) {
		items[i] = p->syscalls.items[i].out;
		items[i].name = strings_get(p->strings, p->syscalls.items[i].name);
		items[i].index = (uint32_t)i;
		percentiles(p, &items[i]);
	}
	qsort(items, count, sizeof *items, compare_summaries);
	for (size_t i = 0; i < count; i++)
		places[items[i].index] = (uint32_t)i;
}

void syscalls_build(struct timeline_private *p)
{
	struct syscall_summary *items = timeline_keep(p, p->syscalls.count, sizeof *items);
	uint32_t *places = timeline_keep(p, p->syscalls.count, sizeof *places);
	struct syscall_site *kept;
	struct syscall_sites sites = { 0 };
	struct map index = { 0 };

	for (size_t i = 0; i < p->syscall_calls.count && !p->failed; i++) {
		const struct syscall_call *call = &p->syscall_calls.items[i];
		struct syscall_site *site = call->node == NONE || call->name == NONE ? NULL : site_of(p, &sites, &index, call);

		if (!site)
			continue;
		site->count++;
		site->time_ns += call->end_ns - call->start_ns;
	}
	kept = timeline_keep(p, sites.count, sizeof *kept);
	if (!p->failed) {
		sort_summaries(p, items, places);
		for (size_t i = 0; i < sites.count; i++)
			sites.items[i].syscall = places[sites.items[i].syscall];
		if (sites.count) {
			qsort(sites.items, sites.count, sizeof *sites.items, compare_sites);
			memcpy(kept, sites.items, sites.count * sizeof *kept);
		}
		p->timeline.syscalls = items;
		p->timeline.syscall_count = p->syscalls.count;
		p->timeline.syscall_sites = kept;
		p->timeline.syscall_site_count = sites.count;
	}
	list_done(&sites);
	map_done(&index);
}
