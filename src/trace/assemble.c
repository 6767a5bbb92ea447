/* The text of dump.c back into a trace. Fields may come in any order; a missing one is 0 or "". */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "trace/dump.h"
#include "trace/event_info.h"
#include "trace/format.h"
#include "trace/grammar.h"
#include "trace/scan.h"

enum { STRING_MAX = 65535, EVENT_MAX = 65528 };

struct assembler {
	struct scan scan;
	struct trace_writer *writer;
	struct chunk chunk;   /* the one being filled */
	bool in_chunk;
	struct text events;   /* of that chunk */
	struct text payload;  /* of the event being read */
	struct text strings;  /* values of its fields */
};

/* The value of one payload field: a number, or a piece of assembler.strings. */
struct value {
	bool given;
	uint64_t number;
	size_t at, length;
};

static int finish_chunk(struct assembler *assembler, struct error *err)
{
	if (!assembler->in_chunk)
		return 0;
	if (assembler->events.failed)
		return fail(err, ERR_MEMORY, "assembling a trace");
	if (assembler->events.length > CHUNK_RAW_MAX)
		return scan_fail(&assembler->scan, err, "the chunk before has more than 16 MiB of events");
	assembler->chunk.events = assembler->events.data ? assembler->events.data : "";
	assembler->chunk.size = assembler->events.length;
	return trace_writer_add(assembler->writer, &assembler->chunk, err);
}

static int scan_lane_kind(struct scan *scan, uint32_t *out, struct error *err)
{
	struct word word;
	size_t i;

	if (scan_at_digit(scan))
		return scan_u32(scan, out, err);
	word = scan_word(scan);
	for (i = 0; i < grammar_lane_kind_count; i++)
		if (word_is(&word, grammar_lane_kinds[i].name)) {
			*out = grammar_lane_kinds[i].value;
			return 0;
		}
	return scan_fail_at(scan, word.at, err, "'%.*s' is no kind of lane (meta, thread, session, gpu, memory)", (int)word.length, word.at);
}

static int scan_refs(struct scan *scan, struct chunk *chunk, struct error *err)
{
	chunk->ref_count = 0;
	while (scan_at_digit(scan)) {
		if (chunk->ref_count == LANE_DEPTH_REFS)
			return scan_fail(scan, err, "a chunk has at most %d refs", LANE_DEPTH_REFS);
		if (scan_u32(scan, &chunk->refs[chunk->ref_count++], err) < 0)
			return -1;
		if (!scan_accept(scan, ','))
			break;
	}
	return 0;
}

static int scan_clock(struct scan *scan, struct clock_map *clock, struct error *err)
{
	if (scan_u64(scan, &clock->ticks_per_second, err) < 0 || scan_expect(scan, '/', err) < 0 || scan_u64(scan, &clock->base_ticks, err) < 0 ||
	    scan_expect(scan, '/', err) < 0 || scan_u64(scan, &clock->base_ns, err) < 0)
		return -1;
	return 0;
}

static int scan_chunk_field(struct assembler *assembler, const struct word *name, struct error *err)
{
	struct scan *scan = &assembler->scan;
	struct chunk *chunk = &assembler->chunk;

	if (word_is(name, "process"))
		return scan_u32(scan, &chunk->process, err);
	if (word_is(name, "lane"))
		return scan_u32(scan, &chunk->lane, err);
	if (word_is(name, "tid"))
		return scan_u32(scan, &chunk->tid, err);
	if (word_is(name, "kind"))
		return scan_lane_kind(scan, &chunk->lane_kind, err);
	if (word_is(name, "sequence"))
		return scan_u64(scan, &chunk->sequence, err);
	if (word_is(name, "lost"))
		return scan_u64(scan, &chunk->lost_before, err);
	if (word_is(name, "depth"))
		return scan_u32(scan, &chunk->depth, err);
	if (word_is(name, "refs"))
		return scan_refs(scan, chunk, err);
	if (word_is(name, "clock"))
		return scan_clock(scan, &chunk->clock, err);
	return scan_fail_at(scan, name->at, err, "a chunk has no field '%.*s'", (int)name->length, name->at);
}

static int read_chunk_line(struct assembler *assembler, struct error *err)
{
	struct word name;

	if (finish_chunk(assembler, err) < 0)
		return -1;
	text_clear(&assembler->events);
	assembler->chunk = (struct chunk){ .lane_kind = LANE_THREAD, .sequence = 1, .clock = clock_map_monotonic() };
	assembler->in_chunk = true;
	while (!scan_line_ends(&assembler->scan)) {
		name = scan_word(&assembler->scan);
		if (scan_expect(&assembler->scan, '=', err) < 0 || scan_chunk_field(assembler, &name, err) < 0)
			return -1;
	}
	if (assembler->chunk.lane_kind > 255)
		return scan_fail(&assembler->scan, err, "a lane's kind is at most 255");
	return 0;
}

static int scan_flags(struct scan *scan, uint8_t *out, struct error *err)
{
	struct word word;
	uint32_t number;
	size_t i;

	*out = 0;
	do {
		if (scan_at_digit(scan)) {
			if (scan_u32(scan, &number, err) < 0)
				return -1;
			if (number > 255)
				return scan_fail(scan, err, "flags are at most 0xff");
			*out |= (uint8_t)number;
			continue;
		}
		word = scan_word(scan);
		for (i = 0; i < grammar_flag_count; i++)
			if (word_is(&word, grammar_flags[i].name))
				break;
		if (i == grammar_flag_count)
			return scan_fail_at(scan, word.at, err, "'%.*s' is no flag (exception, cut, later, sampled, or a number)", (int)word.length, word.at);
		*out |= (uint8_t)grammar_flags[i].value;
	} while (scan_accept(scan, '|'));
	return 0;
}

/* Which field of INFO is called NAME, or -1. */
static int find_field(const struct event_info *info, const struct word *name, struct event_field *out)
{
	const char *rest = info ? info->fields : "";
	int number;

	for (number = 0; number < EVENT_FIELDS_MAX && event_field_next(&rest, out); number++)
		if (out->name_length == name->length && memcmp(out->name, name->at, name->length) == 0)
			return number;
	return -1;
}

static int scan_value(struct assembler *assembler, const struct event_field *field, struct value *out, struct error *err)
{
	struct scan *scan = &assembler->scan;
	uint32_t u32;

	out->given = true;
	switch (field->type) {
	case FIELD_U32:
		if (scan_u32(scan, &u32, err) < 0)
			return -1;
		out->number = u32;
		return 0;
	case FIELD_U64:
		return scan_u64(scan, &out->number, err);
	case FIELD_I64:
		return scan_i64(scan, &out->number, err);
	default:
		out->at = assembler->strings.length;
		if (scan_string(scan, &assembler->strings, err) < 0)
			return -1;
		out->length = assembler->strings.length - out->at;
		return out->length > STRING_MAX ? scan_fail(scan, err, "a string has at most 65535 bytes") : 0;
	}
}

static int scan_payload(struct assembler *assembler, struct error *err)
{
	struct scan *scan = &assembler->scan;
	unsigned char byte;

	while (scan_hex_byte(scan, &byte))
		text_add(&assembler->payload, &byte, 1);
	if (assembler->payload.length % 8)
		return scan_fail(scan, err, "a payload is a multiple of 8 bytes; this one has %zu", assembler->payload.length);
	return 0;
}

static void add_values(struct assembler *assembler, const struct event_info *info, const struct value *values)
{
	static const char zeros[8];
	struct text *payload = &assembler->payload;
	const char *rest = info ? info->fields : "";
	struct event_field field;
	uint16_t length;

	for (; event_field_next(&rest, &field); values++) {
		if (field.type == FIELD_STR) {
			length = (uint16_t)values->length;
			text_add(payload, &length, 2);
			if (length)
				text_add(payload, assembler->strings.data + values->at, length);
		} else {
			text_add(payload, &values->number, field.type == FIELD_U32 ? 4 : 8);
		}
	}
	text_add(payload, zeros, -payload->length & 7);
}

/* "enter", or "kind_0x7f" of a kind that this version has no name for. */
static int scan_kind(struct scan *scan, uint8_t *out, struct error *err)
{
	struct word word = scan_word(scan);
	int kind = event_kind_of(word.at, word.length);
	char number[8] = "", *end;

	if (kind < 0 && word.length > 5 && word.length <= 9 && memcmp(word.at, "kind_", 5) == 0) {
		memcpy(number, word.at + 5, word.length - 5);
		kind = (int)strtol(number, &end, 0);
		if (*end || kind > 255)
			kind = -1;
	}
	if (kind < 0)
		return scan_fail_at(scan, word.at, err, "'%.*s' is no kind of event", (int)word.length, word.at);
	*out = (uint8_t)kind;
	return 0;
}

static int read_field(struct assembler *assembler, const struct event_info *info, struct event *event, struct value *values, bool *raw, struct error *err)
{
	struct scan *scan = &assembler->scan;
	struct word name = scan_word(scan);
	struct event_field field;
	int number;

	if (scan_expect(scan, '=', err) < 0)
		return -1;
	/* No field of a payload is called so; the header's come first. */
	if (word_is(&name, "ref"))
		return scan_u32(scan, &event->ref, err);
	if (word_is(&name, "flags"))
		return scan_flags(scan, &event->flags, err);
	if (word_is(&name, "payload")) {
		*raw = true;
		return scan_payload(assembler, err);
	}
	number = find_field(info, &name, &field);
	if (number < 0)
		return scan_fail_at(scan, name.at, err, "%s has no field '%.*s'", info ? info->name : "an unknown kind", (int)name.length, name.at);
	if (values[number].given)
		return scan_fail_at(scan, name.at, err, "'%.*s' is given twice", (int)name.length, name.at);
	return scan_value(assembler, &field, &values[number], err);
}

static int read_event_line(struct assembler *assembler, struct error *err)
{
	struct scan *scan = &assembler->scan;
	struct value values[EVENT_FIELDS_MAX] = { { .given = false } };
	const struct event_info *info;
	struct event event = { .ticks = 0 };
	bool raw = false;

	if (!assembler->in_chunk)
		return scan_fail(scan, err, "an event stands before the first chunk line");
	text_clear(&assembler->payload);
	text_clear(&assembler->strings);
	if (scan_u64(scan, &event.ticks, err) < 0 || scan_kind(scan, &event.kind, err) < 0)
		return -1;
	info = event_info(event.kind);
	while (!scan_line_ends(scan))
		if (read_field(assembler, info, &event, values, &raw, err) < 0)
			return -1;
	if (!raw)
		add_values(assembler, info, values);
	if (assembler->payload.failed || assembler->strings.failed)
		return fail(err, ERR_MEMORY, "assembling a trace");
	if (assembler->payload.length > EVENT_MAX - sizeof event)
		return scan_fail(scan, err, "an event has at most %d bytes", EVENT_MAX);
	event.size = (uint16_t)(sizeof event + assembler->payload.length);
	text_add(&assembler->events, &event, sizeof event);
	if (assembler->payload.length)
		text_add(&assembler->events, assembler->payload.data, assembler->payload.length);
	return 0;
}

int trace_assemble(const char *text, struct trace_writer *writer, struct error *err)
{
	struct assembler assembler = { .writer = writer };
	struct scan *scan = &assembler.scan;
	int result = 0;

	scan_start(scan, text);
	while (result == 0 && scan_next_line(scan)) {
		if (scan_at_digit(scan))
			result = read_event_line(&assembler, err);
		else if (scan_accept_word(scan, "chunk"))
			result = read_chunk_line(&assembler, err);
		else
			result = scan_fail(scan, err, "a line begins with 'chunk', a time, or '#'");
	}
	if (result == 0)
		result = finish_chunk(&assembler, err);
	text_done(&assembler.events);
	text_done(&assembler.payload);
	text_done(&assembler.strings);
	return result;
}

int trace_assemble_memory(const char *text, void **bytes, size_t *size, struct error *err)
{
	struct trace_writer *writer = NULL;
	struct sink *sink = NULL;
	struct text file;
	int result = -1;

	text_init(&file);
	if (sink_open_text(&file, &sink, err) < 0)
		return -1;
	if (trace_writer_open(sink, CODEC_DELTA_ZSTD, 0, &writer, err) == 0)
		result = trace_assemble(text, writer, err);
	trace_writer_close(writer);
	if (result == 0) {
		result = sink_commit(sink, err);
	} else {
		sink_discard(sink);
	}
	if (result < 0) {
		text_done(&file);
		return -1;
	}
	*bytes = file.data;
	*size = file.length;
	return 0;
}
