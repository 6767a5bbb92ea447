/* Builds a timeline: facts, segments, calls, samples, totals, in this order. What only the building needs is freed at its end. */
#include "timeline/private.h"

static void done_building(struct timeline_private *p)
{
	for (size_t i = 0; i < p->threads.count; i++) {
		list_done(&p->threads.items[i].points);
		list_done(&p->threads.items[i].blocked);
		list_done(&p->threads.items[i].syncs);
		list_done(&p->threads.items[i].rests);
	}
	for (size_t i = 0; i < p->devices.count; i++)
		list_done(&p->devices.items[i].spans);
	list_done(&p->stacks);
	list_done(&p->samples);
	list_done(&p->gil);
	map_done(&p->gil_index);
	memory_done_building(p);
	tasks_done_building(p);
	free(p->sample_order);
	p->sample_order = NULL;
	list_done(&p->nodes);
	list_done(&p->gpu_calls);
	list_done(&p->gpu_gaps);
	list_done(&p->gains);
	list_done(&p->syscalls);
	list_done(&p->syscall_calls);
	map_done(&p->syscall_index);
	free(p->syscall_order);
	p->syscall_order = NULL;
	list_done(&p->scopes);
	open_scopes_done(&p->open_scopes);
	list_done(&p->scopes_open);
	map_done(&p->launches);
	map_done(&p->call_classes);
	free(p->gpu_order);
	p->gpu_order = NULL;
	list_done(&p->devices);
	list_done(&p->device_abouts);
	for (size_t i = 0; i < p->counters.count; i++)
		list_done(&p->counters.items[i].points);
	list_done(&p->counters);
	list_done(&p->throttles);
	list_done(&p->cpu_readings);
	list_done(&p->captures);
	map_done(&p->stack_index);
	map_done(&p->counter_index);
	map_done(&p->capture_index);
	free(p->batches);
	p->batches = NULL;
	free(p->node_table);
	p->node_table = NULL;
}

static void private_free(struct timeline_private *p)
{
	if (!p)
		return;
	done_building(p);
	for (size_t i = 0; i < p->lanes.count; i++) {
		list_done(&p->lanes.items[i].gaps);
		list_done(&p->lanes.items[i].segments);
	}
	for (size_t i = 0; i < p->processes.count; i++) {
		list_done(&p->processes.items[i].windows);
		list_done(&p->processes.items[i].rss);
		list_done(&p->processes.items[i].refs);
	}
	list_done(&p->lanes);
	list_done(&p->threads);
	list_done(&p->processes);
	map_done(&p->process_index);
	map_done(&p->lane_index);
	map_done(&p->thread_index);
	free(p->idle_gaps);
	operations_done(p);
	memory_done(p);
	tasks_done(p);
	names_done(p);
	strings_free(p->strings);
	arena_done(&p->arena);
	free(p);
}

int timeline_build(struct trace *trace, struct timeline **out, struct error *err)
{
	return timeline_build_scoped(trace, NULL, out, err);
}

int timeline_build_scoped(struct trace *trace, const struct scope_patterns *patterns, struct timeline **out, struct error *err)
{
	struct timeline_private *p = calloc(1, sizeof *p);
	struct trace_info info;
	int result = -1;

	if (!p)
		return fail(err, ERR_MEMORY, "building the timeline: out of memory");
	arena_init(&p->arena);
	p->timeline.private_ = p;
	p->patterns = patterns;
	p->strings = strings_new();
	if (!p->strings || !names_begin(p) || !tree_begin(p)) {
		fail(err, ERR_MEMORY, "building the timeline: out of memory");
		goto out;
	}
	if (lanes_read(p, trace, err) < 0)
		goto out;
	info = trace_info(trace);
	p->timeline.quality.damaged_chunks += info.damaged_chunks;
	p->timeline.quality.truncated = info.truncated;
	segments_build(p);
	scopes_mark(p);
	gpu_prepare(p);
	syscalls_prepare(p);
	samples_weigh(p);
	samples_sort(p);
	if (p->failed) {
		fail(err, ERR_MEMORY, "building the timeline: out of memory");
		goto out;
	}
	if (trace_rewind(trace, err) < 0 || calls_read(p, trace, err) < 0)
		goto out;
	scopes_melt(p);
	rests_build(p);
	samples_resolve(p);
	syscalls_join(p);
	natives_match(p);
	counted_share(p);
	natives_split(p);
	operations_build(p);
	memory_prepare(p);
	totals_build(p);
	if (!p->failed) {
		/* In the numbers of the lists that totals made. */
		moments_build(p);
		syscalls_build(p);
		counters_build(p);
		turns_build(p);
		memory_build(p);
		tasks_build(p);
	}
	if (p->failed) {
		fail(err, ERR_MEMORY, "building the timeline: out of memory");
		goto out;
	}
	p->timeline.start_unix_ns = info.created_unix_ns;
	wall_build(p);
	done_building(p);
	*out = &p->timeline;
	p = NULL;
	result = 0;
out:
	private_free(p);
	return result;
}

void timeline_free(struct timeline *timeline)
{
	if (timeline)
		private_free(timeline->private_);
}

const char *timeline_capture(const struct timeline *timeline, const char *key)
{
	for (size_t i = 0; i < timeline->capture_count; i++)
		if (strcmp(timeline->captures[i].key, key) == 0)
			return timeline->captures[i].value;
	return NULL;
}

int64_t timeline_counter(const struct timeline *timeline, const char *name, int64_t fallback)
{
	for (size_t i = 0; i < timeline->counter_count; i++)
		if (strcmp(timeline->counters[i].name, name) == 0)
			return timeline->counters[i].last;
	return fallback;
}
