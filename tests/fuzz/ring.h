/* A fuzzer's bytes as a ring of perf_event records: the first two bytes say where it begins, the next two where it ends, the rest is what it holds. */
#ifndef INFERSCOPE_FUZZ_RING_H
#define INFERSCOPE_FUZZ_RING_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct fuzz_ring { unsigned char *bytes; uint64_t size, tail, head; };

/* The caller frees bytes. False: too short, or no memory. */
static bool fuzz_ring(const uint8_t *data, size_t size, struct fuzz_ring *out)
{
	enum { HEAD = 4 };

	if (size < HEAD)
		return false;
	for (out->size = 64; out->size < size - HEAD;)
		out->size *= 2;
	out->bytes = calloc(1, out->size); /* exactly as large, for the sanitizer */
	if (!out->bytes)
		return false;
	memcpy(out->bytes, data + HEAD, size - HEAD);
	out->tail = (data[0] | data[1] << 8) & ~7u;
	out->head = out->tail + (data[2] | data[3] << 8);
	return true;
}

#endif
