#include "session/gpu_relay.h"

#include <stdio.h>

#include "abi/cupti.h"
#include "base/arena.h"
#include "base/map.h"
#include "trace/writer.h"
#include "unwind/demangle.h"

enum { CHUNK_BYTES = 256 * 1024, PENDING_MOST = 64 << 20, LANES_MOST = 4096, NAMES_MOST = 1 << 16, NAME_BYTES = 4096 };

/* Copies and syncs stand apart from kernels; calls, overhead and allocations are no stream's; ranges are a thread's. */
enum class { CLASS_KERNEL, CLASS_COPY, CLASS_SYNC, CLASS_CALL, CLASS_OVERHEAD, CLASS_MEMORY, CLASS_RANGE };

struct waiting { uint64_t key, ticks; size_t at; };
struct stream { uint32_t lane, tid; uint64_t sequence; };

struct gpu_relay {
	struct gpu_relay_sink sink;
	struct gpu_clock clock;
	struct arena arena;
	LIST(const char *) names; /* by their number - 1 */
	struct event_builder pending; /* as they came */
	LIST(struct stream) streams;
	struct map stream_index;
	struct event_builder events; /* of the chunk in work */
	struct gpu_relay_totals totals;
	uint64_t lost;
};

struct gpu_relay *gpu_relay_new(const struct gpu_relay_sink *sink)
{
	struct gpu_relay *relay = calloc(1, sizeof *relay);

	if (!relay)
		return NULL;
	relay->sink = *sink;
	arena_init(&relay->arena);
	event_builder_init(&relay->pending);
	event_builder_init(&relay->events);
	return relay;
}

void gpu_relay_free(struct gpu_relay *relay)
{
	if (!relay)
		return;
	gpu_clock_done(&relay->clock);
	list_done(&relay->names);
	list_done(&relay->streams);
	map_done(&relay->stream_index);
	event_builder_done(&relay->pending);
	event_builder_done(&relay->events);
	arena_done(&relay->arena);
	free(relay);
}

/* ---- what comes in ---- */

static void name_note(struct gpu_relay *relay, uint32_t ref, const char *text, size_t length)
{
	char raw[NAME_BYTES], plain[DEMANGLED_MAX];
	char *kept;

	if (!ref || ref > NAMES_MOST || (ref <= relay->names.count && relay->names.items[ref - 1]))
		return; /* told once: a process that tells it again and again takes no more memory */
	while (relay->names.count < ref)
		if (!list_add(&relay->names, NAMES_MOST))
			return;
	length = length < sizeof raw ? length : sizeof raw - 1;
	memcpy(raw, text, length);
	raw[length] = '\0';
	length = demangle(raw, plain);
	kept = arena_alloc(&relay->arena, length + 1);
	if (kept)
		relay->names.items[ref - 1] = memcpy(kept, plain, length + 1);
}

void gpu_relay_names(struct gpu_relay *relay, const struct chunk *chunk)
{
	for (struct event_cursor c = event_cursor(chunk->events, chunk->size); event_next(&c);) {
		size_t length;
		const char *text;

		switch (c.event.kind) {
		case EVENT_GPU_NAME:
			text = event_str(&c, 0, &length);
			name_note(relay, c.event.ref, text, length);
			break;
		case EVENT_GPU_CLOCK:
			gpu_clock_add(&relay->clock, event_u64(&c, 0), clock_to_ns(&chunk->clock, c.event.ticks), event_u64(&c, 1), event_u64(&c, 2));
			break;
		default:
			break;
		}
	}
}

void gpu_relay_work(struct gpu_relay *relay, const struct chunk *chunk)
{
	relay->lost = chunk->lost_before > relay->lost ? chunk->lost_before : relay->lost;
	event_builder_append(&relay->pending, chunk->events, chunk->size);
	if (relay->pending.size > PENDING_MOST)
		gpu_relay_run(relay, true);
}

/* ---- what goes out ---- */

static enum class class_of(unsigned kind)
{
	switch (kind) {
	case EVENT_GPU_KERNEL:
		return CLASS_KERNEL;
	case EVENT_GPU_SYNC:
		return CLASS_SYNC;
	case EVENT_GPU_API:
		return CLASS_CALL;
	case EVENT_GPU_OVERHEAD:
		return CLASS_OVERHEAD;
	case EVENT_GPU_MEMORY:
		return CLASS_MEMORY;
	case EVENT_GPU_RANGE:
		return CLASS_RANGE;
	default:
		return CLASS_COPY;
	}
}

static uint64_t key_of(const struct event_cursor *c)
{
	enum class class = class_of(c->event.kind);
	uint64_t key = (uint64_t)class << 60;

	if (class <= CLASS_SYNC)
		key |= (uint64_t)(event_u32(c, 2) & 0xfffffff) << 32 | event_u32(c, 3);
	else if (class == CLASS_RANGE)
		key |= event_u32(c, 0);
	return key;
}

static struct stream *stream_of(struct gpu_relay *relay, uint64_t key)
{
	uint32_t index = map_get(&relay->stream_index, key);
	struct stream *stream;

	if (index != MAP_ABSENT)
		return &relay->streams.items[index];
	stream = list_add(&relay->streams, LANES_MOST);
	if (!stream || !map_put(&relay->stream_index, key, (uint32_t)relay->streams.count - 1))
		return NULL;
	stream->lane = relay->sink.lane(relay->sink.context);
	if (key >> 60 == CLASS_RANGE)
		stream->tid = relay->sink.outer_tid(relay->sink.context, (uint32_t)key);
	return stream;
}

static const char *name_of(struct gpu_relay *relay, uint32_t ref)
{
	const char *name = ref && ref <= relay->names.count ? relay->names.items[ref - 1] : NULL;

	relay->totals.nameless += !name;
	return name ? name : "(unknown)";
}

/* Ids are the process's: a range that ends in another thread than it began in stays open. */
static void rewrite_range(struct gpu_relay *relay, const struct event_cursor *c)
{
	struct event_builder *out = &relay->events;
	uint64_t at = c->event.ticks, id = event_u32(c, 1);

	switch (event_u32(c, 2)) {
	case CUPTI_RANGE_START:
		event_add(out, at, EVENT_SCOPE_ENTER, 0, 0, id, name_of(relay, c->event.ref), "");
		break;
	case CUPTI_RANGE_END:
		event_add(out, at, EVENT_SCOPE_EXIT, 0, 0, id);
		break;
	default:
		event_add(out, at, EVENT_INSTANT, 0, 0, name_of(relay, c->event.ref), "");
		break;
	}
}

/* The event as the trace has it. Durations are ns of ours, whatever the device's clock counts. False: it is none of a device's. */
static bool rewrite(struct gpu_relay *relay, const struct event_cursor *c, const struct clock_map *map)
{
	struct event_builder *out = &relay->events;
	uint64_t at = c->event.ticks, duration = c->event.kind == EVENT_GPU_RANGE ? 0 : clock_to_ns(map, at + event_u64(c, 0)) - clock_to_ns(map, at);
	unsigned flags = c->event.flags;

	switch (c->event.kind) {
	case EVENT_GPU_KERNEL:
		event_add(out, at, EVENT_GPU_KERNEL, 0, flags, duration, event_u32(c, 1), event_u32(c, 2), event_u32(c, 3), event_u32(c, 4), event_u32(c, 5), event_u32(c, 6), event_u32(c, 7),
		          event_u32(c, 8), event_u32(c, 9), name_of(relay, c->event.ref));
		relay->totals.kernels++;
		break;
	case EVENT_H2D_COPY:
	case EVENT_D2H_COPY:
	case EVENT_D2D_COPY:
		event_add(out, at, c->event.kind, 0, flags, duration, event_u32(c, 1), event_u32(c, 2), event_u32(c, 3), event_u64(c, 4), event_u32(c, 5));
		break;
	case EVENT_GPU_MEMSET:
		event_add(out, at, EVENT_GPU_MEMSET, 0, flags, duration, event_u32(c, 1), event_u32(c, 2), event_u32(c, 3), event_u64(c, 4));
		break;
	case EVENT_GPU_SYNC:
		event_add(out, at, EVENT_GPU_SYNC, 0, flags, duration, event_u32(c, 1), event_u32(c, 2), event_u32(c, 3), event_u32(c, 4));
		break;
	case EVENT_GPU_API:
		event_add(out, at, EVENT_GPU_API, 0, flags, duration, event_u32(c, 1), relay->sink.outer_tid(relay->sink.context, event_u32(c, 2)), name_of(relay, c->event.ref));
		relay->totals.calls++;
		break;
	case EVENT_GPU_OVERHEAD:
		event_add(out, at, EVENT_GPU_OVERHEAD, 0, flags, duration, event_u32(c, 1));
		break;
	case EVENT_GPU_MEMORY:
		event_add(out, at, EVENT_GPU_MEMORY, 0, flags, event_u64(c, 0), event_u64(c, 1), event_u32(c, 2), event_u32(c, 3), event_u32(c, 4), event_u32(c, 5));
		break;
	case EVENT_GPU_RANGE:
		rewrite_range(relay, c);
		break;
	default:
		return false;
	}
	relay->totals.events++;
	return true;
}

static void chunk_out(struct gpu_relay *relay, struct stream *stream, const struct clock_map *map, uint64_t count)
{
	struct chunk chunk = { .lane = stream->lane, .tid = stream->tid, .lane_kind = LANE_GPU, .sequence = ++stream->sequence, .clock = *map, .events = relay->events.bytes, .size = relay->events.size };

	/* There was one lane, and what was lost of it may have been any stream's: said once. */
	if (stream == relay->streams.items)
		chunk.lost_before = relay->lost;
	if (chunk.size)
		relay->sink.chunk(relay->sink.context, &chunk, count);
	event_builder_clear(&relay->events);
}

static int compare(const void *left, const void *right)
{
	const struct waiting *a = left, *b = right;

	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	if (a->ticks != b->ticks)
		return a->ticks < b->ticks ? -1 : 1;
	return a->at < b->at ? -1 : a->at > b->at;
}

static bool same_map(const struct clock_map *a, const struct clock_map *b)
{
	return a->base_ticks == b->base_ticks && a->base_ns == b->base_ns && a->ticks_per_second == b->ticks_per_second;
}

/* WAITING is sorted by stream and time. A chunk has one conversion, so that a new one begins where that changes. */
static void hand_on(struct gpu_relay *relay, const struct waiting *waiting, size_t count)
{
	struct stream *stream = NULL;
	struct clock_map map = { 0 }, here;
	uint64_t in_chunk = 0;

	for (size_t i = 0; i < count; i++) {
		struct event_cursor c = event_cursor(relay->pending.bytes + waiting[i].at, relay->pending.size - waiting[i].at);
		bool other = i == 0 || waiting[i].key != waiting[i - 1].key;

		if (!event_next(&c) || !gpu_clock_at(&relay->clock, waiting[i].ticks, &here)) {
			relay->totals.timeless++;
			continue;
		}
		if (stream && in_chunk && (other || !same_map(&here, &map) || relay->events.size > CHUNK_BYTES)) {
			chunk_out(relay, stream, &map, in_chunk);
			in_chunk = 0;
		}
		if (other)
			stream = stream_of(relay, waiting[i].key);
		map = here;
		if (stream)
			in_chunk += rewrite(relay, &c, &map);
		else
			relay->totals.timeless++;
	}
	if (stream && in_chunk)
		chunk_out(relay, stream, &map, in_chunk);
}

/* What is younger than the last comparison of clocks waits for the next one. */
void gpu_relay_run(struct gpu_relay *relay, bool all)
{
	uint64_t reached = gpu_clock_reached(&relay->clock);
	LIST(struct waiting) ready = { 0 };
	struct event_builder later;

	if (!relay->pending.size || (!all && !reached))
		return;
	event_builder_init(&later);
	for (struct event_cursor c = event_cursor(relay->pending.bytes, relay->pending.size); event_next(&c);) {
		const unsigned char *at = c.payload - sizeof(struct event);
		struct waiting *slot;

		if (!all && c.event.ticks > reached) {
			event_builder_append(&later, at, c.event.size);
			continue;
		}
		slot = list_add(&ready, SIZE_MAX / sizeof *slot);
		if (slot)
			*slot = (struct waiting){ key_of(&c), c.event.ticks, (size_t)(at - relay->pending.bytes) };
		else
			relay->totals.timeless++;
	}
	if (ready.count)
		qsort(ready.items, ready.count, sizeof *ready.items, compare);
	hand_on(relay, ready.items, ready.count);
	list_done(&ready);
	event_builder_done(&relay->pending);
	relay->pending = later;
}

struct gpu_relay_totals gpu_relay_totals(const struct gpu_relay *relay)
{
	return relay->totals;
}

const struct gpu_clock *gpu_relay_clock(const struct gpu_relay *relay)
{
	return &relay->clock;
}
