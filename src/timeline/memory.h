/*
 * Where memory was allocated, by samples: each stands for as many bytes as its weight says, so that sums are estimates without bias. How good a
 * sum is depends on how many samples it is made of: 95 times of 100 it is within 2 / sqrt(samples) of the truth.
 */
#ifndef INFERSCOPE_TIMELINE_MEMORY_H
#define INFERSCOPE_TIMELINE_MEMORY_H

#include "abi/page.h"
#include "timeline/timeline.h"

enum { MEMORY_SITES_LIMIT = 20000 };

struct memory_place {
	const char *name, *file; /* "" when not known */
	uint32_t line;           /* being run; 0 = not known */
	uint32_t function;       /* index into timeline.functions; UINT32_MAX: it is not there */
};

/* Allocations of one line of one function. */
struct memory_site {
	uint64_t samples, bytes, count;        /* of the whole window */
	uint64_t brief_bytes;                  /* released within MEMORY_BRIEF_NS */
	uint64_t live_samples, live_bytes;     /* not released at the end of the window */
	uint64_t early_samples, early_bytes;   /* of these, allocated in the first half of it */
	uint64_t lifetime_p50_ns;              /* of those that were released; 0 of none */
	bool native;                           /* by native libraries below this function; lines are not known then */
	uint32_t frame_count;                  /* of its heaviest stack, innermost first; 0: no Python function ran */
	struct memory_place frames[MEMORY_FRAMES_MAX];
};
#define MEMORY_BRIEF_NS 1000000000ull

/* What happened in an equal part of the window; live: at its end, of what was allocated in the window. */
struct memory_part { uint64_t bytes, live_bytes; };
enum { MEMORY_PARTS = 250 };
#define MEMORY_PART_NS 100000000ull /* at least */

/* Allocations of one stack of Python functions. */
struct memory_path {
	uint64_t bytes, live_bytes;    /* as of a site */
	bool cut;                      /* there may be frames further out */
	uint32_t count;
	uint32_t functions[MEMORY_FRAMES_MAX]; /* indices into timeline.functions, innermost first */
};

struct memory_facts {
	struct memory_site all;         /* sums; no frames */
	size_t site_count;
	const struct memory_site *sites; /* most bytes first */
	uint32_t part_count;
	uint64_t part_ns;
	const struct memory_part *parts; /* one after the other */
	size_t path_count;
	const struct memory_path *paths; /* each may be there several times, for its lines */
	uint64_t left_out;              /* samples beyond what is kept: they are in `all` alone */
	double seen_pct[2];             /* of the CPU time (of several processes together) in which samples were taken: of Python's allocators, of native libraries'; 0: not known. Sums are estimates for all of it */
	const char *ends_missing;       /* why what is called live may be released; NULL: it is not */
};

/* Never NULL; all is 0 where allocations were not sampled. */
const struct memory_facts *timeline_memory(const struct timeline *timeline);

#endif
