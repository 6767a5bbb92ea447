/* Dump and assembler: exact both ways, and clear words for a wrong line. */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/trace_help.h"
#include "trace/event_info.h"

static const char every_shape[] =
	"chunk process=0 lane=2 tid=4711 kind=thread sequence=3 lost=17 depth=5 refs=7,8 clock=2596000000/123456/789\n"
	"1500 enter ref=1\n"
	"1800 leave ref=1 flags=exception\n"
	"1700 yield ref=2 flags=exception|cut|0x40\n"
	"18446744073709551615 c_enter ref=4294967295\n"
	"0 code ref=1 address=0x7f0012345678 line=12 code_flags=0x63 name=\"<lambda>\" qualname=\"A.<locals>.\xc3\xa9\" file=\"/srv/\\\"app\\\".py\"\n"
	"1 code payload=\n"
	"2 code payload=0011223344556677\n"
	"3 kind_0xee ref=9 flags=0x80 payload=00ff00ff00ff00ff\n"
	"4 kind_0xef\n"
	"chunk process=1 lane=4294967295 tid=0 kind=meta sequence=18446744073709551615 lost=0 depth=0 refs= clock=1000000000/0/0\n"
	"5 counter name=\"events\" value=-9223372036854775808\n"
	"6 instant name=\"\\u0000\\n\\xff\\xfe\\u202e\" metadata=\"\"\n"
	"chunk process=0 lane=0 tid=0 kind=200 sequence=1 lost=0 depth=0 refs= clock=1000000000/0/0\n"
	"chunk process=0 lane=0 tid=0 kind=gpu sequence=2 lost=0 depth=0 refs= clock=0/0/0\n"
	"7 gpu_kernel duration_ns=5000 correlation=1 device=0 stream=7 grid_x=1 grid_y=2 grid_z=3 block_x=4 block_y=5 block_z=6 name=\"sgemm\"\n";

Test(text_form, dump_of_assemble_is_the_same_text)
{
	struct bytes raw = trace_of_text(every_shape, CODEC_RAW), packed = trace_of_text(every_shape, CODEC_DELTA_ZSTD);
	char *from_raw = text_of_trace(raw.data, raw.size, NULL), *from_packed = text_of_trace(packed.data, packed.size, NULL);

	cr_assert_str_eq(from_raw, every_shape);
	cr_assert_str_eq(from_packed, every_shape);
	free(from_raw);
	free(from_packed);
	free(raw.data);
	free(packed.data);
}

Test(text_form, fields_come_in_any_order_and_missing_ones_are_zero)
{
	struct bytes file = trace_of_text("# by hand\n\n  chunk refs=1,2 lane=3  # a comment\n 5 code file=\"a#b.py\" line=0x10\r\n6 counter\n7 enter", CODEC_RAW);
	char *text = text_of_trace(file.data, file.size, NULL);

	cr_assert_str_eq(text, "chunk process=0 lane=3 tid=0 kind=thread sequence=1 lost=0 depth=0 refs=1,2 clock=1000000000/0/0\n"
			       "5 code address=0x0 line=16 code_flags=0x0 name=\"\" qualname=\"\" file=\"a#b.py\"\n"
			       "6 counter name=\"\" value=0\n"
			       "7 enter\n");
	free(text);
	free(file.data);
}

Test(text_form, escapes_are_those_of_json_and_bytes)
{
	struct bytes file = trace_of_text("chunk\n1 instant name=\"\\u00e9\\ud83d\\udc0d\\x41\\/\\b\\f\\r\\t\"", CODEC_RAW);
	char *text = text_of_trace(file.data, file.size, NULL);

	cr_assert_not_null(strstr(text, "name=\"\xc3\xa9\xf0\x9f\x90\x8d" "A/\\u0008\\u000c\\u000d\\t\""), "%s", text);
	free(text);
	free(file.data);
}

struct wrong_line {
	char text[120];
	char message[120];
};

ParameterizedTestParameters(text_form, says_line_and_column_of_what_is_wrong)
{
	static struct wrong_line rows[] = {
		{ "5 enter", "line 1, column 1: an event stands before the first chunk line" },
		{ "chunk\n\n5 entr", "line 3, column 3: 'entr' is no kind of event" },
		{ "chunk\n5 kind_0x100", "line 2, column 3: 'kind_0x100' is no kind of event" },
		{ "chunk\n5 enter ref=4294967296", "line 2, column 13: the number does not fit 32 bits" },
		{ "chunk\n18446744073709551616 enter", "line 2, column 1: the number does not fit 64 bits" },
		{ "chunk\n5 counter value=-9223372036854775809", "line 2, column 17: the number does not fit 64 bits with a sign" },
		{ "chunk\n5 counter value=", "line 2, column 17: a number is missing" },
		{ "chunk\n5 counter worth=1", "line 2, column 11: counter has no field 'worth'" },
		{ "chunk\n5 counter value=1 value=2", "line 2, column 19: 'value' is given twice" },
		{ "chunk\n5 counter name=\"open", "line 2, column 16: the string does not end" },
		{ "chunk\n5 counter name=\"\\q\"", "line 2, column 17: this escape is not known" },
		{ "chunk\n5 counter name=\"\\ud800\"", "line 2, column 17: this escape is not known" },
		{ "chunk\n5 counter name=\"\\ud83d\\u0041\"", "line 2, column 17: this escape is not known" },
		{ "chunk\n5 counter name", "line 2, column 15: '=' is missing" },
		{ "chunk\n5 enter flags=bad", "line 2, column 15: 'bad' is no flag (exception, cut, later, sampled, or a number)" },
		{ "chunk\n5 enter flags=256", "line 2, column 18: flags are at most 0xff" },
		{ "chunk\n5 kind_0xee payload=001122", "line 2, column 27: a payload is a multiple of 8 bytes; this one has 3" },
		{ "chunk kind=cpu", "line 1, column 12: 'cpu' is no kind of lane (meta, thread, session, gpu, memory)" },
		{ "chunk kind=256", "line 1, column 15: a lane's kind is at most 255" },
		{ "chunk size=1", "line 1, column 7: a chunk has no field 'size'" },
		{ "chunk clock=1/2", "line 1, column 16: '/' is missing" },
		{ "hello", "line 1, column 1: a line begins with 'chunk', a time, or '#'" },
	};

	return cr_make_param_array(struct wrong_line, rows, sizeof rows / sizeof *rows);
}

ParameterizedTest(struct wrong_line *row, text_form, says_line_and_column_of_what_is_wrong)
{
	struct error err = { ERR_NONE };
	void *bytes = NULL;
	size_t size;

	cr_assert_eq(trace_assemble_memory(row->text, &bytes, &size, &err), -1);
	cr_assert_eq(err.code, ERR_ASSEMBLE);
	cr_assert_str_eq(err.text, row->message);
	cr_assert_null(bytes);
}

Test(text_form, a_chunk_has_at_most_32_refs)
{
	char text[200] = "chunk refs=0";
	struct error err = { ERR_NONE };
	void *bytes;
	size_t size;
	int i;

	for (i = 1; i < LANE_DEPTH_REFS; i++)
		strcat(text, ",1");
	cr_assert_eq(trace_assemble_memory(text, &bytes, &size, &err), 0, "%s", err.text);
	free(bytes);
	strcat(text, ",1");
	cr_assert_eq(trace_assemble_memory(text, &bytes, &size, &err), -1);
}

Test(text_form, the_largest_string_fits_and_one_more_does_not)
{
	struct error err = { ERR_NONE };
	struct text text;
	void *bytes;
	size_t size;
	int i;

	text_init(&text);
	text_add_string(&text, "chunk\n1 counter name=\"");
	for (i = 0; i < 65496; i++)
		text_add(&text, "x", 1);
	text_add_string(&text, "\"");
	cr_assert_eq(trace_assemble_memory(text.data, &bytes, &size, &err), 0, "%s", err.text);
	free(bytes);
	text.data[text.length - 1] = 'x';
	text_add_string(&text, "xxxxxxxx\"");
	cr_assert_eq(trace_assemble_memory(text.data, &bytes, &size, &err), -1);
	cr_assert_not_null(strstr(err.text, "an event has at most 65528 bytes"), "%s", err.text);
	text_done(&text);
}

/* A random event of any kind, whole or odd. */
static void add_random_event(struct event_builder *builder, uint64_t *state)
{
	unsigned char *event;
	size_t start = builder->size, i, payload = (size_t)(next_random(state) % 6) * 8;
	uint64_t word;

	for (i = 0; i < 2 + payload / 8; i++) {
		word = next_random(state) % 3 ? next_random(state) : 0;
		event_add(builder, word, EVENT_PY_ENTER, 0, 0);
		builder->size = start + (i + 1) * 8; /* keeps the ticks, which are the eight random bytes */
	}
	event = builder->bytes + start;
	event[12] = (unsigned char)(16 + payload);
	event[13] = 0;
}

Test(text_form, any_events_survive_text_and_both_codecs)
{
	struct error err = { ERR_NONE };
	uint64_t state = 0x9e3779b97f4a7c15u;
	struct event_builder builder;
	struct trace_writer *writer;
	struct chunk chunk = { .lane_kind = LANE_META, .sequence = 1 };
	struct bytes again;
	struct sink *sink;
	struct text file;
	char *first, *second;
	int round, i;

	for (round = 0; round < 60; round++) {
		event_builder_init(&builder);
		for (i = 0; i < 200; i++)
			add_random_event(&builder, &state);
		chunk.events = builder.bytes;
		chunk.size = builder.size;
		text_init(&file);
		cr_assert_eq(sink_open_text(&file, &sink, &err), 0);
		cr_assert_eq(trace_writer_open(sink, round % 2 ? CODEC_RAW : CODEC_DELTA_ZSTD, 5, &writer, &err), 0);
		cr_assert_eq(trace_writer_add(writer, &chunk, &err), 0, "%s", err.text);
		trace_writer_close(writer);
		sink_commit(sink, &err);
		first = text_of_trace(file.data, file.length, NULL);
		again = trace_of_text(first, round % 2 ? CODEC_DELTA_ZSTD : CODEC_RAW);
		second = text_of_trace(again.data, again.size, NULL);
		cr_assert_str_eq(first, second);
		free(first);
		free(second);
		free(again.data);
		text_done(&file);
		event_builder_done(&builder);
	}
}
