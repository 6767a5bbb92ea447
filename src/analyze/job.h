/* Several traces as the ranks of one job: who did how much, who kept the others waiting, and how much of the communication was hidden. */
#ifndef INFERSCOPE_ANALYZE_JOB_H
#define INFERSCOPE_ANALYZE_JOB_H

#include "analyze/analysis.h"

enum { RANK_NAME_BYTES = 64, RANK_FINDINGS = 3, RANKS_MAX = 4096 };

/* What is kept of one trace; all devices of it together. */
struct rank {
	int64_t number;   /* -1: not known */
	char name[RANK_NAME_BYTES]; /* "rank 3", else the file's name */
	enum verdict_class class_;
	double confidence;
	uint64_t duration_ns, busy_ns, computation_ns, communication_ns, memory_ns, overlap_ns /* of communication, by computation */, kernels;
	uint64_t idle_ns[GPU_IDLE_CAUSES];
	size_t finding_count;
	struct { char rule[40], title[160]; enum severity severity; } findings[RANK_FINDINGS];
};

struct job {
	struct rank *ranks; /* by number, then as given */
	size_t count;
	double imbalance_pct;     /* most computation less the least, of the most; NAN: no devices */
	size_t straggler;         /* index: computes longest, by more than STRAGGLER_PCT above the median; SIZE_MAX: none does */
	double straggler_pct;     /* how far above the median */
	double communication_pct; /* of the busy time of all ranks; NAN: none communicates */
	double overlap_pct;       /* of the communication of all ranks, hidden behind computation; NAN */
};

/* From one trace. PATH names it where its own data do not. */
void rank_fill(const struct timeline *timeline, const struct analysis *analysis, const char *path, struct rank *out);
/* RANKS, COUNT of them (1 or more), are sorted and stay the caller's. */
void job_build(struct rank *ranks, size_t count, struct job *out);

#endif
