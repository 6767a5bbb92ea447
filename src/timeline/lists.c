/* The rest of what the header promises: threads, windows, processes, counters as sorted arrays that never change. */
#include "timeline/private.h"

void *timeline_keep(struct timeline_private *p, size_t count, size_t size)
{
	void *memory = arena_alloc(&p->arena, (count ? count : 1) * size);

	if (!memory)
		p->failed = true;
	return memory;
}

struct thread_order { uint32_t tid, index; };

static int compare_tids(const void *left, const void *right)
{
	const struct thread_order *a = left, *b = right;

	return a->tid < b->tid ? -1 : a->tid > b->tid;
}

static void keep_thread(struct timeline_private *p, struct thread_build *thread, struct thread *out)
{
	struct thread_point *points = timeline_keep(p, thread->points.count, sizeof *points);

	if (!points)
		return;
	*out = thread->out;
	out->process = thread->process;
	out->name = strings_get(p->strings, thread->name);
	out->ours = !out->python && strcmp(out->name, "inferscope") == 0;
	out->unhooked = thread->unhooked ? strings_get(p->strings, thread->unhooked) : NULL;
	for (size_t i = 0; i < thread->points.count; i++)
		points[i] = thread->points.items[i].out;
	out->points = points;
	out->point_count = (uint32_t)thread->points.count;
}

void lists_threads(struct timeline_private *p)
{
	size_t count = p->threads.count;
	struct thread *threads = timeline_keep(p, count, sizeof *threads);
	struct thread_order *order = timeline_keep(p, count, sizeof *order);

	p->export_thread = timeline_keep(p, count, sizeof *p->export_thread);
	if (p->failed)
		return;
	for (size_t i = 0; i < count; i++)
		order[i] = (struct thread_order){ p->threads.items[i].out.tid, (uint32_t)i };
	qsort(order, count, sizeof *order, compare_tids);
	for (size_t i = 0; i < count; i++) {
		p->export_thread[order[i].index] = (uint32_t)i;
		keep_thread(p, &p->threads.items[order[i].index], &threads[i]);
	}
	p->timeline.threads = threads;
	p->timeline.thread_count = count;
}

static int compare_windows(const void *left, const void *right)
{
	const struct window *a = left, *b = right;

	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	return a->end_ns < b->end_ns ? -1 : a->end_ns > b->end_ns;
}

void lists_windows(struct timeline_private *p)
{
	struct window *windows;
	size_t count = 0, watched = 0;
	double on = 0;

	for (size_t i = 0; i < p->processes.count; i++)
		count += p->processes.items[i].windows.count;
	windows = timeline_keep(p, count, sizeof *windows);
	if (p->failed)
		return;
	count = 0;
	for (size_t i = 0; i < p->processes.count; i++) {
		const struct process_build *process = &p->processes.items[i];

		watched += process->has_times || process->windows.count;
		for (size_t j = 0; j < process->windows.count; j++) {
			const struct window_build *window = &process->windows.items[j];

			if (window->end_ns <= window->start_ns)
				continue;
			windows[count++] = (struct window){ window->start_ns, window->end_ns, window->reason };
			on += (double)(window->end_ns - window->start_ns);
		}
	}
	qsort(windows, count, sizeof *windows, compare_windows);
	p->timeline.windows = windows;
	p->timeline.window_count = count;
	if (watched && p->timeline.duration_ns)
		p->timeline.coverage = on / ((double)p->timeline.duration_ns * (double)watched);
}

void lists_throttles(struct timeline_private *p)
{
	struct throttle_change *throttles = timeline_keep(p, p->throttles.count, sizeof *throttles);
	uint64_t start = p->timeline.start_ns;

	if (p->failed)
		return;
	for (size_t i = 0; i < p->throttles.count; i++) {
		throttles[i] = p->throttles.items[i].out;
		throttles[i].at_ns = throttles[i].at_ns > start ? throttles[i].at_ns - start : 0;
		if (p->throttles.items[i].function != NONE)
			throttles[i].function = p->export_function[p->throttles.items[i].function];
	}
	p->timeline.throttles = throttles;
	p->timeline.throttle_count = p->throttles.count;
}

void counter_point_add(struct timeline_private *p, struct counter_points *points, uint64_t at_ns, int64_t value)
{
	struct counter_point *point = points->count && points->items[points->count - 1].at_ns > at_ns ? NULL : list_add_or_fail(points, COUNTER_POINTS, &p->failed);

	if (point)
		*point = (struct counter_point){ at_ns, value };
}

/* Those of the measurement: what was read before it began is no point of its time line. */
static const struct counter_point *keep_points(struct timeline_private *p, const struct counter_points *points, uint32_t *count)
{
	struct counter_point *kept = timeline_keep(p, points->count, sizeof *kept);

	*count = 0;
	for (size_t i = 0; kept && i < points->count; i++)
		if (points->items[i].at_ns >= p->timeline.start_ns)
			kept[(*count)++] = (struct counter_point){ points->items[i].at_ns - p->timeline.start_ns, points->items[i].value };
	return kept;
}

void lists_processes(struct timeline_private *p)
{
	struct process *processes = timeline_keep(p, p->processes.count, sizeof *processes);

	if (!processes)
		return;
	for (size_t i = 0; i < p->processes.count; i++) {
		struct process_build *process = &p->processes.items[i];

		processes[i] = process->out;
		processes[i].command = strings_get(p->strings, process->command);
		processes[i].executable = strings_get(p->strings, process->executable);
		processes[i].python = strings_get(p->strings, process->python);
		processes[i].rss_points = keep_points(p, &process->rss, &processes[i].rss_point_count);
	}
	p->timeline.processes = processes;
	p->timeline.process_count = p->processes.count;
}

static int compare_counters(const void *left, const void *right)
{
	return strcmp(((const struct counter *)left)->name, ((const struct counter *)right)->name);
}

static int compare_captures(const void *left, const void *right)
{
	return strcmp(((const struct capture_value *)left)->key, ((const struct capture_value *)right)->key);
}

static int compare_devices(const void *left, const void *right)
{
	uint32_t a = ((const struct device *)left)->id, b = ((const struct device *)right)->id;

	return a < b ? -1 : a > b;
}

void lists_small(struct timeline_private *p)
{
	struct counter *counters = timeline_keep(p, p->counters.count, sizeof *counters);
	struct capture_value *captures = timeline_keep(p, p->captures.count, sizeof *captures);
	struct device *devices = timeline_keep(p, p->devices.count, sizeof *devices);

	if (p->failed)
		return;
	for (size_t i = 0; i < p->counters.count; i++) {
		counters[i] = p->counters.items[i].out;
		counters[i].name = strings_get(p->strings, p->counters.items[i].name);
		counters[i].points = keep_points(p, &p->counters.items[i].points, &counters[i].point_count);
	}
	for (size_t i = 0; i < p->captures.count; i++)
		captures[i] = (struct capture_value){ strings_get(p->strings, p->captures.items[i].key), strings_get(p->strings, p->captures.items[i].value) };
	for (size_t i = 0; i < p->devices.count; i++)
		devices[i] = p->devices.items[i].out;
	qsort(counters, p->counters.count, sizeof *counters, compare_counters);
	qsort(captures, p->captures.count, sizeof *captures, compare_captures);
	qsort(devices, p->devices.count, sizeof *devices, compare_devices);
	p->timeline.counters = counters;
	p->timeline.captures = captures;
	p->timeline.devices = devices;
	p->timeline.counter_count = p->counters.count;
	p->timeline.capture_count = p->captures.count;
	p->timeline.device_count = p->devices.count;
}

void lists_quality(struct timeline_private *p)
{
	struct timeline_quality *quality = &p->timeline.quality;

	for (size_t i = 0; i < p->lanes.count; i++) {
		quality->events += p->lanes.items[i].events;
		quality->lost_events += p->lanes.items[i].lost;
	}
	for (size_t i = 0; i < p->nodes.count; i++)
		quality->unresolved_names += p->nodes.items[i].function == NAME_UNKNOWN;
	for (size_t i = 0; i < p->timeline.counter_count; i++) {
		const struct counter *counter = &p->timeline.counters[i];
		uint64_t last = counter->last > 0 ? (uint64_t)counter->last : 0;

		if (strcmp(counter->name, "skipped_calls") == 0)
			quality->skipped_calls = last;
		else if (strcmp(counter->name, "torn_samples") == 0)
			quality->torn_samples = last;
		else if (strcmp(counter->name, "lost_events") == 0 && last > quality->lost_events)
			quality->lost_events = last;
	}
}
