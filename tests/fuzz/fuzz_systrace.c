/* Any bytes as a ring of tracepoint records: the first two bytes say where it begins, the next two where it ends. */
/* folders: src/session/systrace_parse.c */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "session/systrace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEAD = 4 };

static void check(void *context, const struct systrace_call *call)
{
	uint64_t *told = context;

	if (call->start_ns + call->duration_ns < call->start_ns)
		abort();
	++*told;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct systrace_ids ids = { 443, 442 };
	struct systrace_open_call open = { 0 };
	struct systrace_counts counts = { 0 };
	uint64_t ring_size = 64, tail, head, told = 0;
	unsigned char *ring;

	if (size < HEAD)
		return 0;
	while (ring_size < size - HEAD)
		ring_size *= 2;
	ring = calloc(1, ring_size); /* exactly as large, for the sanitizer */
	if (!ring)
		return 0;
	memcpy(ring, data + HEAD, size - HEAD);
	tail = (data[0] | data[1] << 8) & ~7u;
	head = tail + (data[2] | data[3] << 8);
	if (systrace_parse(ring, ring_size, tail, head, ids, &open, check, &told, &counts) > head || told != counts.calls)
		abort();
	free(ring);
	return 0;
}
