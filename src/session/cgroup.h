/*
 * The control groups of a process, versions 1 and 2: what they allow it, and how they hold it back. Of the groups from its own up to the root, the one with the
 * smallest limit counts: that is the one that is felt. Touches nothing.
 */
#ifndef INFERSCOPE_SESSION_CGROUP_H
#define INFERSCOPE_SESSION_CGROUP_H

#include "base/cgroups.h"

enum { CGROUP_UNKNOWN = -1 };

enum { PRESSURE_CPU, PRESSURE_MEMORY, PRESSURE_IO, PRESSURES };

struct cgroup {
	char cpu[CGROUP_PATH], memory[CGROUP_PATH], pressure[CGROUP_PATH]; /* folders; "" = none */
	double cpu_quota;      /* cores; 0 = none */
	bool cpu_hidden;       /* … or not known: its group is not shown here */
	bool pressure_files;   /* a group's "memory.pressure", else "memory" in /proc/pressure */
	bool group_pressure;   /* pressure is the group's, else the machine's */
};

/* CGROUP_UNKNOWN where the kernel does not tell. */
struct cgroup_reading {
	int64_t periods, throttled_periods, throttled_ns;  /* of the CPU quota, since the group was made */
	int64_t memory_bytes, memory_limit_bytes;          /* limit: unknown where there is none */
	int64_t memory_reclaims;                           /* times that the limit (or memory.high) was reached */
	int64_t oom_kills;
	int64_t some_ns[PRESSURES], full_ns[PRESSURES];    /* time for which some, or all, threads were held up for want of it */
};

/* Whatever is missing stays empty. */
void cgroup_find(const struct procfs *procfs, pid_t pid, struct cgroup *out);
void cgroup_read(const struct cgroup *cgroup, struct cgroup_reading *out);

#endif
