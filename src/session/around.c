/* Readings from /proc and /sys beside the process, as events. */
#include "session/around.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/smallfile.h"
#include "session/capture.h"
#include "session/pools.h"

enum { SEATS_MAX = 1 << 16 };

/*
 * smaps_rollup and numa_maps walk all page tables, and what the process maps or unmaps meanwhile waits: 150 ns for each page of 4 KiB (40 ms of CPU time for 1 GiB, Linux
 * 6.18 in a virtual machine). Of a process with more memory than takes some 5 ms they are not read.
 */
#define WALK_BYTES_MAX (UINT64_C(128) << 20)

void around_init(struct around *around, const struct procfs *procfs, const char *sysfs, pid_t pid)
{
	memset(around, 0, sizeof *around);
	around->procfs = procfs;
	around->pid = pid;
	cgroup_find(procfs, pid, &around->cgroup);
	numa_find(sysfs, &around->numa);
}

void around_done(struct around *around)
{
	map_done(&around->seat_of);
	list_done(&around->seats);
}

static void counter(struct event_builder *builder, uint64_t ticks, const char *name, int64_t value)
{
	if (value != CGROUP_UNKNOWN)
		event_add(builder, ticks, EVENT_COUNTER, 0, 0, name, value);
}

/* ---- control groups ---- */

static void tell_group(const struct around *around, uint64_t ticks, struct event_builder *builder)
{
	struct cgroup_reading now;

	cgroup_read(&around->cgroup, &now);
	counter(builder, ticks, "cgroup_periods", now.periods);
	counter(builder, ticks, "cgroup_throttled_periods", now.throttled_periods);
	counter(builder, ticks, "cgroup_throttled_ns", now.throttled_ns);
	counter(builder, ticks, "cgroup_memory_bytes", now.memory_bytes);
	counter(builder, ticks, "cgroup_memory_limit_bytes", now.memory_limit_bytes);
	counter(builder, ticks, "cgroup_memory_reclaims", now.memory_reclaims);
	counter(builder, ticks, "cgroup_oom_kills", now.oom_kills);
	counter(builder, ticks, "pressure_cpu_some_ns", now.some_ns[PRESSURE_CPU]);
	counter(builder, ticks, "pressure_memory_some_ns", now.some_ns[PRESSURE_MEMORY]);
	counter(builder, ticks, "pressure_memory_full_ns", now.full_ns[PRESSURE_MEMORY]);
	counter(builder, ticks, "pressure_io_some_ns", now.some_ns[PRESSURE_IO]);
	counter(builder, ticks, "pressure_io_full_ns", now.full_ns[PRESSURE_IO]);
}

/* ---- memory ---- */

static bool may_walk(const struct around *around)
{
	struct proc_times times;

	return procfs_times(around->procfs, around->pid, 0, &times) == 0 && times.rss_bytes <= WALK_BYTES_MAX;
}

/* "Pss:    1234 kB" */
static int64_t line_bytes(const char *text, const char *key)
{
	const char *line = strstr(text, key);
	long long kb;

	return line && sscanf(line + strlen(key), "%lld", &kb) == 1 && kb >= 0 && kb < INT64_MAX / 1024 ? kb * 1024 : CGROUP_UNKNOWN;
}

static void tell_share(const struct around *around, uint64_t ticks, struct event_builder *builder)
{
	char text[4096];

	if (!may_walk(around) || procfs_read(around->procfs, around->pid, "smaps_rollup", text, sizeof text) <= 0)
		return;
	counter(builder, ticks, "pss_bytes", line_bytes(text, "\nPss:"));
	counter(builder, ticks, "private_dirty_bytes", line_bytes(text, "\nPrivate_Dirty:"));
	counter(builder, ticks, "swap_bytes", line_bytes(text, "\nSwap:"));
}

/* ---- memory nodes ---- */

static struct around_seat *seat_of(struct around *around, pid_t tid)
{
	uint32_t place = map_get(&around->seat_of, (uint64_t)tid);
	struct around_seat *seat;

	if (place != MAP_ABSENT)
		return &around->seats.items[place];
	seat = list_add(&around->seats, SEATS_MAX);
	if (!seat || !map_put(&around->seat_of, (uint64_t)tid, (uint32_t)around->seats.count - 1))
		return NULL;
	seat->node = NUMA_NONE;
	return seat;
}

/* The time since the last reading belongs to the node that the thread is found on. */
static void see_thread(struct around *around, const struct observe_thread *thread)
{
	struct around_seat *seat = thread->ours ? NULL : seat_of(around, thread->tid);
	struct proc_times times;
	int node;

	if (!seat || procfs_times(around->procfs, around->pid, thread->tid, &times) < 0)
		return;
	node = numa_node(&around->numa, times.processor);
	if (node == NUMA_NONE)
		return;
	around->migrations += seat->node != NUMA_NONE && seat->node != node;
	if (seat->node != NUMA_NONE && thread->cpu_ns > seat->cpu_ns)
		around->ran_ns[node] += thread->cpu_ns - seat->cpu_ns;
	*seat = (struct around_seat){ node, thread->cpu_ns };
}

static uint64_t sum_ns(const struct around *around, uint64_t nodes)
{
	uint64_t sum = 0;

	for (int node = 0; node < NUMA_NODES; node++)
		sum += nodes >> node & 1 ? around->ran_ns[node] : 0;
	return sum;
}

static void tell_nodes(struct around *around, const struct observe *observe, uint64_t ticks, struct event_builder *builder)
{
	if (around->numa.nodes < 2)
		return;
	for (size_t i = 0; i < observe->count; i++)
		see_thread(around, &observe->threads[i]);
	counter(builder, ticks, "numa_thread_migrations", (int64_t)around->migrations);
	counter(builder, ticks, "numa_ran_ns", (int64_t)sum_ns(around, UINT64_MAX));
	if (around->numa.device_nodes)
		counter(builder, ticks, "numa_device_far_ns", (int64_t)sum_ns(around, ~around->numa.device_nodes));
}

/* Nodes on which the process spent a tenth of its CPU time or more. */
static uint64_t home_nodes(const struct around *around)
{
	uint64_t all = sum_ns(around, UINT64_MAX), nodes = 0;

	for (int node = 0; node < NUMA_NODES; node++)
		if (around->ran_ns[node] && around->ran_ns[node] >= all / 10)
			nodes |= UINT64_C(1) << node;
	return nodes;
}

static void tell_pages(const struct around *around, uint64_t ticks, struct event_builder *builder)
{
	uint64_t home = home_nodes(around), all = 0, remote = 0;
	struct numa_pages pages;
	bool walked = may_walk(around);

	/* cppcheck-suppress uninitvar ; both functions fill it */
	if (around->numa.nodes < 2 || !home || !(walked ? numa_pages_read : numa_pages_sample)(around->procfs, around->pid, &pages))
		return;
	for (int node = 0; node < NUMA_NODES; node++) {
		all += pages.of[node];
		remote += home >> node & 1 ? 0 : pages.of[node];
	}
	capture_add(builder, ticks, "numa.pages", walked ? "all" : "by a sample of addresses");
	counter(builder, ticks, "numa_pages", (int64_t)all);
	counter(builder, ticks, "numa_remote_pages", (int64_t)remote);
}

static void name_nodes(const struct around *around, uint64_t ticks, struct event_builder *builder)
{
	if (around->numa.nodes < 1)
		capture_add(builder, ticks, "numa", "not told by this kernel");
	else if (around->numa.nodes == 1)
		capture_add(builder, ticks, "numa", "one memory node");
	else
		capture_add(builder, ticks, "numa", "%d memory nodes", around->numa.nodes);
	for (int i = 0; i < around->numa.device_count; i++) {
		const struct numa_device *device = &around->numa.devices[i];
		char key[32];

		snprintf(key, sizeof key, "numa.device.%d", i);
		capture_add(builder, ticks, key, "%s on node %d", device->address, device->node);
	}
}

/* ---- pools of threads ---- */

static void tell_pools(const struct around *around, const struct environment *environment, int cpus, uint64_t ticks, struct event_builder *builder)
{
	struct pools pools;
	struct maps maps;

	if (maps_read(around->procfs, around->pid, &maps) < 0)
		return;
	pools_find(&maps, environment->bytes, environment->size, cpus, &pools);
	if (*pools.libraries)
		capture_add(builder, ticks, "pools", "%s: %lld threads each at most (%s)", pools.libraries, (long long)pools.asked, *pools.environment ? pools.environment : "nothing set: one for each CPU");
	if (pools.asked)
		counter(builder, ticks, "pool_threads_asked", pools.asked);
	maps_done(&maps);
}

/* ---- all together ---- */

void around_begin(struct around *around, const struct environment *environment, int cpus, uint64_t ticks, struct event_builder *builder)
{
	capture_add(builder, ticks, "pressure", "%s", around->cgroup.group_pressure ? "of the control group" : "of the machine");
	name_nodes(around, ticks, builder);
	tell_pools(around, environment, cpus, ticks, builder);
	tell_share(around, ticks, builder);
	if (!may_walk(around))
		capture_add(builder, ticks, "memory.share", "not read: the process has more than %llu MiB, and walking its page tables would keep it from mapping memory for too long", (unsigned long long)(WALK_BYTES_MAX >> 20));
	tell_group(around, ticks, builder);
}

void around_read(struct around *around, const struct observe *observe, uint64_t ticks, struct event_builder *builder)
{
	tell_group(around, ticks, builder);
	tell_nodes(around, observe, ticks, builder);
}

void around_end(struct around *around, uint64_t ticks, struct event_builder *builder)
{
	tell_group(around, ticks, builder);
	tell_share(around, ticks, builder);
	tell_pages(around, ticks, builder);
}
