/* The records of a perf_event ring, as linux/perf_event.h lays them out for the samples that perf.c asks for. */
#ifndef INFERSCOPE_UNWIND_PERF_RECORD_H
#define INFERSCOPE_UNWIND_PERF_RECORD_H

#include "unwind/walk.h"

struct perf_counts {
	uint64_t samples, lost, throttled;
	uint64_t without_stack; /* samples of no 64-bit user code: skipped */
	uint64_t damaged;       /* rings that made no sense: the rest of it was dropped */
};

typedef void perf_each(void *context, const struct thread_copy *copy, uint64_t cpu_ns);

/*
 * Reads the records between TAIL and HEAD out of a ring of SIZE bytes (a power of two); COPY is scratch. EACH hears what the event's clock stands at. COUNTED: samples tell
 * what the counters of their group stand at, too, which goes to COPY's gained. Returns where to go on.
 */
uint64_t perf_parse(const unsigned char *ring, uint64_t size, uint64_t tail, uint64_t head, bool counted, struct thread_copy *copy, perf_each *each, void *context,
                    struct perf_counts *counts);

#endif
