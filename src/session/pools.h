/* Pools of native threads: which libraries of a process keep one, and how many threads its environment lets each have. */
#ifndef INFERSCOPE_SESSION_POOLS_H
#define INFERSCOPE_SESSION_POOLS_H

#include "base/mappings.h"

struct pools {
	char libraries[256];   /* "libgomp, libopenblas"; "" = none */
	char environment[256]; /* "OMP_NUM_THREADS=8, MKL_NUM_THREADS=4"; "" = nothing set */
	int64_t asked;         /* threads of the largest pool: as set, else one for each CPU of the process's affinity; 0 = no pool */
};

/* Of mapped files and an environment as /proc/PID/environ has it; CPUS: of the affinity. */
void pools_find(const struct maps *maps, const char *environment, size_t size, int cpus, struct pools *out);

#endif
