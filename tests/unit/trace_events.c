/* Building, walking and reading events; rows of event.def. */
#include <criterion/criterion.h>
#include <string.h>

#include "tests/unit/trace_help.h"
#include "trace/event_info.h"

Test(events, fields_come_back_by_position)
{
	struct event_builder builder;
	struct event_cursor cursor;
	const char *string;
	size_t length;

	event_builder_init(&builder);
	event_add(&builder, 77, EVENT_CODE, 5, 0, (uint64_t)0x1122334455667788, (uint32_t)12, (uint32_t)3, "f", "A.f", "/srv/app.py");
	event_add(&builder, 78, EVENT_COUNTER, 0, EVENT_FLAG_EXCEPTION, "loss", (int64_t)-3);
	cr_assert_eq(builder.size % 8, 0u);
	cursor = event_cursor(builder.bytes, builder.size);
	cr_assert(event_next(&cursor));
	cr_assert_eq(cursor.event.ticks, 77u);
	cr_assert_eq(cursor.event.ref, 5u);
	cr_assert_eq(event_u64(&cursor, 0), 0x1122334455667788u);
	cr_assert_eq(event_u32(&cursor, 1), 12u);
	string = event_str(&cursor, 4, &length);
	cr_assert(length == 3 && memcmp(string, "A.f", 3) == 0);
	string = event_str(&cursor, 5, &length);
	cr_assert(length == 11 && memcmp(string, "/srv/app.py", 11) == 0);
	cr_assert(event_next(&cursor));
	cr_assert_eq(event_i64(&cursor, 1), -3);
	cr_assert_eq(cursor.event.flags, EVENT_FLAG_EXCEPTION);
	cr_assert_not(event_next(&cursor));
	cr_assert_not(cursor.damaged);
	event_builder_done(&builder);
}

Test(events, what_is_not_there_is_zero_and_empty)
{
	struct event_builder builder;
	struct event_cursor cursor;
	size_t length = 9;

	event_builder_init(&builder);
	event_add(&builder, 1, EVENT_CODE, 1, 0, (uint64_t)1, (uint32_t)2, (uint32_t)3, "name", "qualname", "file");
	builder.bytes[12] = 32; /* cut to its head and two words: address, line, code_flags */
	cursor = event_cursor(builder.bytes, 32);
	cr_assert(event_next(&cursor));
	cr_assert_eq(event_u32(&cursor, 2), 3u);
	cr_assert_str_eq(event_str(&cursor, 3, &length), "");
	cr_assert_eq(length, 0u);
	cr_assert_str_eq(event_str(&cursor, 0, &length), "", "a number is no string");
	cr_assert_eq(event_u64(&cursor, 99), 0u);
	event_builder_done(&builder);
}

Test(events, a_string_longer_than_its_payload_is_not_read)
{
	struct event_builder builder;
	struct event_cursor cursor;
	size_t length;

	event_builder_init(&builder);
	event_add(&builder, 1, EVENT_COUNTER, 0, 0, "abc", (int64_t)5);
	builder.bytes[16] = 0xff;
	builder.bytes[17] = 0xff;
	cursor = event_cursor(builder.bytes, builder.size);
	cr_assert(event_next(&cursor));
	event_str(&cursor, 0, &length);
	cr_assert_eq(length, 0u);
	cr_assert_eq(event_i64(&cursor, 1), 0);
	event_builder_done(&builder);
}

Test(events, impossible_sizes_end_the_walk)
{
	static const uint16_t sizes[] = { 0, 8, 15, 17, 20, 48, 65535 };
	unsigned char bytes[40] = { 0 };
	struct event_cursor cursor;
	size_t i;

	for (i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		memcpy(bytes + 12, &sizes[i], 2);
		cursor = event_cursor(bytes, sizeof bytes);
		cr_assert_not(event_next(&cursor), "size %u", sizes[i]);
		cr_assert(cursor.damaged);
		cr_assert_not(event_next(&cursor));
	}
	cursor = event_cursor(bytes, 7);
	cr_assert_not(event_next(&cursor));
	cr_assert(cursor.damaged);
	cursor = event_cursor(NULL, 0);
	cr_assert_not(event_next(&cursor));
	cr_assert_not(cursor.damaged);
}

Test(events, long_strings_are_cut_at_a_whole_character_and_marked)
{
	char longer[EVENT_STRING_MAX + 100];
	struct event_builder builder;
	struct event_cursor cursor;
	const char *string;
	size_t length;

	memset(longer, 'x', sizeof longer);
	memcpy(longer + EVENT_STRING_MAX - 2, "\xe2\x82\xac", 3);
	longer[sizeof longer - 1] = '\0';
	event_builder_init(&builder);
	event_add(&builder, 1, EVENT_COUNTER, 0, 0, longer, (int64_t)1);
	event_add(&builder, 1, EVENT_COUNTER, 0, 0, (const char *)NULL, (int64_t)1);
	cursor = event_cursor(builder.bytes, builder.size);
	cr_assert(event_next(&cursor));
	string = event_str(&cursor, 0, &length);
	cr_assert_eq(length, EVENT_STRING_MAX - 2u);
	cr_assert_eq(string[length - 1], 'x');
	cr_assert_eq(cursor.event.flags, EVENT_FLAG_CUT);
	cr_assert(event_next(&cursor));
	event_str(&cursor, 0, &length);
	cr_assert_eq(length, 0u);
	event_builder_done(&builder);
}

Test(events, builder_is_reusable)
{
	struct event_builder builder;
	size_t size;

	event_builder_init(&builder);
	event_add(&builder, 1, EVENT_LOST, 0, 0, (uint64_t)5);
	size = builder.size;
	event_builder_clear(&builder);
	cr_assert_eq(builder.size, 0u);
	event_add(&builder, 1, EVENT_LOST, 0, 0, (uint64_t)5);
	cr_assert_eq(builder.size, size);
	event_builder_done(&builder);
	event_builder_done(&builder);
}

Test(event_rows, every_row_is_well_formed)
{
	const struct event_info *info;
	struct event_field field;
	const char *rest, *type;
	unsigned kind, rows = 0, fields;

	for (kind = 0; kind < 256; kind++) {
		info = event_info(kind);
		if (!info)
			continue;
		rows++;
		fields = 0;
		cr_assert_eq(event_kind_of(info->name, strlen(info->name)), (int)kind, "%s is a name of two kinds", info->name);
		for (rest = info->fields; type = rest, event_field_next(&rest, &field); fields++) {
			cr_assert(strncmp(type, "u32 ", 4) == 0 || strncmp(type, "u64 ", 4) == 0 || strncmp(type, "i64 ", 4) == 0 ||
				  strncmp(type, "str ", 4) == 0, "%s: %s", info->name, info->fields);
			cr_assert_gt(field.name_length, 0u);
			cr_assert_not(field.name_length == 3 && memcmp(field.name, "ref", 3) == 0, "%s: the dump has a ref already", info->name);
		}
		cr_assert_leq(fields, 16u, "%s: more fields than the assembler takes", info->name);
	}
	cr_assert_geq(rows, 40u);
	cr_assert_null(event_info(256));
	cr_assert_null(event_info(0));
	cr_assert_eq(event_kind_of("ente", 4), -1);
}
