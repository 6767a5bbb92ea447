/* Where a finding points: functions by what the rule is about. */
#include <stdlib.h>
#include <string.h>

#include "analyze/rule.h"
#include "analyze/syscalls.h"
#include "timeline/memory.h"

typedef double (*function_value)(const struct rule_state *state, size_t index);

static const struct function *function_at(const struct rule_state *state, size_t index)
{
	return &state->p->timeline->functions[index];
}

static void rule_point(struct rule_state *state, uint32_t function)
{
	if (function == UINT32_MAX || state->function_count >= LOCATIONS_LIMIT)
		return;
	for (size_t i = 0; i < state->function_count; i++)
		if (state->functions[i] == function)
			return;
	state->functions[state->function_count++] = function;
}

void rule_example(struct rule_state *state, struct example example)
{
	if (state->example_count < state->rule->examples && state->example_count < EXAMPLES_LIMIT)
		state->examples[state->example_count++] = example;
}

/* Those with most of VALUE, at most LIMIT that have a tenth of the first. */
static void point_at_most(struct rule_state *state, function_value value, size_t limit)
{
	double before = INFINITY, first = 0;
	size_t before_index = SIZE_MAX, count = state->p->timeline->function_count;

	for (size_t n = 0; n < limit; n++) {
		size_t best = SIZE_MAX;

		for (size_t i = 0; i < count; i++) {
			double at = value(state, i);

			if (at <= 0 || at > before || (at == before && (before_index == SIZE_MAX || i <= before_index)))
				continue;
			if (best == SIZE_MAX || at > value(state, best))
				best = i;
		}
		if (best == SIZE_MAX || value(state, best) < first / 10)
			return;
		before = value(state, best);
		before_index = best;
		if (!n)
			first = before;
		rule_point(state, (uint32_t)best);
	}
}

static double cpu_of(const struct rule_state *state, size_t index)
{
	return function_at(state, index)->waiter ? 0 : (double)function_at(state, index)->cpu_work_ns;
}

static double lock_wait_of(const struct rule_state *state, size_t index)
{
	return (double)function_at(state, index)->lock_wait_ns;
}

static double exceptions_of(const struct rule_state *state, size_t index)
{
	return (double)function_at(state, index)->exceptions;
}

static double matched_of(const struct rule_state *state, size_t index)
{
	return state->matched[index] ? (double)function_at(state, index)->total_ns + (double)function_at(state, index)->cpu_work_ns + 1 : 0;
}

static void find_cpu(struct rule_state *state, size_t limit) { point_at_most(state, cpu_of, limit); }
static void find_locks(struct rule_state *state, size_t limit) { point_at_most(state, lock_wait_of, limit); }
static void find_exceptions(struct rule_state *state, size_t limit) { point_at_most(state, exceptions_of, limit); }
static void find_matched(struct rule_state *state, size_t limit) { point_at_most(state, matched_of, limit); }

static void point_at_part(struct rule_state *state, function_test test, bool in_call)
{
	struct inclusive part = inclusive_time(state->p, test, in_call);

	rule_point(state, part.caller);
	rule_point(state, part.top);
}

static void find_imports(struct rule_state *state, size_t limit) { point_at_part(state, function_is_import, true); }
static void find_logging(struct rule_state *state, size_t limit) { point_at_part(state, function_is_logging, false); }
static void find_collectors(struct rule_state *state, size_t limit) { point_at_part(state, function_is_collector, false); }
static void find_tokenizers(struct rule_state *state, size_t limit) { point_at_part(state, function_is_tokenizer, false); }

/* ---- devices ---- */

static double tallied(const struct rule_state *state, size_t index)
{
	return state->tally[index];
}

static void point_at_tally(struct rule_state *state, size_t limit, enum gpu_idle cause, enum gpu_call_class first, enum gpu_call_class second)
{
	const struct timeline *timeline = state->p->timeline;
	const struct gpu_facts *gpu = &timeline->gpu;

	memset(state->tally, 0, timeline->function_count * sizeof *state->tally);
	for (size_t i = 0; i < gpu->idle_stack_count && cause != GPU_IDLE_CAUSES; i++)
		if (gpu->idle_stacks[i].cause == cause && gpu->idle_stacks[i].node != UINT32_MAX && timeline->nodes[gpu->idle_stacks[i].node].function != UINT32_MAX)
			state->tally[timeline->nodes[gpu->idle_stacks[i].node].function] += (double)gpu->idle_stacks[i].time_ns;
	for (size_t i = 0; i < gpu->site_count && first != GPU_CALL_CLASSES; i++)
		if ((gpu->sites[i].class_ == first || gpu->sites[i].class_ == second) && gpu->sites[i].function != UINT32_MAX)
			state->tally[gpu->sites[i].function] += (double)gpu->sites[i].time_ns;
	point_at_most(state, tallied, limit);
}

/* And their longest gaps. */
static void point_at_idle(struct rule_state *state, size_t limit, enum gpu_idle cause)
{
	const struct timeline *timeline = state->p->timeline;

	point_at_tally(state, limit, cause, GPU_CALL_CLASSES, GPU_CALL_CLASSES);
	for (size_t i = 0; i < timeline->gpu.idle_stack_count; i++) {
		const struct gpu_idle_stack *stack = &timeline->gpu.idle_stacks[i];
		bool known = stack->node != UINT32_MAX && timeline->nodes[stack->node].function != UINT32_MAX;

		if (stack->cause == cause)
			rule_example(state, (struct example){ stack->longest_at_ns, stack->longest_ns, known ? timeline->functions[timeline->nodes[stack->node].function].name : "idle device" });
	}
}

static void find_host_late(struct rule_state *state, size_t limit) { point_at_idle(state, limit, GPU_HOST_LATE); }
static void find_sync_caused(struct rule_state *state, size_t limit) { point_at_idle(state, limit, GPU_SYNC_CAUSED); }
static void find_allocs(struct rule_state *state, size_t limit) { point_at_tally(state, limit, GPU_IDLE_CAUSES, GPU_CALL_ALLOC, GPU_CALL_ALLOC); }
static void find_copies(struct rule_state *state, size_t limit) { point_at_tally(state, limit, GPU_IDLE_CAUSES, GPU_CALL_COPY, GPU_CALL_COPY); }
static void find_launches(struct rule_state *state, size_t limit) { point_at_tally(state, limit, GPU_IDLE_CAUSES, GPU_CALL_LAUNCH, GPU_CALL_GRAPH_LAUNCH); }

/* Calls that wait: synchronisation, and copies that block. */
static void find_syncs(struct rule_state *state, size_t limit)
{
	const struct gpu_facts *gpu = &state->p->timeline->gpu;

	memset(state->tally, 0, state->p->timeline->function_count * sizeof *state->tally);
	for (size_t i = 0; i < gpu->site_count; i++)
		if (gpu->sites[i].function != UINT32_MAX)
			state->tally[gpu->sites[i].function] += (double)gpu->sites[i].blocked_ns;
	point_at_most(state, tallied, limit);
}

/* ---- system calls ---- */

typedef bool (*site_test)(const struct timeline *timeline, const struct syscall_site *site);

static bool site_works(const struct timeline *timeline, const struct syscall_site *site)
{
	return !timeline->syscalls[site->syscall].waits;
}

static bool site_syncs(const struct timeline *timeline, const struct syscall_site *site)
{
	return strstr(timeline->syscalls[site->syscall].name, "sync") != NULL;
}

static void point_at_sites(struct rule_state *state, size_t limit, site_test test)
{
	const struct timeline *timeline = state->p->timeline;

	memset(state->tally, 0, timeline->function_count * sizeof *state->tally);
	for (size_t i = 0; i < timeline->syscall_site_count; i++)
		if (timeline->syscall_sites[i].function != UINT32_MAX && test(timeline, &timeline->syscall_sites[i]))
			state->tally[timeline->syscall_sites[i].function] += (double)timeline->syscall_sites[i].time_ns;
	point_at_most(state, tallied, limit);
}

static void find_syscalls(struct rule_state *state, size_t limit) { point_at_sites(state, limit, site_works); }
static void find_disk_syncs(struct rule_state *state, size_t limit) { point_at_sites(state, limit, site_syncs); }
static void find_loop_blockers(struct rule_state *state, size_t limit) { point_at_sites(state, limit, syscall_blocks_loop); }

static void find_callback(struct rule_state *state, size_t limit)
{
	uint32_t function, thread;

	if (longest_callback(state->p, &function, &thread))
		rule_point(state, function);
}

/* ---- memory ---- */

static void point_at_memory(struct rule_state *state, size_t limit, bool growing)
{
	const struct memory_facts *facts = timeline_memory(state->p->timeline);

	memset(state->tally, 0, state->p->timeline->function_count * sizeof *state->tally);
	for (size_t i = 0; i < facts->site_count; i++) {
		const struct memory_site *site = &facts->sites[i];

		if (site->frame_count && site->frames[0].function != UINT32_MAX && (!growing || memory_site_grows(site)))
			state->tally[site->frames[0].function] += growing ? (double)site->live_bytes : (double)site->brief_bytes;
	}
	point_at_most(state, tallied, limit);
}

static void find_allocators(struct rule_state *state, size_t limit) { point_at_memory(state, limit, false); }
static void find_growing(struct rule_state *state, size_t limit) { point_at_memory(state, limit, true); }

static void find_faulters(struct rule_state *state, size_t limit)
{
	const struct timeline *timeline = state->p->timeline;

	memset(state->tally, 0, timeline->function_count * sizeof *state->tally);
	for (size_t i = 0; i < timeline->counter_site_count; i++)
		if (timeline->counter_sites[i].function < timeline->function_count)
			state->tally[timeline->counter_sites[i].function] += (double)timeline->counter_sites[i].gained[0] + (double)timeline->counter_sites[i].gained[1];
	point_at_most(state, tallied, limit);
}

static const struct place places[] = {
	{ "alloc_sites", "functions whose calls of cudaMalloc, cudaFree and the like took longest", find_allocs },
	{ "allocators", "functions that allocated most of what was released within a second", find_allocators },
	{ "callback", "what the longest callback of an event loop called", find_callback },
	{ "collectors", "the function that called gc.collect most", find_collectors },
	{ "copy_sites", "functions whose calls that copy took longest", find_copies },
	{ "cpu", "functions with most CPU time, those that wait left out", find_cpu },
	{ "disk_syncs", "functions that wrote files through to the disk for longest", find_disk_syncs },
	{ "exceptions", "functions that most exceptions left", find_exceptions },
	{ "faulters", "functions with most page faults, where --counters told them", find_faulters },
	{ "growing", "functions that allocated most of what is not released and grows", find_growing },
	{ "host_late", "functions that ran while the device waited for the host", find_host_late },
	{ "imports", "the function that imported most while it was called, and what it imported", find_imports },
	{ "launch_sites", "functions whose calls that launch kernels took longest", find_launches },
	{ "locks", "functions that waited longest for locks", find_locks },
	{ "logging", "the function that logged most, and what it called", find_logging },
	{ "loop_blockers", "functions whose system calls held up an event loop for longest", find_loop_blockers },
	{ "matched", "functions that the rule's filters took, most time first", find_matched },
	{ "sync_caused", "functions that ran while the device was idle after a wait", find_sync_caused },
	{ "sync_sites", "functions that waited longest for devices", find_syncs },
	{ "syscalls", "functions whose system calls took longest, those that only wait left out", find_syscalls },
	{ "tokenizers", "the function that called tokenizers most, and what it called", find_tokenizers },
};

const struct place *place_find(const char *name)
{
	for (size_t i = 0; i < sizeof places / sizeof *places; i++)
		if (strcmp(places[i].name, name) == 0)
			return &places[i];
	return NULL;
}
