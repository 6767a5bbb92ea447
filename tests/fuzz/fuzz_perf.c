/* Any bytes as a ring of perf_event records. */
#include "unwind/perf_record.h"
#include "tests/fuzz/ring.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(void *context, const struct thread_copy *copy, uint64_t cpu_ns)
{
	uint32_t *told = context;

	if (copy->stack_size > THREAD_COPY_STACK_MAX || copy->gained_count > SAMPLED_COUNTERS || copy->known != (1u << DWARF_COUNT) - 1)
		abort();
	++*told;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct thread_copy copy;
	struct perf_counts counts = { 0 };
	struct fuzz_ring ring;
	uint32_t told = 0;

	if (!fuzz_ring(data, size, &ring))
		return 0;
	if (perf_parse(ring.bytes, ring.size, ring.tail, ring.head, size & 1, &copy, check, &told, &counts) > ring.head || told != counts.samples)
		abort();
	free(ring.bytes);
	return 0;
}
