/*
 * Looks at the threads of the target, again and again: which run and which are blocked, their stacks, and who holds the GIL while others wait for it. A
 * look stands for the time since the last one at its thread, a sample by perf_event for the CPU time since the last one.
 */
#ifndef INFERSCOPE_SESSION_WATCH_H
#define INFERSCOPE_SESSION_WATCH_H

#include "session/census.h"
#include "session/sight.h"
#include "unwind/perf.h"

enum { WEIGHT_LOOKS = 10 }; /* a look stands for as many intervals at most: a longer time nobody knows */

struct watch_totals {
	uint64_t stolen_ns;              /* time that threads stood still for a copy */
	uint64_t not_now, refused, prone, spared; /* threads that were not held, and why; spared: enough had stood still for one look */
	uint64_t moved;                  /* blocked threads that woke while they were looked at */
	bool holder_lost;                /* no thread could be held any more from some moment on */
};

struct watch {
	struct census *census;
	struct looker *looker;
	struct sights *sights;      /* what is seen goes here */
	struct perf *perf;          /* NULL: running threads are held where the looker can, else only their Python frames are read */
	bool perf_given_up, perf_rests;
	bool native;                /* native frames are wanted */
	int64_t clock_ahead_ns;     /* our CLOCK_MONOTONIC less that of perf_event, which knows no time namespace */
	uint64_t weight_max_ns;
	uint64_t stand_most_ns;     /* for so long all that one look holds may stand still together */
	uint64_t stolen_before_ns;  /* what totals.stolen_ns was when the look in progress began */
	struct watch_totals totals;
	pid_t holder;               /* of the GIL at the last look, 0 = not seen */
	struct seen_thread **due;   /* of the look in progress; room for CAPACITY */
	size_t due_count, capacity;
	struct look look;
};

void watch_done(struct watch *watch);
/* Looks once at what is due. */
void watch_once(struct watch *watch);
/* Takes what perf_event has seen. */
void watch_perf(struct watch *watch);
/* While it RESTS running threads are seen by the next way. */
void watch_rest_perf(struct watch *watch, bool rests);
/* They are from now on. */
void watch_give_up_perf(struct watch *watch, const char *why);
/* After a reading of the census: threads that are new to perf_event. */
void watch_threads(struct watch *watch);

#endif
