/* Numbers over time that are shown as counters beside the time line: which, by what name, and how they read. */
#include "report/export_counters.h"

#include <string.h>

#include "timeline/memory.h"

#define PCT_OF_NS 1e7 /* ns in a second, as per cent */
#define MIB 1048576.0

/* RATE: the counter only grows, what it gained per second is shown. */
static const struct { const char *counter, *name; bool rate; double unit; } rows[] = {
	{ "cgroup_memory_bytes", "memory of the control group, MiB", false, MIB },
	{ "cgroup_memory_reclaims", "memory limit reached, per second", true, 1 },
	{ "cgroup_throttled_ns", "held back by the CPU quota, ms per second", true, 1e6 },
	{ "pressure_cpu_some_ns", "some thread wants a CPU, % of the time", true, PCT_OF_NS },
	{ "pressure_memory_some_ns", "some thread wants memory, % of the time", true, PCT_OF_NS },
	{ "pressure_io_some_ns", "some thread wants a disk, % of the time", true, PCT_OF_NS },
	{ "numa_thread_migrations", "threads that changed memory nodes, per second", true, 1 },
	{ "syscalls", "system calls, per second", true, 1 },
};

static void put_points(const struct counter_point *points, size_t count, bool rate, double unit, const struct counter_sink *sink)
{
	for (size_t i = rate; i < count; i++) {
		double value = (double)points[i].value, seconds = 1;

		if (rate) {
			seconds = (double)(points[i].at_ns - points[i - 1].at_ns) / 1e9;
			value -= (double)points[i - 1].value;
		}
		if (seconds > 0 && value >= 0)
			sink->point(sink->context, points[rate ? i - 1 : i].at_ns, value / seconds / unit);
	}
}

static bool is_flat(const struct counter *counter)
{
	return counter->first == counter->max && counter->last == counter->first;
}

static void put_counter(const struct timeline *timeline, const char *name, const char *shown, bool rate, double unit, const struct counter_sink *sink)
{
	for (size_t i = 0; i < timeline->counter_count; i++) {
		const struct counter *counter = &timeline->counters[i];

		if (strcmp(counter->name, name) != 0 || counter->point_count < 2 || (rate && is_flat(counter)))
			continue;
		sink->begin(sink->context, shown);
		put_points(counter->points, counter->point_count, rate, unit, sink);
	}
}

/* By samples; what is live is not told where ends may be missing. */
static void put_memory(const struct memory_facts *memory, const struct counter_sink *sink)
{
	if (!memory->all.samples || !memory->part_count)
		return;
	sink->begin(sink->context, "allocated, MiB per second");
	for (uint32_t i = 0; i < memory->part_count; i++)
		sink->point(sink->context, i * memory->part_ns, (double)memory->parts[i].bytes / ((double)memory->part_ns / 1e9) / MIB);
	if (memory->ends_missing)
		return;
	sink->begin(sink->context, "allocated since the beginning and not released, MiB");
	for (uint32_t i = 0; i < memory->part_count; i++)
		sink->point(sink->context, (i + 1) * memory->part_ns, (double)memory->parts[i].live_bytes / MIB);
}

/* Else an empty stretch of the time line would look as if nothing had been called. */
static void put_windows(const struct timeline *timeline, const struct counter_sink *sink)
{
	if (!timeline->window_count || timeline->coverage >= 1)
		return;
	sink->begin(sink->context, "calls are traced (1) or not (0)");
	if (timeline->windows[0].start_ns)
		sink->point(sink->context, 0, 0);
	for (size_t i = 0; i < timeline->window_count; i++) {
		sink->point(sink->context, timeline->windows[i].start_ns, 1);
		if (timeline->windows[i].end_ns < timeline->duration_ns)
			sink->point(sink->context, timeline->windows[i].end_ns, 0);
	}
}

void export_counters(const struct timeline *timeline, const struct counter_sink *sink)
{
	put_windows(timeline, sink);
	for (size_t i = 0; i < timeline->process_count; i++) {
		if (!timeline->processes[i].rss_point_count)
			continue;
		sink->begin(sink->context, "resident memory, MiB");
		put_points(timeline->processes[i].rss_points, timeline->processes[i].rss_point_count, false, MIB, sink);
	}
	for (size_t row = 0; row < sizeof rows / sizeof *rows; row++)
		put_counter(timeline, rows[row].counter, rows[row].name, rows[row].rate, rows[row].unit, sink);
	put_memory(timeline_memory(timeline), sink);
	for (int which = 0; which < THREAD_COUNTERS; which++) {
		const struct thread_counter_row *row = thread_counter_row((enum thread_counter)which);

		put_counter(timeline, row->name, row->over_time, true, row->unit, sink);
	}
}
