/* Activity records: what of an operation goes where is layout.def. Whatever is not a field is 0xA5, so that a reader who goes astray sees it. */
#include "profiler.h"
#include "settings.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILLER = 0xA5, SYSTEM_THREAD_ID = 1, OBJECT_THREAD = 2 };

enum field {
#define KIND(id, number, type)
#define SIZE(id, since, bytes)
#define FIELD(id, name, offset, bytes, since, header) AT_##id##_##name = (offset) << 8 | (bytes),
#include "layout.def"
#undef FIELD
};

static const struct {
	uint32_t kind, since;
	int bytes;
} sizes[] = {
#define FIELD(id, name, offset, bytes, since, header)
#undef SIZE
#define SIZE(id, since, bytes) { KIND_##id, since, bytes },
#include "layout.def"
};

static uint64_t gpu_records, next_grid;

int record_size(uint32_t kind)
{
	int bytes = 0;

	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
		if (sizes[i].kind == kind && sizes[i].since <= version())
			bytes = sizes[i].bytes;
	return bytes;
}

static void put(uint8_t *record, enum field field, uint64_t value)
{
	int offset = field >> 8, bytes = field & 0xff;

	if (offset + bytes <= record_size(*(uint32_t *)record))
		memcpy(record + offset, &value, (size_t)bytes);
}

static uint8_t *record_new(struct client *client, int tid, uint32_t kind)
{
	size_t size = (size_t)record_size(kind);
	uint8_t *record = buffer_room(client, tid, size);

	if (record) {
		memset(record, FILLER, size);
		memcpy(record, &kind, sizeof kind);
	}
	return record;
}

/* Where the line begins that the clock of whoever registered a callback makes with ours. */
static uint64_t first_at, first_ts;

void stamp_begin(void)
{
	first_at = driver->now_ns();
	first_ts = timestamp_callback();
}

/* CUPTI's default domain, or that of whoever registered a callback: two readings of it a while apart make a line. */
static uint64_t stamp(uint64_t at_ns)
{
	uint64_t now, ts;

	if (!timestamp_callback)
		return driver->stamp_ns(at_ns);
	now = driver->now_ns();
	ts = timestamp_callback();
	if (now - first_at < 1000000)
		return ts - (now - at_ns);
	return first_ts + (uint64_t)((double)(int64_t)(at_ns - first_at) * ((double)(ts - first_ts) / (double)(now - first_at)));
}

static uint64_t thread_id(const struct client *client, int tid)
{
	int type = client->v2 ? (int)client->attributes[ATTRIBUTE_THREAD_ID_TYPE] : thread_id_type;

	return type == SYSTEM_THREAD_ID ? (uint64_t)tid : ((uint64_t)tid * 0x9e3779b1u & 0xfffffffu) | 0x40000000u; /* the default is no kernel tid */
}

void record_call(struct client *client, const struct call *call)
{
	uint32_t kind = call->domain == DOMAIN_RUNTIME ? KIND_RUNTIME : KIND_DRIVER;
	uint8_t filter = call->cbid < CBIDS_MAX ? client->filters[call->domain][call->cbid] : 0;
	uint8_t *record;

	if (!(filter ? filter == 1 : client->kinds[kind]) || !(record = record_new(client, call->tid, kind)))
		return;
	put(record, AT_RUNTIME_CBID, call->cbid);
	put(record, AT_RUNTIME_START, stamp(call->start_ns));
	put(record, AT_RUNTIME_END, stamp(call->end_ns));
	put(record, AT_RUNTIME_PROCESS, (uint64_t)getpid());
	put(record, AT_RUNTIME_THREAD, thread_id(client, call->tid));
	put(record, AT_RUNTIME_CORRELATION, call->correlation);
	put(record, AT_RUNTIME_RESULT, (uint64_t)call->result);
}

/* One for each id that the thread had pushed, where the call itself is recorded, too. */
void record_external(struct client *client, const struct call *call, int kind, uint64_t id)
{
	uint8_t *record;

	if (!client->kinds[KIND_EXTERNAL] || !client->kinds[call->domain == DOMAIN_RUNTIME ? KIND_RUNTIME : KIND_DRIVER] ||
		!(record = record_new(client, call->tid, KIND_EXTERNAL)))
		return;
	put(record, AT_EXTERNAL_KIND, (uint64_t)kind);
	put(record, AT_EXTERNAL_ID, id);
	put(record, AT_EXTERNAL_CORRELATION, call->correlation);
}

static void put_common(uint8_t *record, const struct op *op, const enum field fields[5])
{
	put(record, fields[0], op->device);
	put(record, fields[1], op->context);
	put(record, fields[2], op->stream);
	put(record, fields[3], op->correlation);
	put(record, fields[4], op->graph);
}

/* Stamps of a GPU record; every INVALID_TS-th ones cannot be. */
static void put_stamps(uint8_t *record, const struct op *op, int forced)
{
	uint64_t start = op->raw && !op->start_ns ? 0 : stamp(op->start_ns) + (uint64_t)setting(SET_GPU_SKEW_NS);
	uint64_t end = forced || (op->raw && !op->end_ns) ? 0 : stamp(op->end_ns) + (uint64_t)setting(SET_GPU_SKEW_NS);
	int64_t bad = setting(SET_INVALID_TS);
	uint64_t n = gpu_records++;

	if (bad && (int64_t)(n % (uint64_t)bad) == bad - 1) {
		uint64_t kept = start;

		start = n / (uint64_t)bad % 3 == 0 ? 0 : start;
		end = n / (uint64_t)bad % 3 == 1 ? kept - 1000 : 0;
	}
	if (*(uint32_t *)record == KIND_GRAPH_TRACE) {
		put(record, AT_GRAPH_TRACE_START, start);
		put(record, AT_GRAPH_TRACE_END, end);
	} else { /* the same place in all others */
		put(record, AT_KERNEL_START, start);
		put(record, AT_KERNEL_END, end);
	}
	driver->took_memory((uint64_t)setting(SET_BYTES_PER_RECORD));
}

static void fill_kernel(uint8_t *record, const struct op *op)
{
	put_common(record, op, (enum field[5]){ AT_KERNEL_DEVICE, AT_KERNEL_CONTEXT, AT_KERNEL_STREAM, AT_KERNEL_CORRELATION, AT_KERNEL_GRAPH });
	put(record, AT_KERNEL_REGISTERS, 32);
	put(record, AT_KERNEL_COMPLETED, 0);
	put(record, AT_KERNEL_GRID_X, op->grid[0]);
	put(record, AT_KERNEL_GRID_Y, op->grid[1]);
	put(record, AT_KERNEL_GRID_Z, op->grid[2]);
	put(record, AT_KERNEL_BLOCK_X, op->block[0]);
	put(record, AT_KERNEL_BLOCK_Y, op->block[1]);
	put(record, AT_KERNEL_BLOCK_Z, op->block[2]);
	put(record, AT_KERNEL_STATIC_BYTES, 0);
	put(record, AT_KERNEL_DYNAMIC_BYTES, op->dynamic_bytes);
	put(record, AT_KERNEL_GRID_ID, ++next_grid);
	put(record, AT_KERNEL_NAME, (uint64_t)(uintptr_t)name_keep(op->name ? op->name : ""));
	put(record, AT_KERNEL_QUEUED, 0);
	put(record, AT_KERNEL_SUBMITTED, 0);
	put(record, AT_KERNEL_LAUNCH_TYPE, 0);
	put(record, AT_KERNEL_GRAPH_NODE, op->graph_node);
	put(record, AT_KERNEL_CHANNEL, 1);
	put(record, AT_KERNEL_CHANNEL_TYPE, 1);
	put(record, AT_KERNEL_DEVICE_LAUNCHED, 0);
	put(record, AT_KERNEL_PRIORITY, 0);
	put(record, AT_KERNEL_SOURCE_GRAPH, op->source_graph);
	put(record, AT_KERNEL_SOURCE_NODE, op->source_node);
}

static void fill_copy(uint8_t *record, const struct op *op)
{
	put_common(record, op, (enum field[5]){ AT_COPY_DEVICE, AT_COPY_CONTEXT, AT_COPY_STREAM, AT_COPY_CORRELATION, AT_COPY_GRAPH });
	put(record, AT_COPY_COPY, op->copy);
	put(record, AT_COPY_FROM, op->from);
	put(record, AT_COPY_TO, op->to);
	put(record, AT_COPY_FLAGS, op->async);
	put(record, AT_COPY_BYTES, op->bytes);
	put(record, AT_COPY_GRAPH_NODE, op->graph_node);
	put(record, AT_COPY_CHANNEL, 2);
	put(record, AT_COPY_COUNT, 1);
}

static void fill_peer_copy(uint8_t *record, const struct op *op)
{
	put_common(record, op, (enum field[5]){ AT_PEER_COPY_DEVICE, AT_PEER_COPY_CONTEXT, AT_PEER_COPY_STREAM, AT_PEER_COPY_CORRELATION, AT_PEER_COPY_GRAPH });
	put(record, AT_PEER_COPY_COPY, op->copy);
	put(record, AT_PEER_COPY_FROM, op->from);
	put(record, AT_PEER_COPY_TO, op->to);
	put(record, AT_PEER_COPY_FLAGS, op->async);
	put(record, AT_PEER_COPY_BYTES, op->bytes);
	put(record, AT_PEER_COPY_FROM_DEVICE, op->device);
	put(record, AT_PEER_COPY_TO_DEVICE, op->peer_device);
	put(record, AT_PEER_COPY_GRAPH_NODE, op->graph_node);
}

static void fill_memset(uint8_t *record, const struct op *op)
{
	put_common(record, op, (enum field[5]){ AT_MEMSET_DEVICE, AT_MEMSET_CONTEXT, AT_MEMSET_STREAM, AT_MEMSET_CORRELATION, AT_MEMSET_GRAPH });
	put(record, AT_MEMSET_VALUE, op->value);
	put(record, AT_MEMSET_BYTES, op->bytes);
	put(record, AT_MEMSET_FLAGS, op->async);
	put(record, AT_MEMSET_MEMORY, op->to);
	put(record, AT_MEMSET_GRAPH_NODE, op->graph_node);
}

static void fill_graph(uint8_t *record, const struct op *op)
{
	put_common(record, op, (enum field[5]){ AT_GRAPH_TRACE_DEVICE, AT_GRAPH_TRACE_CONTEXT, AT_GRAPH_TRACE_STREAM, AT_GRAPH_TRACE_CORRELATION, AT_GRAPH_TRACE_GRAPH });
}

static const struct {
	uint32_t kind;
	void (*fill)(uint8_t *record, const struct op *);
} shapes[] = {
	[OP_KERNEL] = { KIND_KERNEL, fill_kernel }, [OP_COPY] = { KIND_COPY, fill_copy }, [OP_PEER_COPY] = { KIND_PEER_COPY, fill_peer_copy },
	[OP_MEMSET] = { KIND_MEMSET, fill_memset }, [OP_GRAPH] = { KIND_GRAPH_TRACE, fill_graph },
};

static void record_op(struct client *client, const struct op *op, int tid, int forced)
{
	uint8_t *record = record_new(client, setting(SET_GPU_BUFFER) ? 0 : tid, shapes[op->kind].kind);

	if (record) {
		shapes[op->kind].fill(record, op);
		put_stamps(record, op, forced);
	}
}

static void record_sync(struct client *client, const struct op *op, const struct call *call)
{
	uint8_t *record;

	if (!client->kinds[KIND_SYNC] || (op->sync == SYNC_CONTEXT && version() <= V_13_0) || !(record = record_new(client, call->tid, KIND_SYNC)))
		return;
	put(record, AT_SYNC_TYPE, op->sync);
	put(record, AT_SYNC_START, stamp(call->start_ns));
	put(record, AT_SYNC_END, stamp(call->end_ns));
	put(record, AT_SYNC_CORRELATION, op->correlation);
	put(record, AT_SYNC_CONTEXT, op->context);
	put(record, AT_SYNC_STREAM, op->sync == SYNC_CONTEXT ? UINT32_MAX : op->stream);
	put(record, AT_SYNC_EVENT, op->sync == SYNC_EVENT ? op->event : UINT32_MAX);
	put(record, AT_SYNC_EVENT_SYNC, 0);
	put(record, AT_SYNC_RESULT, (uint64_t)call->result);
}

static void pending_add(struct client *client, const struct op *op, int tid)
{
	if (client->pending_count == client->pending_room) {
		size_t room = client->pending_room ? 2 * client->pending_room : 1024;
		struct pending *grown = realloc(client->pending, room * sizeof *grown);

		if (!grown)
			abort();
		client->pending = grown;
		client->pending_room = room;
	}
	client->pending[client->pending_count++] = (struct pending){ *op, tid };
}

void record_ops(struct client *client, const struct op *ops, size_t count, const struct call *call)
{
	struct op whole = ops[0];

	if (ops[0].graph && client->had_graph_trace) {
		whole.kind = OP_GRAPH;
		whole.end_ns = ops[count - 1].end_ns;
		if (client->kinds[KIND_GRAPH_TRACE])
			pending_add(client, &whole, call->tid);
		return;
	}
	for (size_t i = 0; i < count; i++) {
		if (ops[i].kind == OP_SYNC)
			record_sync(client, &ops[i], call);
		else if (client->kinds[shapes[ops[i].kind].kind])
			pending_add(client, &ops[i], call->tid);
	}
}

/* Taken out first: writing them may let the lock go. */
void record_done(struct client *client, int forced)
{
	uint64_t now = driver ? driver->now_ns() : 0;
	struct pending *done;
	size_t count = 0, kept = 0;
	unsigned generation = client->generation;

	if (!client->pending_count || !driver || !(done = malloc(client->pending_count * sizeof *done)))
		return;
	for (size_t i = 0; i < client->pending_count; i++)
		if (forced || client->pending[i].op.end_ns <= now)
			done[count++] = client->pending[i];
		else
			client->pending[kept++] = client->pending[i];
	client->pending_count = kept;
	for (size_t i = 0; i < count && client->generation == generation; i++)
		record_op(client, &done[i].op, done[i].tid, done[i].op.end_ns > now);
	free(done);
}

void record_overhead(struct client *client, uint32_t type, uint64_t start_ns, uint64_t end_ns)
{
	uint8_t *record;

	if (!client->kinds[KIND_OVERHEAD] || !(record = record_new(client, 0, KIND_OVERHEAD)))
		return;
	put(record, AT_OVERHEAD_TYPE, type);
	put(record, AT_OVERHEAD_OBJECT_KIND, 2);
	put(record, AT_OVERHEAD_START, stamp(start_ns));
	put(record, AT_OVERHEAD_END, stamp(end_ns));
	put(record, AT_OVERHEAD_CORRELATION, 0);
	memcpy(record + (AT_OVERHEAD_OBJECT >> 8), (uint32_t[3]){ (uint32_t)getpid(), (uint32_t)own_tid(), 0 }, 12);
}

void record_memory(struct client *client, const struct memory_change *change, const struct call *call)
{
	uint8_t *record;

	if (!client->kinds[KIND_MEMORY] || !(record = record_new(client, call->tid, KIND_MEMORY)))
		return;
	put(record, AT_MEMORY_OPERATION, (uint64_t)change->operation);
	put(record, AT_MEMORY_MEMORY, change->kind);
	put(record, AT_MEMORY_CORRELATION, call->correlation);
	put(record, AT_MEMORY_ADDRESS, (uint64_t)(uintptr_t)change->address);
	put(record, AT_MEMORY_BYTES, change->bytes);
	put(record, AT_MEMORY_TIME, stamp(driver->now_ns()));
	put(record, AT_MEMORY_PROCESS, (uint64_t)getpid());
	put(record, AT_MEMORY_DEVICE, change->device);
	put(record, AT_MEMORY_CONTEXT, change->device + 1);
	put(record, AT_MEMORY_STREAM, UINT32_MAX);
}

void record_range(struct client *client, const struct range *range)
{
	uint32_t object[3] = { (uint32_t)getpid(), (uint32_t)thread_id(client, range->tid), 0 };
	uint8_t *record;

	if (!client->kinds[KIND_MARKER] || !(record = record_new(client, range->tid, KIND_MARKER)))
		return;
	put(record, AT_MARKER_FLAGS, (uint64_t)range->what);
	put(record, AT_MARKER_TIME, stamp(driver->now_ns()));
	put(record, AT_MARKER_ID, range->id);
	put(record, AT_MARKER_OBJECT_KIND, OBJECT_THREAD);
	memcpy(record + (AT_MARKER_OBJECT >> 8), object, sizeof object);
	put(record, AT_MARKER_NAME, range->name ? (uint64_t)(uintptr_t)name_keep(range->name) : 0);
	put(record, AT_MARKER_DOMAIN, range->domain ? (uint64_t)(uintptr_t)name_keep(range->domain) : 0);
}

/* ---- what is there already: devices, contexts, streams ---- */

static struct client *dump_to; /* under the lock */

static void put_uuid(uint8_t *record, enum field field, uint32_t device, uint8_t salt)
{
	for (int i = 0; i < 16; i++)
		record[(field >> 8) + i] = (uint8_t)(device * 17 + (unsigned)i * 31 + salt);
}

static void record_device(struct client *client, uint32_t device)
{
	uint8_t *record = record_new(client, own_tid(), KIND_DEVICE);
	int mig = setting(SET_MIG) != 0;

	if (!record)
		return;
	put(record, AT_DEVICE_BANDWIDTH, 4800000000u); /* kB/s */
	put(record, AT_DEVICE_MEMORY, 141ull << 30);
	put(record, AT_DEVICE_PROCESSORS, mig ? 16 : 132);
	put(record, AT_DEVICE_MAJOR, 9);
	put(record, AT_DEVICE_MINOR, 0);
	put(record, AT_DEVICE_ID, device);
	put_uuid(record, AT_DEVICE_UUID, device, 1);
	put(record, AT_DEVICE_NAME, (uint64_t)(uintptr_t)name_keep(driver->name(mig ? "NVIDIA FakeGPU MIG 1g.18gb" : "NVIDIA FakeGPU")));
	put(record, AT_DEVICE_IS_MIG, (uint64_t)mig);
	put(record, AT_DEVICE_GPU_INSTANCE, mig ? 7 : UINT32_MAX);
	put(record, AT_DEVICE_COMPUTE_INSTANCE, mig ? 0 : UINT32_MAX);
	put_uuid(record, AT_DEVICE_MIG_UUID, device, mig ? 101 : 0);
}

static void record_context(struct client *client, uint32_t device, uint32_t context, uint32_t null_stream)
{
	uint8_t *record = record_new(client, own_tid(), KIND_CONTEXT);

	if (!record)
		return;
	put(record, AT_CONTEXT_ID, context);
	put(record, AT_CONTEXT_DEVICE, device);
	put(record, AT_CONTEXT_API, 1);
	put(record, AT_CONTEXT_NULL_STREAM, null_stream);
}

void record_stream(struct client *client, uint32_t device, uint32_t context, uint32_t stream)
{
	uint8_t *record = record_new(client, own_tid(), KIND_STREAM);

	if (!record)
		return;
	put(record, AT_STREAM_CONTEXT, context);
	put(record, AT_STREAM_ID, stream);
	put(record, AT_STREAM_PRIORITY, 0);
	put(record, AT_STREAM_FLAG, 1);
}

static void dump_stream(uint32_t device, uint32_t context, uint32_t stream)
{
	record_stream(dump_to, device, context, stream);
}

/* The first stream that is told of a device is its null stream. */
static void dump_context(uint32_t device, uint32_t context, uint32_t stream)
{
	static const uint32_t null_stream = 7;

	if (stream == null_stream)
		record_context(dump_to, device, context, stream);
}

void record_dump(struct client *client, uint32_t kind)
{
	dump_to = client;
	if (kind == KIND_DEVICE)
		for (int i = 0; i < driver->devices(); i++)
			record_device(client, (uint32_t)i);
	else if (kind == KIND_CONTEXT)
		driver->streams(dump_context);
	else if (kind == KIND_STREAM)
		driver->streams(dump_stream);
}
