/* The ring that the kernel writes perf_event records to: a record may go over its end. */
#ifndef INFERSCOPE_UNWIND_PERF_RING_H
#define INFERSCOPE_UNWIND_PERF_RING_H

#include <stdint.h>
#include <string.h>

struct perf_ring {
	const unsigned char *bytes;
	uint64_t size; /* a power of two */
};

/* SIZE bytes (not more than the ring has) from position AT, which counts on over the ring's end. */
static inline void perf_ring_take(const struct perf_ring *ring, uint64_t at, void *out, uint64_t size)
{
	uint64_t offset = at & (ring->size - 1), first = ring->size - offset < size ? ring->size - offset : size;

	memcpy(out, ring->bytes + offset, first);
	memcpy((char *)out + first, ring->bytes, size - first);
}

#endif
