/* Memory for CUPTI's records: one mapping, a bit for each buffer. CUPTI asks on whatever thread launches, so that nothing here waits, allocates or calls the system. */
#include "collector/collector.h"

#include <string.h>

#include "collector/mapping.h"

enum { NO_LIMIT = 0 /* of records in a buffer */ };

bool gpu_buffers_open(void)
{
	if (!the.gpu.buffers) {
		uint8_t *memory = mapping_make((size_t)(GPU_BUFFERS + 1) * GPU_BUFFER_BYTES, -1);

		if (!memory)
			return false;
		the.gpu.buffers = memory;
		the.gpu.discard = the.gpu.buffers + (size_t)GPU_BUFFERS * GPU_BUFFER_BYTES;
		__atomic_store_n(&the.gpu.free_buffers, UINT64_MAX, __ATOMIC_RELEASE);
	}
	return true;
}
_Static_assert(GPU_BUFFERS == 64, "a bit of a u64 for each");

static uint8_t *take(void)
{
	uint64_t bits = __atomic_load_n(&the.gpu.free_buffers, __ATOMIC_ACQUIRE);

	while (bits)
		if (__atomic_compare_exchange_n(&the.gpu.free_buffers, &bits, bits & (bits - 1), true, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			return the.gpu.buffers + (size_t)__builtin_ctzll(bits) * GPU_BUFFER_BYTES;
	return NULL;
}

/* Zeroed as far as it was used: then CUPTI does not have to, on the program's thread. */
static void give_back(uint8_t *buffer, size_t used)
{
	size_t index = (size_t)(buffer - the.gpu.buffers) / GPU_BUFFER_BYTES;

	memset(buffer, 0, used);
	__atomic_fetch_or(&the.gpu.free_buffers, 1ull << index, __ATOMIC_RELEASE);
}

/* At the bound: CUPTI before 12.9 cannot bear NULL, and gets a buffer that nobody reads. */
void gpu_buffer_request(uint8_t **buffer, size_t *size, size_t *records)
{
	*buffer = take();
	*records = NO_LIMIT;
	if (!*buffer) {
		__atomic_fetch_add(&the.gpu.discarded, 1, __ATOMIC_RELAXED);
		if (the.gpu.cupti.version < CUPTI_12_9)
			*buffer = the.gpu.discard;
	}
	*size = *buffer ? GPU_BUFFER_BYTES : 0;
}

void gpu_buffer_complete(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
	size_t offset = (uintptr_t)buffer - (uintptr_t)the.gpu.buffers;

	(void)context, (void)stream, (void)size;
	if (!buffer || buffer == the.gpu.discard || offset >= (size_t)GPU_BUFFERS * GPU_BUFFER_BYTES || offset % GPU_BUFFER_BYTES)
		return;
	valid = valid < GPU_BUFFER_BYTES ? valid : GPU_BUFFER_BYTES;
	if (!the.child && valid)
		gpu_records_decode(buffer, valid);
	give_back(buffer, valid);
}

void gpu_buffer_request2(uint8_t **buffer, size_t *size, size_t *records, void *info)
{
	(void)info;
	gpu_buffer_request(buffer, size, records);
}

void gpu_buffer_complete2(uint8_t *buffer, size_t size, size_t valid, void *info)
{
	(void)info;
	gpu_buffer_complete(NULL, 0, buffer, size, valid);
}
