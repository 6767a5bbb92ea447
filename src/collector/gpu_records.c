/*
 * CUPTI's records into events: names into the lane of names, which is never given up, all else into one lane of work; the session
 * sorts it by streams and resolves names and times. Times stay CUPTI's own. Fields are read at offsets that every release has; a
 * record's length is the step to the next one.
 */
#include "collector/collector.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collector/libc.h"

enum { BREATH_RECORDS = 64 /* then others may have the lock */, CALL_NAME_BYTES = 128, CONTEXT_STREAMS = 100000, OVERHEAD_BUFFER_REQUEST = 7 << 16 /* from 12.9 on */ };

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

static void put(struct lane *lane, uint64_t at, uint8_t kind, uint32_t ref, uint8_t flags, const void *payload, size_t size)
{
	size_t whole = (sizeof(struct event) + size + 7) / 8 * 8;
	struct event *event = lane_reserve(lane, whole, ticks_now());

	if (!event)
		return;
	*event = (struct event){ at, ref, (uint16_t)whole, kind, flags };
	memset((char *)event + whole - 8, 0, 8);
	memcpy(event + 1, payload, size);
	lane_commit(lane, whole);
}

/* Payloads as event.def lists them; a string without bytes ends each that has a name. */
struct __attribute__((packed)) kernel_payload { uint64_t duration; uint32_t correlation, device, stream, grid[3], block[3]; uint16_t name; };
struct __attribute__((packed)) copy_payload { uint64_t duration; uint32_t correlation, device, stream; uint64_t bytes; uint32_t memory_kinds; };
struct __attribute__((packed)) set_payload { uint64_t duration; uint32_t correlation, device, stream; uint64_t bytes; };
struct __attribute__((packed)) sync_payload { uint64_t duration; uint32_t correlation, device, stream, kind; };
struct __attribute__((packed)) call_payload { uint64_t duration; uint32_t correlation, tid; uint16_t name; };
struct __attribute__((packed)) overhead_payload { uint64_t duration; uint32_t kind; };
struct __attribute__((packed)) memory_payload { uint64_t address, bytes; uint32_t correlation, device, operation, memory_kind; };
struct __attribute__((packed)) context_payload { uint32_t device, null_stream; };
struct __attribute__((packed)) bracket_payload { uint64_t before, realtime, after; };

/* ---- names ---- */

bool gpu_records_open(void)
{
	size_t names = GPU_NAMES * sizeof *the.gpu.names, calls = 2ull * GPU_CBIDS * (sizeof *the.gpu.call_names + sizeof *the.gpu.call_refs);

	if (!the.gpu.names) {
		char *memory = mmap(NULL, names + calls + GPU_NAMES_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		if (memory == MAP_FAILED)
			return false;
		the.gpu.names = (struct gpu_name *)memory;
		the.gpu.call_names = (const char **)(memory + names);
		the.gpu.call_refs = (uint32_t *)(the.gpu.call_names + 2 * GPU_CBIDS);
		the.gpu.copies = memory + names + calls;
	}
	madvise(the.gpu.names, names + calls + GPU_NAMES_BYTES, MADV_DONTNEED);
	the.gpu.copies_used = the.gpu.name_count = the.gpu.context_count = 0;
	the.gpu.graph_seen = false;
	return true;
}

static void tell_name(uint32_t ref, const char *text, size_t length, uint8_t flags)
{
	struct { uint16_t length; char text[GPU_NAME_BYTES]; } payload;

	payload.length = (uint16_t)length;
	memcpy(payload.text, text, length);
	put(the.gpu.names_lane, ticks_now(), EVENT_GPU_NAME, ref, flags, &payload, sizeof payload.length + length);
}

/* The number of a name that CUPTI keeps at KEY for as long as the module is loaded; told to the session at its first use. 0: no room. */
static uint32_t name_ref(const char *key)
{
	uint32_t slot = (uint32_t)(((uintptr_t)key >> 3) * 0x9e3779b97f4a7c15ull >> 40) % GPU_NAMES;
	size_t length;

	if (!key)
		return 0;
	/* A module that is loaded again may have another kernel's name at the same place. */
	for (; the.gpu.names[slot].ref; slot = (slot + 1) % GPU_NAMES)
		if (the.gpu.names[slot].key == key && strncmp(the.gpu.copies + the.gpu.names[slot].at, key, GPU_NAME_BYTES - 1) == 0)
			return the.gpu.names[slot].ref;
	length = strnlen(key, GPU_NAME_BYTES - 1);
	if (the.gpu.name_count + 1 >= GPU_NAMES / 2 || the.gpu.copies_used + length + 1 > GPU_NAMES_BYTES)
		return 0;
	memcpy(the.gpu.copies + the.gpu.copies_used, key, length);
	the.gpu.names[slot] = (struct gpu_name){ key, the.gpu.copies_used, ++the.gpu.name_count };
	the.gpu.copies_used += (uint32_t)length + 1;
	tell_name(the.gpu.name_count, key, length, key[length] ? EVENT_FLAG_CUT : 0);
	return the.gpu.name_count;
}

/* "cudaLaunchKernel" of "cudaLaunchKernel_v7000". Calls that nvcc 13 makes in place of others begin with two underscores. */
static size_t call_name(int domain, uint32_t cbid, char *out, size_t size)
{
	const char *name = the.gpu.call_names[(size_t)(domain - CUPTI_DOMAIN_DRIVER) * GPU_CBIDS + cbid], *version;

	if (!name)
		return (size_t)snprintf(out, size, "%s call %u", domain == CUPTI_DOMAIN_DRIVER ? "driver" : "runtime", (unsigned)cbid);
	while (*name == '_')
		name++;
	version = domain == CUPTI_DOMAIN_RUNTIME ? strrchr(name, '_') : NULL;
	if (version && version[1] == 'v' && version[2] >= '0' && version[2] <= '9' && (size_t)(version - name) < size)
		return (size_t)snprintf(out, size, "%.*s", (int)(version - name), name);
	return (size_t)snprintf(out, size, "%.*s", (int)size - 1, name);
}

static uint32_t call_ref(int domain, uint32_t cbid)
{
	uint32_t *ref = &the.gpu.call_refs[(size_t)(domain - CUPTI_DOMAIN_DRIVER) * GPU_CBIDS + cbid];
	char name[CALL_NAME_BYTES];

	if (!*ref) {
		size_t length = call_name(domain, cbid, name, sizeof name);

		*ref = ++the.gpu.name_count;
		tell_name(*ref, name, length < sizeof name ? length : sizeof name - 1, 0);
	}
	return *ref;
}

/* ---- contexts ---- */

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
	put(the.gpu.work_lane, start, EVENT_GPU_KERNEL, name_ref(string_at(record, CUPTI_KERNEL_NAME)), flags, &payload, sizeof payload);
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
	put(the.gpu.work_lane, start, copy_event(u8_at(record, CUPTI_MEMCPY_COPY_KIND)), 0, flags, &payload, sizeof payload);
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
	put(the.gpu.work_lane, start, EVENT_GPU_MEMSET, 0, flags, &payload, sizeof payload);
}

static void put_call(int domain, uint32_t cbid, uint64_t start, uint64_t duration, uint32_t correlation, uint32_t tid)
{
	struct call_payload payload = { .duration = duration, .correlation = correlation, .tid = tid };

	gpu_status()->calls++;
	put(the.gpu.work_lane, start, EVENT_GPU_API, call_ref(domain, cbid < GPU_CBIDS ? cbid : 0), 0, &payload, sizeof payload);
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
	put(the.gpu.work_lane, start, EVENT_GPU_SYNC, 0, 0, &payload, sizeof payload);
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
	put(the.gpu.work_lane, start, EVENT_GPU_KERNEL, name_ref(name), EVENT_FLAG_GRAPH, &payload, sizeof payload);
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
	put(the.gpu.work_lane, start, EVENT_GPU_OVERHEAD, 0, 0, &payload, sizeof payload);
}

static void take_memory(struct record record)
{
	struct memory_payload payload = { u64_at(record, CUPTI_MEMORY2_ADDRESS), u64_at(record, CUPTI_MEMORY2_BYTES), u32_at(record, CUPTI_MEMORY2_CORRELATION),
		u32_at(record, CUPTI_MEMORY2_DEVICE), u32_at(record, CUPTI_MEMORY2_OPERATION), u32_at(record, CUPTI_MEMORY2_MEMORY_KIND) };

	put(the.gpu.work_lane, u64_at(record, CUPTI_MEMORY2_TIME), EVENT_GPU_MEMORY, 0, 0, &payload, sizeof payload);
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
	char payload[512], uuid[48];
	size_t at = sizeof sizes + sizeof numbers;

	memcpy(payload, sizes, sizeof sizes);
	memcpy(payload + sizeof sizes, numbers, sizeof numbers);
	at = add_string(payload, at, name ? name : "", name ? strnlen(name, 255) : 0);
	at = add_string(payload, at, uuid, uuid_text(record.bytes + CUPTI_DEVICE_UUID, uuid));
	at = add_string(payload, at, uuid, u8_at(record, CUPTI_DEVICE_MIG_ENABLED) ? uuid_text(record.bytes + CUPTI_DEVICE_MIG_UUID, uuid) : 0);
	put(the.gpu.names_lane, ticks_now(), EVENT_GPU_DEVICE, u32_at(record, CUPTI_DEVICE_ID), 0, payload, at);
}

static void take_context(struct record record)
{
	struct context_payload payload = { u32_at(record, CUPTI_CONTEXT_DEVICE), u16_at(record, CUPTI_CONTEXT_NULL_STREAM) };
	uint32_t id = u32_at(record, CUPTI_CONTEXT_ID);

	payload.null_stream = stream_number(payload.device, id, payload.null_stream);
	put(the.gpu.names_lane, ticks_now(), EVENT_GPU_CONTEXT, id, 0, &payload, sizeof payload);
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

	put(the.gpu.names_lane, ticks, EVENT_GPU_CLOCK, 0, 0, &payload, sizeof payload);
}
