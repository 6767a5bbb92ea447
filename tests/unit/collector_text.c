/* str objects by layout: every kind, cut at whole characters. */
#include <criterion/criterion.h>
#include <string.h>

#include "abi/cpython.h"
#include "collector/text.h"

static struct python python_of(int minor)
{
	return (struct python){.minor = minor, .layout = cpython_layout(minor)};
}

/* A str as that version lays it out. */
static const PyObject *make_str(const struct python *python, char *memory, int kind, int compact, int ascii, const void *data, size_t length)
{
	const struct cpython_layout *layout = python->layout;
	uint32_t state = (uint32_t)kind << layout->unicode_kind_bit | (uint32_t)compact << layout->unicode_compact_bit | (uint32_t)ascii << layout->unicode_ascii_bit;

	memcpy(memory + layout->unicode_length, &length, sizeof length);
	memcpy(memory + layout->unicode_state, &state, sizeof state);
	memcpy(memory + (ascii ? layout->unicode_ascii_size : layout->unicode_compact_size), data, length * (size_t)kind);
	return (const PyObject *)memory;
}

static void expect(int minor, int kind, int compact, int ascii, const void *data, size_t length, size_t size, const char *text, bool is_cut)
{
	char memory[512] = {0}, out[256];
	struct python python = python_of(minor);
	bool cut = false;
	size_t got = text_from_str(&python, make_str(&python, memory, kind, compact, ascii, data, length), out, size, &cut);

	cr_assert_str_eq(out, text);
	cr_assert_eq(got, strlen(text));
	cr_assert_eq(cut, is_cut);
}

Test(collector_text, reads_every_kind_of_str_on_every_version)
{
	const uint16_t two[] = {'a', 0x4e16, 0xdc80, 0};
	const uint32_t four[] = {0x1f600, 'b', 0x110000};

	for (int minor = CPYTHON_MINOR_MIN; minor <= CPYTHON_MINOR_MAX; minor++) {
		expect(minor, 1, 1, 1, "plain", 5, 100, "plain", false);
		expect(minor, 1, 1, 1, "pl\0in", 5, 100, "pl\ufffdin", false);
		expect(minor, 1, 1, 0, "caf\xe9", 4, 100, "caf\u00e9", false);
		expect(minor, 2, 1, 0, two, 4, 100, "a\u4e16\ufffd\ufffd", false);
		expect(minor, 4, 1, 0, four, 3, 100, "\U0001f600b\ufffd", false);
	}
}

Test(collector_text, cuts_between_characters)
{
	const uint16_t two[] = {0x4e16, 0x4e16};

	expect(12, 2, 1, 0, two, 2, 6, "\u4e16", true);
	expect(12, 2, 1, 0, two, 2, 7, "\u4e16\u4e16", false);
	expect(12, 1, 1, 1, "abc", 3, 3, "ab", true);
	expect(12, 1, 1, 1, "abc", 3, 1, "", true);
	expect(12, 1, 1, 1, "abc", 3, 4, "abc", false);
	expect(12, 1, 1, 1, "\0bc", 3, 5, "\ufffdb", true);
}

/* What a caller makes room for is enough for every kind. */
Test(collector_text, room_for_a_short_str_is_enough)
{
	const uint32_t four[] = {0x1f600, 0x1f601, 0x1f602};
	char memory[512] = {0}, out[256], lots[300] = {0};
	struct python python = python_of(12);
	bool cut = false;

	cr_assert_lt(text_room(&python, make_str(&python, memory, 1, 1, 1, "abc", 3), 1025), 20);
	cr_assert_eq(text_from_str(&python, make_str(&python, memory, 4, 1, 0, four, 3), out, text_room(&python, (PyObject *)memory, 1025), &cut), 12);
	cr_assert_eq(text_from_str(&python, make_str(&python, memory, 1, 0, 1, "", 0), out, text_room(&python, (PyObject *)memory, 1025), &cut), 1);
	cr_assert_not(cut);
	cr_assert_eq(text_room(&python, make_str(&python, memory, 1, 1, 1, lots, sizeof lots), 1025), 1025);
}

Test(collector_text, does_not_read_what_is_not_compact)
{
	expect(8, 1, 0, 1, "old", 3, 100, "?", false);
	expect(8, 0, 1, 0, "", 0, 100, "?", false);
	expect(12, 3, 1, 0, "", 0, 100, "?", false);
}

Test(collector_text, makes_utf8_of_any_c_string)
{
	char out[32];
	bool cut = false;

	text_from_c("a\xff\xc3\xa9\xed\xa0\x80\xf5", out, sizeof out, &cut);
	cr_assert_str_eq(out, "a?\u00e9????");
	cr_assert_eq(text_from_c(NULL, out, sizeof out, &cut), 0);
	cr_assert_not(cut);
	text_from_c("\u4e16\u4e16", out, 5, &cut);
	cr_assert_str_eq(out, "\u4e16");
	cr_assert(cut);
}
