/* The processes that are meant: named ones, what descends from them, those whose command line fits, those of a control group. Reads /proc only. */
#ifndef INFERSCOPE_SESSION_FIND_H
#define INFERSCOPE_SESSION_FIND_H

#include <stdbool.h>

#include "base/list.h"
#include "base/pattern.h"
#include "base/procfs.h"

enum { FOUND_COMMAND = 160, FOUND_MAX = 4096 };

struct find_query {
	const pid_t *pids;     /* whether they live or not */
	size_t pid_count;
	bool children;         /* and what descends from those that are meant */
	const struct pattern *match; /* of the command line, arguments parted by blanks; NULL = none. One that takes more than a million steps does not fit */
	const char *cgroup;    /* a control group with those below it, as /proc/PID/cgroup names it; NULL = none */
	const char *container; /* how the id of a container begins, as a part of its control group's path; NULL = none */
	pid_t own;             /* it and what descends from it are never meant */
};

struct found {
	pid_t pid, parent;     /* parent 0: the process is gone */
	uint64_t start_ticks;  /* with pid it names one process; 0: gone */
	uint64_t cpu_ns;       /* so far; by clock tick */
	uint64_t main_ns;      /* its main thread alone, exactly; 0: not told */
	double cpus;           /* find_shares(): CPUs that it used meanwhile */
	bool named;            /* by pids */
	char command[FOUND_COMMAND];
};
struct found_list { struct found *items; size_t count, capacity; }; /* as LIST() */

/* Adds to OUT, by pid, each process once; kernel threads and zombies only where they are named. OUT is zeroed or filled before, and list_done()'s to free. */
int find_processes(const struct procfs *procfs, const struct find_query *query, struct found_list *out, struct error *err);
/* Watches for WAIT_NS how much CPU time each of LIST uses, and sorts it: busiest first. */
void find_shares(const struct procfs *procfs, struct found_list *list, uint64_t wait_ns);
/* The same of what it used since it was found, at BEGIN_NS (CLOCK_MONOTONIC). */
void find_shares_since(const struct procfs *procfs, struct found_list *list, uint64_t begin_ns);

#endif
