/* Any bytes as a ring of tracepoint records. */
#include "session/systrace.h"
#include "tests/fuzz/ring.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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
	struct fuzz_ring ring;
	uint64_t told = 0;

	if (!fuzz_ring(data, size, &ring))
		return 0;
	if (systrace_parse(ring.bytes, ring.size, ring.tail, ring.head, ids, &open, check, &told, &counts) > ring.head || told != counts.calls)
		abort();
	free(ring.bytes);
	return 0;
}
