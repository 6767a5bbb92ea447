/* Any bytes as a ring of perf_event records: the first two bytes say where it begins, the next two where it ends. */
/* folders: unwind/perf_record.c */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "unwind/perf_record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEAD = 4 };

static void check(void *context, const struct thread_copy *copy, uint64_t cpu_ns)
{
	uint32_t *told = context;

	if (copy->stack_size > THREAD_COPY_STACK_MAX || copy->known != (1u << DWARF_COUNT) - 1)
		abort();
	++*told;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct thread_copy copy;
	struct perf_counts counts = { 0 };
	uint64_t ring_size = 64, tail, head;
	uint32_t told = 0;
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
	if (perf_parse(ring, ring_size, tail, head, &copy, check, &told, &counts) > head || told != counts.samples)
		abort();
	free(ring);
	return 0;
}
