/*
 * Takes events out of the lanes and hands them on as chunks. What the target wrote is checked before it is used; what does not
 * hold is dropped and counted. Keeps each thread's stack, so that a chunk says what lay below its first event.
 */
#ifndef INFERSCOPE_SESSION_DRAIN_H
#define INFERSCOPE_SESSION_DRAIN_H

#include "session/pool.h"
#include "trace/reader.h"

struct drain;

struct drain_sink {
	void (*chunk)(void *context, const struct chunk *chunk, uint64_t events); /* the chunk is valid during the call */
	uint32_t (*outer_tid)(void *context, uint32_t inner_tid);
	void *context;
};

/* Sums over all lanes, ended threads included. */
struct drain_totals {
	uint64_t events, lost, skipped, cost_ticks;
	uint64_t counted;        /* calls that were only counted */
	uint64_t drained;        /* events handed on */
	uint64_t damaged;        /* sub-buffers or parts that made no sense */
	uint32_t lanes, used;    /* lanes in use; sub-buffers that are not free */
};

/* First chunks get lane number FIRST_LANE; each lane a number of its own. POOL must outlive it. */
int drain_open(struct pool *pool, const struct clock_map *clock, uint32_t first_lane, const struct drain_sink *sink, struct drain **out, struct error *err);
void drain_close(struct drain *drain);

/* Full sub-buffers, oldest first, and the names they need. PARTIAL: also what stands in those still being filled. */
void drain_round(struct drain *drain, bool partial);
/* After the last writer is gone: everything, gaps or not. */
void drain_last(struct drain *drain);
/* Threads that ended without saying so: ALIVE answers for an inner tid. Their lanes are emptied and freed. */
void drain_reclaim(struct drain *drain, bool (*alive)(void *context, uint32_t inner_tid), void *context);
/* A number for a lane that is made outside: no other lane has it. */
uint32_t drain_lane_number(struct drain *drain);
struct drain_totals drain_totals(const struct drain *drain);

#endif
