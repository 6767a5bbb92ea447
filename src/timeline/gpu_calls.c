/* Calls of the GPU's runtime and driver: what they are for, when the host waited in them, and which function made them. */
#include "base/sort.h"
#include "timeline/private.h"

enum { CALLS_LIMIT = 1 << 23, SITES_LIMIT = 1 << 16 };

/* By a part of their names, first match: CUDA's runtime and driver, HIP. */
static const struct { const char *part; enum gpu_call_class class_; } classes[] = {
	{ "GraphLaunch", GPU_CALL_GRAPH_LAUNCH }, { "Synchronize", GPU_CALL_SYNC }, { "LaunchHostFunc", GPU_CALL_OTHER }, { "Launch", GPU_CALL_LAUNCH },
	{ "Memcpy", GPU_CALL_COPY }, { "MallocAsync", GPU_CALL_OTHER }, { "FreeAsync", GPU_CALL_OTHER }, { "Malloc", GPU_CALL_ALLOC }, { "Free", GPU_CALL_ALLOC },
	{ "MemAlloc", GPU_CALL_ALLOC }, { "HostAlloc", GPU_CALL_ALLOC }, { "HostRegister", GPU_CALL_ALLOC }, { "ModuleLoad", GPU_CALL_MODULE }, { "LibraryLoad", GPU_CALL_MODULE },
	{ "LinkComplete", GPU_CALL_MODULE },
};

enum gpu_call_class gpu_call_class_of(const char *name)
{
	for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
		if (strstr(name, classes[i].part))
			return classes[i].class_;
	return GPU_CALL_OTHER;
}

/* Few names, many calls. */
static uint8_t class_of_call(struct timeline_private *p, const struct event_cursor *c)
{
	size_t length;
	const char *bytes = event_str(c, 3, &length);
	uint32_t name = strings_add(p->strings, bytes, length), known = map_get(&p->call_classes, name);

	if (known != MAP_ABSENT)
		return (uint8_t)known;
	known = gpu_call_class_of(strings_get(p->strings, name));
	p->failed |= name == NONE || !map_put(&p->call_classes, name, known);
	return (uint8_t)known;
}

void gpu_calls_add(struct timeline_private *p, uint32_t process, const struct event_cursor *c, uint64_t at_ns)
{
	struct gpu_call *call;
	uint64_t end_ns;

	if (__builtin_add_overflow(at_ns, event_u64(c, 0), &end_ns) || !(call = keep_event(p, &p->gpu_calls, CALLS_LIMIT)))
		return;
	*call = (struct gpu_call){ .start_ns = at_ns, .end_ns = end_ns, .first_ns = NO_TIME, .process = process, .correlation = event_u32(c, 1), .tid = event_u32(c, 2), .thread = NONE, .node = NONE, .class_ = class_of_call(p, c) };
	call->blocked = call->class_ == GPU_CALL_SYNC;
}

/* Each process numbers its calls by itself. */
static uint64_t launch_key(uint32_t process, uint32_t correlation)
{
	return (uint64_t)process << 32 | correlation;
}

/* The last call of a correlation is the one that counts. */
static void index_launches(struct timeline_private *p)
{
	for (uint32_t i = 0; i < p->gpu_calls.count; i++) {
		const struct gpu_call *call = &p->gpu_calls.items[i];

		if (call->correlation)
			p->failed |= !map_put(&p->launches, launch_key(call->process, call->correlation), i);
	}
}

const struct gpu_call *gpu_call_of(const struct timeline_private *p, const struct gpu_span *span)
{
	return span->call == NONE ? NULL : &p->gpu_calls.items[span->call];
}

static struct gpu_call *find_call(struct timeline_private *p, struct gpu_span *span)
{
	span->call = span->correlation ? map_get(&p->launches, launch_key(span->process, span->correlation)) : NONE; /* MAP_ABSENT is NONE */
	return span->call == NONE ? NULL : &p->gpu_calls.items[span->call];
}

/* A call that lasted until its copy was done waited for it: copies to pageable memory, and those that say no "Async". */
static void join_work(struct timeline_private *p)
{
	for (size_t i = 0; i < p->devices.count; i++) {
		for (size_t j = 0; j < p->devices.items[i].spans.count; j++) {
			struct gpu_span *span = &p->devices.items[i].spans.items[j];
			struct gpu_call *call = find_call(p, span);

			if (!call)
				continue;
			call->works++;
			call->first_ns = span->start_ns < call->first_ns ? span->start_ns : call->first_ns;
			call->gpu_ns += span->end_ns - span->start_ns;
			if (span->class_ != GPU_MEMORY || span->kind == EVENT_GPU_MEMSET)
				continue;
			call->bytes += span->bytes;
			call->blocked |= call->end_ns >= span->end_ns;
		}
	}
}

static int compare_calls(const void *left, const void *right, const void *context)
{
	const struct gpu_call *calls = context, *a = &calls[*(const uint32_t *)left], *b = &calls[*(const uint32_t *)right];

	if (a->thread != b->thread)
		return a->thread < b->thread ? -1 : 1;
	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	return a < b ? -1 : a > b;
}

static void order_calls(struct timeline_private *p)
{
	uint32_t count = (uint32_t)p->gpu_calls.count;

	p->gpu_order = calloc(count + (size_t)1, sizeof *p->gpu_order);
	if (!p->gpu_order) {
		p->failed = true;
		return;
	}
	for (uint32_t i = 0; i < count; i++)
		p->gpu_order[i] = i;
	p->failed |= !sort_runs(p->gpu_order, count, sizeof *p->gpu_order, compare_calls, p->gpu_calls.items);
	for (uint32_t i = 0; i < count; i++) {
		const struct gpu_call *call = &p->gpu_calls.items[p->gpu_order[i]];
		struct thread_build *thread = call->thread == NONE ? NULL : &p->threads.items[call->thread];

		if (!thread)
			break; /* NONE sorts last */
		if (thread->call_end != i || !i)
			thread->first_call = i;
		thread->call_end = i + 1;
		if (call->blocked)
			p->failed |= !pieces_add(&thread->blocked, call->start_ns, call->end_ns, CALLS_LIMIT);
	}
}

uint64_t gpu_sync_within(const struct timeline_private *p, const struct thread_build *thread, uint64_t from_ns, uint64_t to_ns)
{
	return pieces_within(&thread->syncs, p->timeline.start_ns + from_ns, p->timeline.start_ns + to_ns);
}

uint64_t gpu_sync_cpu(const struct thread_build *thread, uint64_t sync_ns, uint64_t wall_ns, uint64_t cpu_ns)
{
	uint64_t asleep_ns = wall_ns > cpu_ns ? wall_ns - cpu_ns : 0;

	if (thread->syncs_sleep)
		return sync_ns > asleep_ns ? sync_ns - asleep_ns : 0;
	return sync_ns < cpu_ns ? sync_ns : cpu_ns;
}

/* Drivers spin unless they are told to sleep; readings in the middle of a wait say what this one does. */
static bool sleeps_in_syncs(const struct timeline_private *p, const struct thread_build *thread)
{
	size_t asleep = 0, awake = 0;

	for (size_t i = 0; i < thread->points.count; i++) {
		const struct thread_point *point = &thread->points.items[i].out;

		if (!gpu_sync_within(p, thread, point->at_ns, point->at_ns + 1))
			continue;
		if (point->state == 'R')
			awake++;
		else
			asleep++;
	}
	return asleep > awake;
}

void gpu_calls_prepare(struct timeline_private *p)
{
	if (!p->gpu_calls.count)
		return;
	index_launches(p);
	join_work(p);
	for (size_t i = 0; i < p->gpu_calls.count; i++) {
		struct gpu_call *call = &p->gpu_calls.items[i];
		uint32_t thread = map_get(&p->thread_index, call->tid);

		if (thread == MAP_ABSENT)
			continue;
		call->thread = thread;
		p->threads.items[thread].drives_gpu = true;
		if (call->class_ == GPU_CALL_SYNC)
			p->failed |= !pieces_add(&p->threads.items[thread].syncs, call->start_ns, call->end_ns, CALLS_LIMIT);
	}
	order_calls(p);
	for (size_t i = 0; i < p->threads.count; i++) {
		struct thread_build *thread = &p->threads.items[i];
		struct pieces *blocked = &thread->blocked;
		uint64_t waited_ns;

		pieces_melt(&thread->syncs);
		thread->syncs_sleep = thread->syncs.count && sleeps_in_syncs(p, thread);
		pieces_melt(blocked);
		waited_ns = pieces_length(blocked);
		if (waited_ns > p->timeline.gpu.blocked_most_ns)
			p->timeline.gpu.blocked_most_ns = waited_ns;
	}
	for (size_t i = 0; i < p->lanes.count; i++)
		if (p->lanes.items[i].thread != NONE)
			p->lanes.items[i].call = p->threads.items[p->lanes.items[i].thread].first_call;
}

void gpu_calls_run(struct timeline_private *p, struct lane *lane, uint32_t node, uint64_t from_ns, uint64_t to_ns)
{
	const struct thread_build *thread = &p->threads.items[lane->thread];

	for (; lane->call < thread->call_end; lane->call++) {
		struct gpu_call *call = &p->gpu_calls.items[p->gpu_order[lane->call]];

		if (call->start_ns >= p->timeline.start_ns + to_ns)
			return;
		if (call->start_ns >= p->timeline.start_ns + from_ns)
			call->node = node;
	}
}

/* ---- sites ---- */

/* The runtime's own functions say nothing about who called them. */
static bool is_runtime(const char *name)
{
	return strncmp(name, "cuda", 4) == 0 || strncmp(name, "hip", 3) == 0 || (name[0] == 'c' && name[1] == 'u' && name[2] >= 'A' && name[2] <= 'Z');
}

static uint32_t site_function(const struct timeline_private *p, uint32_t node)
{
	uint32_t innermost = NONE;

	for (; node != NONE && p->nodes.items[node].function != NONE; node = p->nodes.items[node].parent) {
		uint32_t function = p->nodes.items[node].function;

		if (p->names.list.items[function].kind == FUNCTION_PYTHON)
			return function;
		if (innermost == NONE && !is_runtime(strings_get(p->strings, p->names.list.items[function].name)))
			innermost = function;
	}
	return innermost;
}

static int compare_sites(const void *left, const void *right)
{
	const struct gpu_site *a = left, *b = right;

	if (a->time_ns != b->time_ns)
		return a->time_ns > b->time_ns ? -1 : 1;
	if (a->class_ != b->class_)
		return (int)a->class_ - (int)b->class_;
	return a->function < b->function ? -1 : a->function > b->function;
}

static void count_call(struct gpu_site *site, const struct gpu_call *call)
{
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): the index has places of the list only */
	site->count++;
	site->time_ns += call->end_ns - call->start_ns;
	site->blocked += call->blocked;
	site->blocked_ns += call->blocked ? call->end_ns - call->start_ns : 0;
	site->bytes += call->bytes;
	site->gpu_ns += call->gpu_ns;
}

/* What devices did belongs to the stack that asked for it. */
static void charge_nodes(struct timeline_private *p)
{
	struct tree_node *nodes = (struct tree_node *)p->timeline.nodes;

	for (size_t i = 0; i < p->gpu_calls.count; i++) {
		const struct gpu_call *call = &p->gpu_calls.items[i];

		if (call->node != NONE && p->export_node[call->node])
			nodes[p->export_node[call->node]].gpu_ns += call->gpu_ns;
	}
}

void gpu_sites_build(struct timeline_private *p)
{
	LIST(struct gpu_site) sites = { 0 };
	struct gpu_site *kept;
	struct map index = { 0 };

	charge_nodes(p);
	for (size_t i = 0; i < p->gpu_calls.count && !p->failed; i++) {
		const struct gpu_call *call = &p->gpu_calls.items[i];
		uint32_t function = site_function(p, call->node);
		uint64_t key = (uint64_t)call->class_ << 32 | function;
		uint32_t at = map_get(&index, key);
		struct gpu_site *site;

		if (at == MAP_ABSENT) {
			site = list_add_or_fail(&sites, SITES_LIMIT, &p->failed);
			if (!site)
				continue;
			*site = (struct gpu_site){ .class_ = (enum gpu_call_class)call->class_, .function = function == NONE ? NONE : p->export_function[function] };
			at = (uint32_t)sites.count - 1;
			p->failed |= !map_put(&index, key, at);
		}
		count_call(&sites.items[at], call);
	}
	if (sites.count)
		qsort(sites.items, sites.count, sizeof *sites.items, compare_sites);
	kept = arena_alloc(&p->arena, sites.count * sizeof *kept + 1);
	if (kept && sites.count)
		memcpy(kept, sites.items, sites.count * sizeof *kept);
	p->failed |= !kept;
	p->timeline.gpu.sites = kept;
	p->timeline.gpu.site_count = kept ? sites.count : 0;
	list_done(&sites);
	map_done(&index);
}
