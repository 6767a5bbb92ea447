/* A trace as text. What the text cannot say by field names (unknown kinds, odd payloads) it says in hexadecimal, so that nothing is lost. */
#include "trace/dump.h"

#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "trace/event_info.h"
#include "trace/grammar.h"

static void dump_string(struct text *out, const char *bytes, size_t length)
{
	size_t at = 0, valid, step;

	text_add(out, "\"", 1);
	while (at < length) {
		for (valid = 0; at + valid < length && (step = utf8_length(bytes + at + valid, length - at - valid)); valid += step)
			;
		text_add_json(out, bytes + at, valid);
		at += valid;
		if (at < length)
			text_printf(out, "\\x%02x", (unsigned char)bytes[at++]);
	}
	text_add(out, "\"", 1);
}

static bool shown_as_hex(const struct event_field *field)
{
	static const char *const names[] = { "address", "start", "end", "offset", "code_flags" };
	size_t i;

	for (i = 0; i < sizeof names / sizeof *names; i++)
		if (strlen(names[i]) == field->name_length && memcmp(names[i], field->name, field->name_length) == 0)
			return true;
	return false;
}

/* The length that the payload has if it is as event.def says, with every field whole and zeros to the end; else 0. */
static bool payload_is_plain(const struct event_cursor *cursor, const struct event_info *info)
{
	const unsigned char *at = cursor->payload, *end = at + cursor->event.size - sizeof(struct event);
	const char *rest = info->fields;
	struct event_field field;
	uint16_t length;

	while (event_field_next(&rest, &field)) {
		length = field.type == FIELD_U32 ? 4 : field.type == FIELD_STR ? 2 : 8;
		if (end - at < length)
			return false;
		if (field.type == FIELD_STR) {
			memcpy(&length, at, 2);
			at += 2;
			if (end - at < length)
				return false;
		}
		at += length;
	}
	if (end - at >= 8)
		return false;
	while (at < end)
		if (*at++)
			return false;
	return true;
}

static void dump_field(struct text *out, const struct event_cursor *cursor, unsigned number, const struct event_field *field)
{
	const char *string;
	size_t length;

	text_printf(out, " %.*s=", (int)field->name_length, field->name);
	switch (field->type) {
	case FIELD_STR:
		string = event_str(cursor, number, &length);
		dump_string(out, string, length);
		break;
	case FIELD_I64:
		text_printf(out, "%" PRId64, event_i64(cursor, number));
		break;
	default:
		text_printf(out, shown_as_hex(field) ? "0x%" PRIx64 : "%" PRIu64, event_u64(cursor, number));
	}
}

static void dump_flags(struct text *out, unsigned flags)
{
	const char *separator = " flags=";
	size_t i;

	for (i = 0; i < grammar_flag_count; i++) {
		if (!(flags & grammar_flags[i].value))
			continue;
		text_printf(out, "%s%s", separator, grammar_flags[i].name);
		flags &= ~grammar_flags[i].value;
		separator = "|";
	}
	if (flags)
		text_printf(out, "%s0x%x", separator, flags);
}

static void dump_event(struct text *out, const struct event_cursor *cursor)
{
	const struct event_info *info = event_info(cursor->event.kind);
	const char *rest = info ? info->fields : "";
	struct event_field field;
	unsigned number = 0;
	size_t i;

	text_printf(out, "%" PRIu64 " ", cursor->event.ticks);
	if (info)
		text_add_string(out, info->name);
	else
		text_printf(out, "kind_0x%02x", cursor->event.kind);
	if (cursor->event.ref)
		text_printf(out, " ref=%" PRIu32, cursor->event.ref);
	if (cursor->event.flags)
		dump_flags(out, cursor->event.flags);
	if (info && payload_is_plain(cursor, info)) {
		while (event_field_next(&rest, &field))
			dump_field(out, cursor, number++, &field);
	} else if (cursor->event.size > sizeof(struct event)) {
		text_add_string(out, " payload=");
		for (i = 0; i < cursor->event.size - sizeof(struct event); i++)
			text_printf(out, "%02x", cursor->payload[i]);
	} else if (info && *info->fields) {
		text_add_string(out, " payload=");
	}
	text_add(out, "\n", 1);
}

static void dump_chunk_head(struct text *out, const struct chunk *chunk)
{
	uint32_t i;

	text_printf(out, "chunk process=%" PRIu32 " lane=%" PRIu32 " tid=%" PRIu32 " kind=", chunk->process, chunk->lane, chunk->tid);
	for (i = 0; i < grammar_lane_kind_count; i++)
		if (grammar_lane_kinds[i].value == chunk->lane_kind)
			break;
	if (i < grammar_lane_kind_count)
		text_add_string(out, grammar_lane_kinds[i].name);
	else
		text_printf(out, "%" PRIu32, chunk->lane_kind);
	text_printf(out, " sequence=%" PRIu64 " lost=%" PRIu64 " depth=%" PRIu32 " refs=", chunk->sequence, chunk->lost_before, chunk->depth);
	for (i = 0; i < chunk->ref_count; i++)
		text_printf(out, "%s%" PRIu32, i ? "," : "", chunk->refs[i]);
	text_printf(out, " clock=%" PRIu64 "/%" PRIu64 "/%" PRIu64 "\n", chunk->clock.ticks_per_second, chunk->clock.base_ticks, chunk->clock.base_ns);
}

/* Hands OUT over to SINK piece by piece, so that a large trace needs little memory. */
static int pass_on(struct text *text, struct sink *sink, struct error *err)
{
	if (text->failed)
		return fail(err, ERR_MEMORY, "dumping the trace");
	if (text->length)
		sink_write(sink, text->data, text->length);
	text_clear(text);
	return 0;
}

static int dump_chunks(struct trace *trace, struct text *text, struct sink *out, struct error *err)
{
	struct event_cursor cursor;
	struct chunk chunk;
	int got;

	while ((got = trace_next(trace, &chunk, err)) > 0) {
		dump_chunk_head(text, &chunk);
		cursor = event_cursor(chunk.events, chunk.size);
		while (event_next(&cursor)) {
			dump_event(text, &cursor);
			if (text->length > 32768 && pass_on(text, out, err) < 0)
				return -1;
		}
		if (pass_on(text, out, err) < 0)
			return -1;
	}
	return got;
}

int trace_dump(struct trace *trace, struct sink *out, struct error *err)
{
	struct trace_info info = trace_info(trace);
	struct text text;
	int result;

	text_init(&text);
	text_printf(&text, "# inferscope trace dump\n# version %" PRIu32 ", created %" PRIu64 " ns after 1970\n", info.version, info.created_unix_ns);
	result = dump_chunks(trace, &text, out, err);
	info = trace_info(trace);
	if (result == 0 && (info.damaged_chunks || info.damaged_bytes))
		text_printf(&text, "# damaged: %" PRIu64 " chunks, %" PRIu64 " bytes\n", info.damaged_chunks, info.damaged_bytes);
	if (result == 0 && info.truncated)
		text_add_string(&text, "# truncated: it ends inside a chunk\n");
	if (result == 0)
		result = pass_on(&text, out, err);
	text_done(&text);
	return result;
}
