/* Several traces as the ranks of one job, or as the processes of one service: who did how much, who kept the others waiting, and how much of the communication was hidden. */
#ifndef INFERSCOPE_ANALYZE_JOB_H
#define INFERSCOPE_ANALYZE_JOB_H

#include "analyze/analysis.h"

enum { RANK_NAME_BYTES = 64, RANK_COMMAND_BYTES = 128, RANK_FINDINGS = 3, RANKS_MAX = 4096 };

/* Where a trace's times lie on the clock of the job's first one; align.h. */
enum rank_clock_way { CLOCK_UNKNOWN = 0, CLOCK_BY_WALL, CLOCK_BY_BOOT /* both were recorded since one boot of one machine */, CLOCK_BY_COLLECTIVES };
struct rank_clock {
	enum rank_clock_way way;
	int64_t zero_ns;      /* its time 0 */
	int64_t ahead_ns;     /* the wall clock that it was recorded with goes so much ahead of the first one's; 0: less than can be told */
	uint64_t bound_ns;    /* of both */
	uint32_t collectives; /* that tell it; 0: the wall clocks alone do */
	int64_t shift;        /* its collective i is the first rank's i + shift; INT64_MIN: not known */
};

/* A request that several processes worked on; request_path.h. */
enum { REQUEST_ID_BYTES = 64, REQUEST_SCOPE_BYTES = 48, PATH_STEPS = 16 };
struct path_step { size_t rank; char scope[REQUEST_SCOPE_BYTES]; uint64_t start_ns /* after the request's beginning */, duration_ns, self_ns /* while none that began later was open */; };
struct request_path {
	size_t requests;          /* that more than one process worked on; 0: there is no slowest */
	char id[REQUEST_ID_BYTES];
	uint64_t duration_ns, between_ns /* no scope of it was open */, bound_ns /* of the clocks */;
	size_t step_count, left_out;
	struct path_step steps[PATH_STEPS]; /* by start */
};

/* What is kept of one trace; all devices of it together. */
struct rank {
	size_t source;    /* which of the traces, as they were given */
	int64_t number;   /* -1: not known */
	char name[RANK_NAME_BYTES]; /* "rank 3", else the file's name */
	uint32_t pid, parent;       /* 0: not known */
	char host[RANK_NAME_BYTES], boot[RANK_NAME_BYTES], command[RANK_COMMAND_BYTES]; /* boot: which run of the machine's kernel */
	enum verdict_class class_;
	double confidence;
	uint64_t duration_ns, busy_ns, computation_ns, communication_ns, memory_ns, overlap_ns /* of communication, by computation */, kernels;
	uint64_t idle_ns[GPU_IDLE_CAUSES];
	bool clocked;               /* its threads' clocks were read: else cpu_ns is not known */
	uint64_t cpu_ns, python_ns, native_ns, gil_wait_ns, lock_wait_ns, io_wait_ns, gpu_wait_ns; /* of all its threads together */
	char hottest[RANK_COMMAND_BYTES]; /* the function with most CPU time of its own; empty: none is known */
	double hottest_pct;         /* of the process's CPU time, without spinning for the device; NAN */
	char scope[RANK_NAME_BYTES]; /* what it was asked for: the scope with most time; empty: none */
	uint64_t scope_count, scope_p50_ns, scope_p99_ns;
	double overhead_pct;        /* of its CPU time, caused by measuring; NAN: the trace does not say */
	uint64_t lost;              /* events */
	struct rank_clock clock;
	struct { uint64_t collectives, count, time_ns; } late; /* of those that all ranks have: where it came last, and how long the others waited for it alone */
	size_t finding_count;
	struct { char rule[40], title[160]; enum severity severity; } findings[RANK_FINDINGS];
};

/* One that was meant and is not there. */
struct absent { char name[RANK_NAME_BYTES], why[RANK_COMMAND_BYTES * 2]; };

struct job {
	struct rank *ranks; /* by number, then busiest first */
	size_t count;
	const struct absent *absent; /* the caller's */
	size_t absent_count;
	size_t brief;             /* that were meant, too, and ended before they could be looked at */
	bool aligned;             /* the ranks' clocks were laid side by side */
	struct request_path slowest;
	size_t launcher;          /* index: uses less than LAUNCHER_CPUS while processes that it started use more than BUSY_CPUS together; SIZE_MAX: none does */
	double cpus;              /* CPUs that all used together; NAN: not known */
	size_t computing;         /* ranks that work on a device; 0: none computes there */
	double imbalance_pct;     /* of those: most computation less the least, of the most; NAN: fewer than two */
	size_t straggler;         /* index: computes longest, by more than STRAGGLER_PCT above the median; SIZE_MAX: none does */
	double straggler_pct;     /* how far above the median of those */
	double communication_pct; /* of the busy time of all ranks; NAN: none communicates */
	double overlap_pct;       /* of the communication of all ranks, hidden behind computation; NAN */
};

/* From one trace. PATH names it where its own data do not. */
void rank_fill(const struct timeline *timeline, const struct analysis *analysis, const char *path, struct rank *out);
/* RANKS, COUNT of them (1 or more), are sorted and stay the caller's. */
void job_build(struct rank *ranks, size_t count, struct job *out);

#endif
