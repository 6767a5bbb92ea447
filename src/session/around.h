/*
 * What surrounds a process: the limits and pressure of its control groups, memory nodes, pools of native threads, its share of memory. Read from outside at the
 * beginning, about once a second, and at the end; told as CAPTURE and COUNTER events. Nothing here enters the process or needs a permission of its own.
 */
#ifndef INFERSCOPE_SESSION_AROUND_H
#define INFERSCOPE_SESSION_AROUND_H

#include "base/list.h"
#include "base/map.h"
#include "session/cgroup.h"
#include "session/environment.h"
#include "session/numa.h"
#include "session/observe.h"
#include "trace/writer.h"

struct around_seat { int node; uint64_t cpu_ns; }; /* of a thread, as last seen */

struct around {
	const struct procfs *procfs;
	pid_t pid;
	struct cgroup cgroup;
	struct numa numa;
	struct map seat_of;      /* thread to its place in seats */
	LIST(struct around_seat) seats;
	uint64_t migrations;     /* threads seen on another node than before */
	uint64_t ran_ns[NUMA_NODES]; /* CPU time of threads, by the node on which each reading found them */
};

/* SYSFS plays /sys. */
void around_init(struct around *around, const struct procfs *procfs, const char *sysfs, pid_t pid);
void around_done(struct around *around);
/* CPUS: of the process's affinity. */
void around_begin(struct around *around, const struct environment *environment, int cpus, uint64_t ticks, struct event_builder *builder);
void around_read(struct around *around, const struct observe *observe, uint64_t ticks, struct event_builder *builder);
/* After the last reading, while the process is still there. */
void around_end(struct around *around, uint64_t ticks, struct event_builder *builder);

#endif
