/*
 * From the collector's two device lanes to the trace: times by the fit of gpu_clock.h, names resolved and demangled, threads as the attacher numbers
 * them, one lane for each stream and kind of work, sorted. What comes out are the same events that imported traces have.
 */
#ifndef INFERSCOPE_SESSION_GPU_RELAY_H
#define INFERSCOPE_SESSION_GPU_RELAY_H

#include "session/gpu_clock.h"
#include "trace/reader.h"

struct gpu_relay;

struct gpu_relay_sink {
	void (*chunk)(void *context, const struct chunk *chunk, uint64_t events); /* the chunk is valid during the call */
	uint32_t (*lane)(void *context);                                          /* a number that no lane has yet */
	uint32_t (*outer_tid)(void *context, uint32_t inner_tid);
	void *context;
};

/* NULL when out of memory. */
struct gpu_relay *gpu_relay_new(const struct gpu_relay_sink *sink);
void gpu_relay_free(struct gpu_relay *relay);

/* A chunk of a META lane: names and comparisons of clocks are noted; the chunk itself goes its way. */
void gpu_relay_names(struct gpu_relay *relay, const struct chunk *chunk);
/* A chunk of the lane of work, kept until its times can be told. */
void gpu_relay_work(struct gpu_relay *relay, const struct chunk *chunk);
/* Hands on what can be told; ALL: everything, however well its times are known. */
void gpu_relay_run(struct gpu_relay *relay, bool all);

struct gpu_relay_totals {
	uint64_t kernels, calls, events;
	uint64_t timeless; /* given up: there was no comparison of clocks at all, no memory, or too many streams */
	uint64_t nameless; /* kernels whose name was not told */
};
struct gpu_relay_totals gpu_relay_totals(const struct gpu_relay *relay);
const struct gpu_clock *gpu_relay_clock(const struct gpu_relay *relay);

#endif
