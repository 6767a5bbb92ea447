/*
 * A Perfetto trace: https://perfetto.dev/docs/reference/trace-packet-proto, encoded by hand. Calls are written as they open and close, everything
 * else as it ends; the trace processor sorts by time and keeps the file's order where times are equal. Cut anywhere, the file is still readable.
 * Names are interned, so that an event takes some 25 bytes. The first packet is always the same: it is how InferScope knows its own files.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/export.h"
#include "report/export_counters.h"
#include "report/proto.h"
#include "report/rows.h"

enum packet_field { TRACE_PACKET = 1, PACKET_CLOCKS = 6, PACKET_TIMESTAMP = 8, PACKET_SEQUENCE = 10, PACKET_EVENT = 11, PACKET_INTERNED = 12, PACKET_FLAGS = 13, PACKET_TRACK = 60 };
enum event_field { ON_CATEGORY = 3, ON_NOTE = 4, ON_TYPE = 9, ON_NAME_IID = 10, ON_TRACK = 11, ON_NAME = 23, ON_PLACE_IID = 34, ON_DOUBLE = 44, ON_FLOW = 47 };
enum track_field { TRACK_UUID = 1, TRACK_NAME = 2, TRACK_PROCESS = 3, TRACK_THREAD = 4, TRACK_PARENT = 5, TRACK_COUNTER = 8 };
enum interned_field { INTERNED_CATEGORY = 1, INTERNED_NAME = 2, INTERNED_PLACE = 4 };
enum { TYPE_BEGIN = 1, TYPE_END = 2, TYPE_INSTANT = 3, TYPE_COUNTER = 4 };
enum { SEQUENCE = 1, STATE_CLEARED = 1, STATE_NEEDED = 2, CLOCK_REALTIME = 1, CLOCK_BOOTTIME = 6 };

static const unsigned char FIRST_PACKET[] = "\x0a\x16\x50\x01\x68\x01\x62\x10\x12\x0e\x08\x01\x12\x0aInferScope";

enum { NAMES_LIMIT = 65536, NAME_LIMIT = 4096 };

struct perfetto {
	const struct report *report;
	const struct timeline *timeline;
	struct sink *sink;
	struct rows *rows;
	struct strings *names;  /* of what is no function; iid = functions + 2 + id */
	unsigned char *written; /* by iid: the name was said */
	uint64_t *row_tracks;   /* uuid by id of the row */
	size_t row_capacity;
	uint32_t *pids; /* of processes, by index; their tracks likewise, the first is that of whatever has no thread */
	uint64_t next_uuid, *thread_tracks, *device_tracks, *process_tracks, counter_track;
	struct text packet, inner, message, name; /* scratch */
	bool failed;
};

static void put_packet(struct perfetto *all, const unsigned char *bytes, size_t length)
{
	unsigned char head[PROTO_FIELD_BYTES];

	sink_write(all->sink, head, (size_t)(proto_head(head, TRACE_PACKET, length) - head));
	sink_write(all->sink, bytes, length);
}

/* Writes what is in all->packet. */
static void end_packet(struct perfetto *all)
{
	all->failed |= all->packet.failed || all->inner.failed || all->message.failed || all->name.failed;
	if (!all->failed)
		put_packet(all, (const unsigned char *)all->packet.data, all->packet.length);
}

static void begin_packet(struct perfetto *all)
{
	text_clear(&all->packet);
	text_clear(&all->inner);
	proto_add_number(&all->packet, PACKET_SEQUENCE, SEQUENCE);
	proto_add_number(&all->packet, PACKET_FLAGS, STATE_NEEDED);
}

static void intern(struct perfetto *all, enum interned_field field, uint64_t iid, const char *name)
{
	text_clear(&all->message);
	proto_add_number(&all->message, 1, iid);
	proto_add_string(&all->message, 2, name);
	proto_add_message(&all->inner, field, &all->message);
}

/* The name of a function and where it stands, at its first use. */
static void intern_function(struct perfetto *all, uint32_t function)
{
	begin_packet(all);
	export_name(all->timeline, function, &all->name);
	intern(all, INTERNED_NAME, (uint64_t)function + 2, text_string(&all->name));
	text_clear(&all->message);
	proto_add_number(&all->message, 1, (uint64_t)function + 1);
	proto_add_string(&all->message, 3, text_string(&all->name));
	export_file(all->timeline, function, &all->name);
	proto_add_bytes(&all->message, 2, all->name.data, all->name.length);
	if (all->timeline->functions[function].line)
		proto_add_number(&all->message, 4, all->timeline->functions[function].line);
	proto_add_message(&all->inner, INTERNED_PLACE, &all->message);
	proto_add_message(&all->packet, PACKET_INTERNED, &all->inner);
	end_packet(all);
}

/* The iid of a name, said before if it is new; 0 when there are too many names: then it is written out. */
static uint64_t intern_name(struct perfetto *all, const char *name)
{
	uint32_t id;

	if (strings_count(all->names) >= NAMES_LIMIT || strlen(name) > NAME_LIMIT)
		return 0;
	id = strings_add(all->names, name, strlen(name));
	if (id == UINT32_MAX) {
		all->failed = true;
		return 0;
	}
	if (!(all->written[id / 8] & 1u << id % 8)) {
		all->written[id / 8] |= (unsigned char)(1u << id % 8);
		begin_packet(all);
		export_string(name, &all->name);
		intern(all, INTERNED_NAME, (uint64_t)all->timeline->function_count + 2 + id, text_string(&all->name));
		proto_add_message(&all->packet, PACKET_INTERNED, &all->inner);
		end_packet(all);
	}
	return (uint64_t)all->timeline->function_count + 2 + id;
}

/* Begins a track in all->packet and all->inner. */
static uint64_t begin_track(struct perfetto *all, const char *name, uint64_t parent)
{
	uint64_t uuid = all->next_uuid++;

	begin_packet(all);
	proto_add_number(&all->inner, TRACK_UUID, uuid);
	if (name)
		proto_add_string(&all->inner, TRACK_NAME, name);
	if (parent)
		proto_add_number(&all->inner, TRACK_PARENT, parent);
	return uuid;
}

static void end_track(struct perfetto *all)
{
	proto_add_message(&all->packet, PACKET_TRACK, &all->inner);
	end_packet(all);
}

static void put_process(struct perfetto *all, uint32_t process)
{
	all->process_tracks[process] = begin_track(all, NULL, 0);
	export_process(all->report, process, &all->name);
	text_clear(&all->message);
	proto_add_number(&all->message, 1, all->pids[process]);
	proto_add_string(&all->message, 6, text_string(&all->name));
	proto_add_message(&all->inner, TRACK_PROCESS, &all->message);
	end_track(all);
}

static uint64_t thread_track(struct perfetto *all, uint32_t thread)
{
	uint32_t process = export_process_of(all->timeline, thread);
	uint64_t *track;

	if (thread >= all->timeline->thread_count)
		return all->process_tracks[process];
	track = &all->thread_tracks[thread];
	if (*track)
		return *track; /* cppcheck-suppress identicalInnerCondition ; the number, not whether there is one */
	*track = begin_track(all, NULL, all->process_tracks[process]);
	export_thread(all->timeline, thread, &all->name);
	text_clear(&all->message);
	proto_add_number(&all->message, 1, all->pids[process]);
	proto_add_number(&all->message, 2, all->timeline->threads[thread].tid);
	proto_add_string(&all->message, 5, text_string(&all->name));
	proto_add_message(&all->inner, TRACK_THREAD, &all->message);
	end_track(all);
	return *track;
}

static uint64_t device_track(struct perfetto *all, uint32_t device)
{
	char name[32];

	for (size_t i = 0; i < all->timeline->device_count; i++)
		if (all->timeline->devices[i].id == device) {
			if (!all->device_tracks[i]) {
				snprintf(name, sizeof name, "GPU %u", device);
				all->device_tracks[i] = begin_track(all, name, 0);
				end_track(all);
			}
			return all->device_tracks[i];
		}
	return 0;
}

static uint64_t row_track(struct perfetto *all, const struct row *row, bool fresh)
{
	uint64_t parent, *bigger;

	if (!fresh)
		return all->row_tracks[row->id];
	if (row->id >= all->row_capacity) {
		bigger = realloc(all->row_tracks, (row->id + (size_t)256) * sizeof *bigger);
		if (!bigger) {
			all->failed = true;
			return 0;
		}
		all->row_tracks = bigger;
		all->row_capacity = row->id + (size_t)256;
	}
	parent = row->group == ROWS_STREAM || row->group == ROWS_SYNC ? device_track(all, row->a) : thread_track(all, row->a);
	if (row->group == ROWS_CALLS && !row->number && row->a < all->timeline->thread_count) {
		all->row_tracks[row->id] = parent;
	} else {
		row_name(row, all->timeline, &all->name);
		all->row_tracks[row->id] = begin_track(all, all->name.data, parent);
		end_track(all);
	}
	return all->row_tracks[row->id];
}

static unsigned char *event_head(unsigned char *at, uint64_t at_ns)
{
	at = proto_number(at, PACKET_TIMESTAMP, at_ns);
	at = proto_number(at, PACKET_SEQUENCE, SEQUENCE);
	return proto_number(at, PACKET_FLAGS, STATE_NEEDED);
}

static void put_event(struct perfetto *all, uint64_t at_ns, const unsigned char *event, size_t length)
{
	unsigned char packet[256], *at = event_head(packet, at_ns);

	at = proto_head(at, PACKET_EVENT, length);
	memcpy(at, event, length);
	put_packet(all, packet, (size_t)(at - packet) + length);
}

static void put_end(struct perfetto *all, uint64_t track, uint64_t at_ns)
{
	unsigned char event[64], *at = proto_number(event, ON_TYPE, TYPE_END);

	at = proto_number(at, ON_TRACK, track);
	put_event(all, at_ns, event, (size_t)(at - event));
}

static bool call_begins(void *context, const struct interval *call)
{
	struct perfetto *all = context;
	unsigned char event[128], *at;
	struct row *row;
	uint64_t track;
	bool fresh;

	row = rows_of_calls(all->rows, call->lane, call->thread, &fresh);
	if (!row)
		return true;
	track = row_track(all, row, fresh);
	at = proto_number(event, ON_TYPE, TYPE_BEGIN);
	at = proto_number(at, ON_TRACK, track);
	at = proto_number(at, ON_CATEGORY, export_kind(call->kind) + 1);
	if (call->function < all->timeline->function_count) {
		unsigned char *mark = &all->written[(NAMES_LIMIT + 8 + call->function) / 8], bit = (unsigned char)(1u << (NAMES_LIMIT + 8 + call->function) % 8);

		if (!(*mark & bit)) {
			*mark |= bit;
			intern_function(all, call->function);
		}
		at = proto_number(at, ON_NAME_IID, (uint64_t)call->function + 2);
		at = proto_number(at, ON_PLACE_IID, (uint64_t)call->function + 1);
	} else {
		at = proto_number(at, ON_NAME_IID, intern_name(all, "(unknown)"));
	}
	put_event(all, call->start_ns, event, (size_t)(at - event));
	return !all->failed && !sink_failed(all->sink);
}

/* Adds a note to the event in all->inner. */
static void annotate(struct perfetto *all, const char *key, const char *string, uint64_t number)
{
	text_clear(&all->message);
	proto_add_string(&all->message, 10, key);
	if (string)
		proto_add_string(&all->message, 6, string);
	else
		proto_add_number(&all->message, 3, number);
	proto_add_message(&all->inner, ON_NOTE, &all->message);
}

static void annotate_device(struct perfetto *all, const struct interval *interval)
{
	char shape[64];

	if (interval->kind == EVENT_GPU_KERNEL) {
		snprintf(shape, sizeof shape, "%u, %u, %u", interval->grid[0], interval->grid[1], interval->grid[2]);
		annotate(all, "grid", shape, 0);
		snprintf(shape, sizeof shape, "%u, %u, %u", interval->block[0], interval->block[1], interval->block[2]);
		annotate(all, "block", shape, 0);
	}
	if (interval->bytes)
		annotate(all, "bytes", NULL, interval->bytes);
	if (interval->correlation)
		annotate(all, "correlation", NULL, interval->correlation);
}

/* Begins a slice, or puts an instant, on TRACK. */
static void put_other(struct perfetto *all, const struct interval *interval, unsigned type, uint64_t track)
{
	unsigned char bytes[64];
	const char *name = export_label(interval);
	uint64_t iid = interval->kind == EVENT_SCOPE_ENTER || interval->kind == EVENT_INSTANT ? 0 : intern_name(all, name);

	text_clear(&all->packet);
	text_clear(&all->inner);
	text_add(&all->packet, bytes, (size_t)(event_head(bytes, interval->start_ns) - bytes));
	proto_add_number(&all->inner, ON_TYPE, type);
	proto_add_number(&all->inner, ON_TRACK, track);
	proto_add_number(&all->inner, ON_CATEGORY, export_kind(interval->kind) + 1);
	if (iid) {
		proto_add_number(&all->inner, ON_NAME_IID, iid);
	} else {
		export_string(name, &all->name);
		proto_add_string(&all->inner, ON_NAME, text_string(&all->name));
	}
	if (*interval->metadata) {
		export_string(interval->metadata, &all->name);
		annotate(all, "metadata", text_string(&all->name), 0);
	}
	annotate_device(all, interval);
	if (export_flows(interval))
		text_add(&all->inner, bytes, (size_t)(proto_fixed64(bytes, ON_FLOW, interval->flow) - bytes));
	proto_add_message(&all->packet, PACKET_EVENT, &all->inner);
	end_packet(all);
}

static bool interval_ends(void *context, const struct interval *interval)
{
	struct perfetto *all = context;
	struct row *row;
	uint64_t track;
	bool fresh;

	switch (interval->kind) {
	case EVENT_PY_ENTER:
	case EVENT_C_ENTER:
		row = rows_of_calls(all->rows, interval->lane, interval->thread, &fresh);
		if (row && !fresh)
			put_end(all, all->row_tracks[row->id], interval->end_ns);
		break;
	case EVENT_SCOPE_EXIT:
		break;
	case EVENT_INSTANT:
	case EVENT_MEMORY_ALLOC:
	case EVENT_MEMORY_FREE:
		put_other(all, interval, TYPE_INSTANT, thread_track(all, interval->thread));
		break;
	default:
		row = rows_place(all->rows, interval, &fresh);
		if (!row)
			break;
		track = row_track(all, row, fresh);
		put_other(all, interval, TYPE_BEGIN, track);
		put_end(all, track, interval->end_ns);
	}
	return !all->failed && !sink_failed(all->sink);
}

/* What the trace's zero was by the clock on the wall. */
static void put_clocks(struct perfetto *all)
{
	const struct { unsigned id; uint64_t ns; } clocks[] = { { CLOCK_BOOTTIME, 0 }, { CLOCK_REALTIME, all->timeline->start_unix_ns } };

	if (!all->timeline->start_unix_ns)
		return;
	begin_packet(all);
	for (size_t i = 0; i < sizeof clocks / sizeof *clocks; i++) {
		text_clear(&all->message);
		proto_add_number(&all->message, 1, clocks[i].id);
		proto_add_number(&all->message, 2, clocks[i].ns);
		proto_add_message(&all->inner, 1, &all->message);
	}
	proto_add_number(&all->inner, 2, CLOCK_BOOTTIME);
	proto_add_message(&all->packet, PACKET_CLOCKS, &all->inner);
	end_packet(all);
}

static void put_categories(struct perfetto *all)
{
	begin_packet(all);
	for (size_t i = 0; i < EXPORT_KIND_COUNT; i++)
		intern(all, INTERNED_CATEGORY, i + 1, EXPORT_KINDS[i].category);
	intern(all, INTERNED_CATEGORY, EXPORT_KIND_COUNT + 1, "inferscope");
	proto_add_message(&all->packet, PACKET_INTERNED, &all->inner);
	end_packet(all);
}

/* An instant of the process, from InferScope itself. */
static void put_note(struct perfetto *all, uint64_t at_ns, const char *name, const char *key, const char *string)
{
	unsigned char bytes[64];

	text_clear(&all->packet);
	text_clear(&all->inner);
	text_add(&all->packet, bytes, (size_t)(event_head(bytes, at_ns) - bytes));
	proto_add_number(&all->inner, ON_TYPE, TYPE_INSTANT);
	proto_add_number(&all->inner, ON_TRACK, all->process_tracks[0]);
	proto_add_number(&all->inner, ON_CATEGORY, EXPORT_KIND_COUNT + 1);
	proto_add_string(&all->inner, ON_NAME, name);
	annotate(all, key, string ? string : "", 0);
	proto_add_message(&all->packet, PACKET_EVENT, &all->inner);
	end_packet(all);
}

static void put_quality(struct perfetto *all)
{
	export_quality(all->report, &all->name);
	put_note(all, 0, "InferScope: how good the data are", "quality", text_string(&all->name));
}

static void put_refused(struct perfetto *all)
{
	char number[32];

	if (!rows_refused(all->rows))
		return;
	snprintf(number, sizeof number, "%llu", (unsigned long long)rows_refused(all->rows));
	put_note(all, all->timeline->duration_ns, "InferScope: too many slices at one time, some are not shown", "slices", number);
}

static void put_value(struct perfetto *all, uint64_t track, uint64_t at_ns, double value)
{
	unsigned char event[64], *at = proto_number(event, ON_TYPE, TYPE_COUNTER);
	uint64_t bits;

	memcpy(&bits, &value, sizeof bits);
	at = proto_number(at, ON_TRACK, track);
	at = proto_fixed64(at, ON_DOUBLE, bits);
	put_event(all, at_ns, event, (size_t)(at - event));
}

static uint64_t counter_track(struct perfetto *all, const char *name)
{
	uint64_t track = begin_track(all, name, all->process_tracks[0]);

	proto_add_bytes(&all->inner, TRACK_COUNTER, "", 0);
	end_track(all);
	return track;
}

static void put_loads(struct perfetto *all)
{
	const struct timeline *timeline = all->timeline;

	for (size_t load = 0; load < EXPORT_LOAD_COUNT && timeline->slot_count; load++) {
		uint64_t track;

		text_clear(&all->name);
		text_printf(&all->name, "threads %s", EXPORT_LOADS[load].name);
		track = counter_track(all, text_string(&all->name));
		for (size_t i = 0; i < timeline->slot_count && !sink_failed(all->sink); i++)
			put_value(all, track, timeline->slots[i].start_ns, (double)export_load_milli(&timeline->slots[i], EXPORT_LOADS[load].state) / 1000);
	}
}

static void begin_counter(void *context, const char *name)
{
	struct perfetto *all = context;

	all->counter_track = counter_track(all, name);
}

static void put_point(void *context, uint64_t at_ns, double value)
{
	struct perfetto *all = context;

	put_value(all, all->counter_track, at_ns, value);
}

static int write_all(struct perfetto *all, struct error *err)
{
	sink_write(all->sink, FIRST_PACKET, sizeof FIRST_PACKET - 1);
	put_clocks(all);
	put_categories(all);
	put_process(all, 0);
	for (uint32_t i = 1; i < all->timeline->process_count; i++)
		put_process(all, i);
	for (uint32_t i = 0; i < all->timeline->thread_count; i++)
		thread_track(all, i);
	put_quality(all);
	put_loads(all);
	export_counters(all->timeline, &(struct counter_sink){ all, begin_counter, put_point });
	if (timeline_walk(all->timeline, all->report->trace, call_begins, interval_ends, all, err) < 0)
		return -1;
	put_refused(all);
	if (all->failed || rows_failed(all->rows))
		return fail(err, ERR_MEMORY, "writing the Perfetto trace");
	return 0;
}

int write_perfetto(const struct report *report, struct sink *sink, struct error *err)
{
	const struct timeline *timeline = report->timeline;
	struct perfetto all = { .report = report, .timeline = timeline, .sink = sink, .next_uuid = 1 };
	int result = -1;

	if (export_trace(report, "perfetto", err) < 0)
		return -1;
	all.rows = rows_new();
	all.names = strings_new();
	all.written = calloc((NAMES_LIMIT + 16 + timeline->function_count) / 8 + 1, 1);
	all.pids = export_pids(report, false);
	all.process_tracks = calloc(timeline->process_count + 1, sizeof *all.process_tracks);
	all.thread_tracks = calloc(timeline->thread_count + 1, sizeof *all.thread_tracks);
	all.device_tracks = calloc(timeline->device_count + 1, sizeof *all.device_tracks);
	if (!all.rows || !all.names || !all.written || !all.pids || !all.process_tracks || !all.thread_tracks || !all.device_tracks)
		fail(err, ERR_MEMORY, "writing the Perfetto trace");
	else
		result = write_all(&all, err);
	text_done(&all.packet);
	text_done(&all.inner);
	text_done(&all.message);
	text_done(&all.name);
	rows_free(all.rows);
	strings_free(all.names);
	free(all.written);
	free(all.row_tracks);
	free(all.pids);
	free(all.process_tracks);
	free(all.thread_tracks);
	free(all.device_tracks);
	return result;
}
