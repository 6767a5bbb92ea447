/*
 * CUPTI's records into events: names (gpu_names.c) into the lane of names, which is never given up, all else into one lane of work; the session
 * sorts it by streams and resolves names and times. Times stay CUPTI's own. Fields are read at offsets that every release has; a
 * record's length is the step to the next one.
 */
#include "collector/collector.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collector/libc.h"

enum { BREATH_RECORDS = 64 /* then others may have the lock */, CONTEXT_STREAMS = 100000, OVERHEAD_BUFFER_REQUEST = 7 << 16 /* from 12.9 on */ };

struct record { const uint8_t *bytes; size_t length; };

static uint64_t u64_at(struct record record, size_t offset)
{
	uint64_t value;

	memcpy(&value, record.bytes + offset, sizeof value);
	return value;
}

static uint32_t u32_at(struct record record, size_t offset)
{
	uint32_t value;

	memcpy(&value, record.bytes + offset, sizeof value);
	return value;
}

static uint16_t u16_at(struct record record, size_t offset)
{
	uint16_t value;

	memcpy(&value, record.bytes + offset, sizeof value);
	return value;
}

static uint8_t u8_at(struct record record, size_t offset)
{
	return record.bytes[offset];
}

static const char *string_at(struct record record, size_t offset)
{
	return (const char *)(uintptr_t)u64_at(record, offset);
}

/* ---- events ---- */

/* Payloads as event.def lists them; a string without bytes ends each that has a name. */
struct __attribute__((packed)) kernel_payload { uint64_t duration; uint32_t correlation, device, stream, grid[3], block[3]; uint16_t name; };
struct __attribute__((packed)) copy_payload { uint64_t duration; uint32_t correlation, device, stream; uint64_t bytes; uint32_t memory_kinds; };
struct __attribute__((packed)) set_payload { uint64_t duration; uint32_t correlation, device, stream; uint64_t bytes; };
struct __attribute__((packed)) sync_payload { uint64_t duration; uint32_t correlation, device, stream, kind; };
struct __attribute__((packed)) call_payload { uint64_t duration; uint32_t correlation, tid; uint16_t name; };
struct __attribute__((packed)) overhead_payload { uint64_t duration; uint32_t kind; };
struct __attribute__((packed)) memory_payload { uint64_t address, bytes; uint32_t correlation, device, operation, memory_kind; };
struct __attribute__((packed)) range_payload { uint32_t tid, id, what; };
struct __attribute__((packed)) context_payload { uint32_t device, null_stream; };
struct __attribute__((packed)) bracket_payload { uint64_t before, realtime, after; };

/* ---- contexts ---- */

void gpu_records_begin(void)
{
	the.gpu.context_count = 0;
	the.gpu.graph_seen = false;
}

static const struct gpu_context *context_find(uint32_t id)
{
	for (uint32_t i = 0; i < the.gpu.context_count; i++)
		if (the.gpu.contexts[i].id == id)
			return &the.gpu.contexts[i];
	return NULL;
}

/* Numbers of streams are a context's own: those of a device's second context are told apart by adding to them. */
static uint32_t context_ordinal(uint32_t id, uint32_t device)
{
	const struct gpu_context *known = context_find(id);
	uint32_t ordinal = 0;

	if (known)
		return known->ordinal;
	for (uint32_t i = 0; i < the.gpu.context_count; i++)
		ordinal += the.gpu.contexts[i].device == device;
	if (the.gpu.context_count < GPU_CONTEXTS)
		the.gpu.contexts[the.gpu.context_count++] = (struct gpu_context){ id, device, ordinal };
	return ordinal;
}

static uint32_t stream_number(uint32_t device, uint32_t context, uint32_t stream)
{
	return stream + context_ordinal(context, device) * CONTEXT_STREAMS;
}

/* ---- records ---- */

/* Work that has no times, or impossible ones, is counted and left out. */
static bool times(struct record record, size_t start_at, size_t end_at, uint64_t *start, uint64_t *duration)
{
	uint64_t end = u64_at(record, end_at);

	*start = u64_at(record, start_at);
	*duration = end - *start;
	if (*start && !end && !__atomic_load_n(&the.gpu.listening, __ATOMIC_RELAXED)) {
		gpu_status()->unfinished++;
		return false;
	}
	if (*start && end >= *start && *start >= the.gpu.not_before && end <= __atomic_load_n(&the.gpu.not_after, __ATOMIC_RELAXED))
		return true;
	gpu_status()->invalid++;
	return false;
}

static uint8_t graph_flag(uint32_t graph)
{
	the.gpu.graph_seen |= graph != 0;
	return graph ? EVENT_FLAG_GRAPH : 0;
}

static void take_kernel(struct record record)
{
	struct kernel_payload payload = { .correlation = u32_at(record, CUPTI_KERNEL_CORRELATION), .device = u32_at(record, CUPTI_KERNEL_DEVICE) };
	uint8_t flags = graph_flag(u32_at(record, CUPTI_KERNEL_GRAPH));
	uint64_t start, duration;

	gpu_status()->kernels++;
	if (!times(record, CUPTI_KERNEL_START, CUPTI_KERNEL_END, &start, &duration))
		return;
	payload.duration = duration;
	payload.stream = stream_number(payload.device, u32_at(record, CUPTI_KERNEL_CONTEXT), u32_at(record, CUPTI_KERNEL_STREAM));
	for (int i = 0; i < 3; i++) {
		payload.grid[i] = u32_at(record, CUPTI_KERNEL_GRID_X + 4 * (size_t)i);
		payload.block[i] = u32_at(record, CUPTI_KERNEL_BLOCK_X + 4 * (size_t)i);
	}
	gpu_put(the.gpu.work_lane, start, EVENT_GPU_KERNEL, gpu_name_ref(string_at(record, CUPTI_KERNEL_NAME)), flags, &payload, sizeof payload);
}

static uint8_t copy_event(uint8_t kind)
{
	switch (kind) {
	case CUPTI_COPY_HOST_TO_DEVICE:
	case CUPTI_COPY_HOST_TO_ARRAY:
		return EVENT_H2D_COPY;
	case CUPTI_COPY_DEVICE_TO_HOST:
	case CUPTI_COPY_ARRAY_TO_HOST:
		return EVENT_D2H_COPY;
	default:
		return EVENT_D2D_COPY;
	}
}

/* Kinds of memory as the importer writes them: source, target, and a bit for copies between devices. */
static void put_copy(struct record record, size_t correlation_at, size_t graph_at, uint32_t peer)
{
	struct copy_payload payload = { .correlation = u32_at(record, correlation_at), .device = u32_at(record, CUPTI_MEMCPY_DEVICE), .bytes = u64_at(record, CUPTI_MEMCPY_BYTES) };
	uint8_t flags = graph_flag(u32_at(record, graph_at));
	uint64_t start, duration;

	gpu_status()->copies++;
	if (!times(record, CUPTI_MEMCPY_START, CUPTI_MEMCPY_END, &start, &duration))
		return;
	payload.duration = duration;
	payload.stream = stream_number(payload.device, u32_at(record, CUPTI_MEMCPY_CONTEXT), u32_at(record, CUPTI_MEMCPY_STREAM));
	payload.memory_kinds = u8_at(record, CUPTI_MEMCPY_SOURCE_KIND) | (uint32_t)u8_at(record, CUPTI_MEMCPY_TARGET_KIND) << 8 | peer << 16;
	gpu_put(the.gpu.work_lane, start, copy_event(u8_at(record, CUPTI_MEMCPY_COPY_KIND)), 0, flags, &payload, sizeof payload);
}
_Static_assert((int)CUPTI_MEMCPY2_BYTES == (int)CUPTI_MEMCPY_BYTES && (int)CUPTI_MEMCPY2_STREAM == (int)CUPTI_MEMCPY_STREAM, "both kinds of copies begin alike");

static void take_copy(struct record record)
{
	put_copy(record, CUPTI_MEMCPY_CORRELATION, CUPTI_MEMCPY_GRAPH, u8_at(record, CUPTI_MEMCPY_COPY_KIND) == CUPTI_COPY_PEER_TO_PEER);
}

static void take_peer_copy(struct record record)
{
	put_copy(record, CUPTI_MEMCPY2_CORRELATION, CUPTI_MEMCPY2_GRAPH, 1);
}

static void take_memset(struct record record)
{
	struct set_payload payload = { .correlation = u32_at(record, CUPTI_MEMSET_CORRELATION), .device = u32_at(record, CUPTI_MEMSET_DEVICE), .bytes = u64_at(record, CUPTI_MEMSET_BYTES) };
	uint8_t flags = graph_flag(u32_at(record, CUPTI_MEMSET_GRAPH));
	uint64_t start, duration;

	gpu_status()->copies++;
	if (!times(record, CUPTI_MEMSET_START, CUPTI_MEMSET_END, &start, &duration))
		return;
	payload.duration = duration;
	payload.stream = stream_number(payload.device, u32_at(record, CUPTI_MEMSET_CONTEXT), u32_at(record, CUPTI_MEMSET_STREAM));
	gpu_put(the.gpu.work_lane, start, EVENT_GPU_MEMSET, 0, flags, &payload, sizeof payload);
}

static void put_call(int domain, uint32_t cbid, uint64_t start, uint64_t duration, uint32_t correlation, uint32_t tid)
{
	struct call_payload payload = { .duration = duration, .correlation = correlation, .tid = tid };

	gpu_status()->calls++;
	gpu_put(the.gpu.work_lane, start, EVENT_GPU_API, gpu_call_ref(domain, cbid < GPU_CBIDS ? cbid : 0), 0, &payload, sizeof payload);
}

static void take_call(struct record record, int domain)
{
	uint64_t start, duration;
	uint32_t tid = u32_at(record, CUPTI_API_THREAD);

	if (tid == gpu_status()->tid) {
		gpu_status()->beats_seen++;
		return;
	}
	if (times(record, CUPTI_API_START, CUPTI_API_END, &start, &duration))
		put_call(domain, u32_at(record, CUPTI_API_CBID), start, duration, u32_at(record, CUPTI_API_CORRELATION), tid);
}

static void take_runtime_call(struct record record)
{
	take_call(record, CUPTI_DOMAIN_RUNTIME);
}

static void take_driver_call(struct record record)
{
	take_call(record, CUPTI_DOMAIN_DRIVER);
}

static void take_sync(struct record record)
{
	const struct gpu_context *context = context_find(u32_at(record, CUPTI_SYNC_CONTEXT));
	struct sync_payload payload = { .correlation = u32_at(record, CUPTI_SYNC_CORRELATION), .device = context ? context->device : 0, .kind = u32_at(record, CUPTI_SYNC_TYPE) };
	uint64_t start, duration;

	if (!times(record, CUPTI_SYNC_START, CUPTI_SYNC_END, &start, &duration))
		return;
	payload.duration = duration;
	payload.stream = u32_at(record, CUPTI_SYNC_STREAM);
	if (payload.stream < CONTEXT_STREAMS && context)
		payload.stream += context->ordinal * CONTEXT_STREAMS;
	gpu_put(the.gpu.work_lane, start, EVENT_GPU_SYNC, 0, 0, &payload, sizeof payload);
}

/* One record for a whole launch (--gpu-graphs graph): told as one kernel without a shape. */
static void take_graph(struct record record)
{
	static const char name[] = "CUDA graph";
	struct kernel_payload payload = { .correlation = u32_at(record, CUPTI_GRAPH_TRACE_CORRELATION), .device = u32_at(record, CUPTI_GRAPH_TRACE_DEVICE) };
	uint64_t start, duration;

	the.gpu.graph_seen = true;
	gpu_status()->kernels++;
	if (!times(record, CUPTI_GRAPH_TRACE_START, CUPTI_GRAPH_TRACE_END, &start, &duration))
		return;
	payload.duration = duration;
	payload.stream = stream_number(payload.device, u32_at(record, CUPTI_GRAPH_TRACE_CONTEXT), u32_at(record, CUPTI_GRAPH_TRACE_STREAM));
	gpu_put(the.gpu.work_lane, start, EVENT_GPU_KERNEL, gpu_name_ref(name), EVENT_FLAG_GRAPH, &payload, sizeof payload);
}

static void take_overhead(struct record record)
{
	struct overhead_payload payload = { .kind = u32_at(record, CUPTI_OVERHEAD_OVERHEAD_KIND) };
	uint64_t start, duration;

	if (!times(record, CUPTI_OVERHEAD_START, CUPTI_OVERHEAD_END, &start, &duration))
		return;
	payload.duration = duration;
	switch (payload.kind) {
	case CUPTI_OVERHEAD_FLUSH:
	case CUPTI_OVERHEAD_INSTRUMENTATION:
	case CUPTI_OVERHEAD_RESOURCE:
	case OVERHEAD_BUFFER_REQUEST:
		gpu_status()->overhead_ns += duration;
		break;
	default: /* the driver's own: compiling, loading, a full queue */
		break;
	}
	gpu_put(the.gpu.work_lane, start, EVENT_GPU_OVERHEAD, 0, 0, &payload, sizeof payload);
}

static void take_memory(struct record record)
{
	struct memory_payload payload = { u64_at(record, CUPTI_MEMORY2_ADDRESS), u64_at(record, CUPTI_MEMORY2_BYTES), u32_at(record, CUPTI_MEMORY2_CORRELATION),
		u32_at(record, CUPTI_MEMORY2_DEVICE), u32_at(record, CUPTI_MEMORY2_OPERATION), u32_at(record, CUPTI_MEMORY2_MEMORY_KIND) };

	gpu_put(the.gpu.work_lane, u64_at(record, CUPTI_MEMORY2_TIME), EVENT_GPU_MEMORY, 0, 0, &payload, sizeof payload);
}

/* What a range may be beside these three is another's lock. */
static void take_range(struct record record)
{
	struct range_payload payload = { u32_at(record, CUPTI_MARKER_OBJECT + 4), u32_at(record, CUPTI_MARKER_ID), u32_at(record, CUPTI_MARKER_FLAGS) & (CUPTI_RANGE_MARK | CUPTI_RANGE_START | CUPTI_RANGE_END) };
	uint64_t at, nothing;

	if (u32_at(record, CUPTI_MARKER_OBJECT_KIND) != CUPTI_OBJECT_THREAD || !payload.what || !times(record, CUPTI_MARKER_TIME, CUPTI_MARKER_TIME, &at, &nothing))
		return;
	gpu_put(the.gpu.work_lane, at, EVENT_GPU_RANGE, payload.what == CUPTI_RANGE_END ? 0 : gpu_name_ref(string_at(record, CUPTI_MARKER_NAME)), 0, &payload, sizeof payload);
}

/* "3f2a…" as people write it: 8-4-4-4-12. All zero gives "". */
static size_t uuid_text(const uint8_t *bytes, char *out)
{
	size_t length = 0;
	bool any = false;

	for (int i = 0; i < 16; i++) {
		any |= bytes[i] != 0;
		length += (size_t)snprintf(out + length, 4, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", bytes[i]);
	}
	return any ? length : 0;
}

static size_t add_string(char *out, size_t at, const char *text, size_t length)
{
	uint16_t count = (uint16_t)length;

	memcpy(out + at, &count, sizeof count);
	memcpy(out + at + sizeof count, text, length);
	return at + sizeof count + length;
}

static void take_device(struct record record)
{
	const char *name = string_at(record, CUPTI_DEVICE_NAME);
	uint32_t numbers[2] = { u32_at(record, CUPTI_DEVICE_MULTIPROCESSORS), u32_at(record, CUPTI_DEVICE_COMPUTE_MAJOR) * 10 + u32_at(record, CUPTI_DEVICE_COMPUTE_MINOR) };
	uint64_t sizes[2] = { u64_at(record, CUPTI_DEVICE_MEMORY_SIZE), u64_at(record, CUPTI_DEVICE_BANDWIDTH) };
	char payload[512], uuid[48] = "";
	size_t at = sizeof sizes + sizeof numbers;

	memcpy(payload, sizes, sizeof sizes);
	memcpy(payload + sizeof sizes, numbers, sizeof numbers);
	at = add_string(payload, at, name ? name : "", name ? strnlen(name, 255) : 0);
	at = add_string(payload, at, uuid, uuid_text(record.bytes + CUPTI_DEVICE_UUID, uuid));
	at = add_string(payload, at, uuid, u8_at(record, CUPTI_DEVICE_MIG_ENABLED) ? uuid_text(record.bytes + CUPTI_DEVICE_MIG_UUID, uuid) : 0);
	gpu_put(the.gpu.names_lane, ticks_now(), EVENT_GPU_DEVICE, u32_at(record, CUPTI_DEVICE_ID), 0, payload, at);
}

static void take_context(struct record record)
{
	struct context_payload payload = { u32_at(record, CUPTI_CONTEXT_DEVICE), u16_at(record, CUPTI_CONTEXT_NULL_STREAM) };
	uint32_t id = u32_at(record, CUPTI_CONTEXT_ID);

	payload.null_stream = stream_number(payload.device, id, payload.null_stream);
	gpu_put(the.gpu.names_lane, ticks_now(), EVENT_GPU_CONTEXT, id, 0, &payload, sizeof payload);
}

static void take_nothing(struct record record)
{
	(void)record;
}

/* LEAST: what we read of it. */
static const struct { uint32_t kind, least; void (*take)(struct record); } kinds[] = {
	{ CUPTI_KIND_KERNEL, CUPTI_KERNEL_GRAPH + 4, take_kernel },
	{ CUPTI_KIND_MEMCPY, CUPTI_MEMCPY_GRAPH + 4, take_copy },
	{ CUPTI_KIND_MEMCPY2, CUPTI_MEMCPY2_GRAPH + 4, take_peer_copy },
	{ CUPTI_KIND_MEMSET, CUPTI_MEMSET_GRAPH + 4, take_memset },
	{ CUPTI_KIND_API, CUPTI_API_CORRELATION + 4, take_runtime_call },
	{ CUPTI_KIND_DRIVER, CUPTI_API_CORRELATION + 4, take_driver_call },
	{ CUPTI_KIND_SYNC, CUPTI_SYNC_STREAM + 4, take_sync },
	{ CUPTI_KIND_GRAPH_TRACE, CUPTI_GRAPH_TRACE_STREAM + 4, take_graph },
	{ CUPTI_KIND_OVERHEAD, CUPTI_OVERHEAD_END + 8, take_overhead },
	{ CUPTI_KIND_MEMORY2, CUPTI_MEMORY2_STREAM + 4, take_memory },
	{ CUPTI_KIND_MARKER, CUPTI_MARKER_NAME + 8, take_range },
	{ CUPTI_KIND_DEVICE, CUPTI_DEVICE_MIG_UUID + 16, take_device },
	{ CUPTI_KIND_CONTEXT, CUPTI_CONTEXT_NULL_STREAM + 2, take_context },
	{ CUPTI_KIND_STREAM, CUPTI_STREAM_ID + 4, take_nothing },
};

static void take(struct record record)
{
	uint32_t kind = u32_at(record, 0);

	gpu_status()->records++;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		if (kinds[i].kind != kind)
			continue;
		if (record.length < kinds[i].least)
			gpu_status()->malformed++;
		else
			kinds[i].take(record);
		return;
	}
	gpu_status()->unknown++;
}

/* False: what is left of the buffer cannot be trusted. */
static bool take_next(const uint8_t *buffer, const uint8_t *at, const uint8_t *after, const uint8_t *end)
{
	if (at < buffer || at >= end || end - at < 8 || after <= at || after > end) {
		gpu_status()->malformed++;
		return false;
	}
	take((struct record){ at, (size_t)(after - at) });
	return true;
}

void gpu_records_decode(uint8_t *buffer, size_t valid)
{
	struct cupti *cupti = &the.gpu.cupti;
	const uint8_t *at, *end = buffer + valid;
	uint8_t *next = NULL;
	size_t dropped = 0;
	bool more;

	if (!gpu_begin())
		return;
	gpu_status()->buffers++;
	gpu_status()->buffer_bytes += valid;
	more = cupti->family->step(cupti, buffer, valid, &next) == CUPTI_OK;
	for (uint32_t count = 1; more; count++) {
		/* A record ends where the next one begins. */
		at = next;
		more = cupti->family->step(cupti, buffer, valid, &next) == CUPTI_OK;
		if (!take_next(buffer, at, more ? next : end, end))
			break;
		if (count % BREATH_RECORDS == 0) {
			gpu_end();
			if (!gpu_begin())
				return;
		}
	}
	if (cupti->family->dropped(cupti, &dropped) == CUPTI_OK)
		gpu_status()->dropped += dropped;
	gpu_end();
}

bool gpu_record_call(int domain, uint32_t cbid, uint64_t start_ns, uint64_t end_ns, uint32_t correlation)
{
	if (pthread_mutex_trylock(&the.gpu.lock))
		return false;
	if (the.gpu.open)
		put_call(domain, cbid, start_ns, end_ns - start_ns, correlation, (uint32_t)syscall(SYS_gettid));
	pthread_mutex_unlock(&the.gpu.lock);
	return true;
}

void gpu_record_bracket(uint64_t ticks, uint64_t before, uint64_t realtime, uint64_t after)
{
	struct bracket_payload payload = { before, realtime, after };

	gpu_put(the.gpu.names_lane, ticks, EVENT_GPU_CLOCK, 0, 0, &payload, sizeof payload);
}
