/* The ring that the kernel writes perf_event records to: a record may go over its end. */
#ifndef INFERSCOPE_UNWIND_PERF_RING_H
#define INFERSCOPE_UNWIND_PERF_RING_H

#include <linux/perf_event.h>
#include <stdbool.h>
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

/* The record at *TAIL; false: none is left before HEAD. What makes no sense is counted as damaged, and the rest dropped. The caller goes on behind OUT->size bytes. */
static inline bool perf_ring_next(const struct perf_ring *ring, uint64_t *tail, uint64_t head, struct perf_event_header *out, uint64_t *damaged)
{
	uint64_t left = head - *tail;

	if (left < sizeof *out)
		return false;
	if (left <= ring->size) {
		perf_ring_take(ring, *tail, out, sizeof *out);
		if (out->size >= sizeof *out && out->size <= left)
			return true;
	}
	++*damaged;
	*tail = head;
	return false;
}

#endif
