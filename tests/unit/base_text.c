/* Text, and foreign bytes shown in four ways. */
#include <criterion/criterion.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

static char *shown(void (*add)(struct text *, const char *, size_t), const char *bytes, size_t length)
{
	static char out[4096];
	struct text text;

	text_init(&text);
	add(&text, bytes, length);
	cr_assert_not(text.failed);
	snprintf(out, sizeof out, "%s", text.data);
	text_done(&text);
	return out;
}
#define SHOWN(add, literal) shown(add, literal, sizeof(literal) - 1)

Test(text, grows_and_stays_terminated)
{
	struct text text;
	size_t i;

	text_init(&text);
	for (i = 0; i < 10000; i++) {
		text_printf(&text, "%zu,", i % 10);
		cr_assert_eq(text.data[text.length], '\0');
	}
	cr_assert_eq(text.length, 20000u);
	text_clear(&text);
	cr_assert_str_eq(text.data, "");
	text_done(&text);
	cr_assert_null(text.data);
}

Test(text, adding_nothing_gives_an_empty_string)
{
	cr_assert_str_eq(shown(text_add_visible, "", 0), "");
	cr_assert_str_eq(shown(text_add_json, "", 0), "");
}

Test(text, an_impossible_length_is_a_sticky_failure)
{
	struct text text;

	text_init(&text);
	text_add_string(&text, "kept");
	text_add(&text, "x", SIZE_MAX - 2);
	cr_assert(text.failed);
	text_add_string(&text, "ignored");
	cr_assert_str_eq(text.data, "kept");
	text_done(&text);
}

Test(text, visible_escapes_what_moves_the_cursor_or_hides)
{
	cr_assert_str_eq(SHOWN(text_add_visible, "a\x1b[31m\n\x7f"), "a\\x1b[31m\\x0a\\x7f");
	cr_assert_str_eq(SHOWN(text_add_visible, "\xe2\x80\xae" "evil"), "\\u{202e}evil");
	cr_assert_str_eq(SHOWN(text_add_visible, "\xc2\x85"), "\\u{85}");
	cr_assert_str_eq(SHOWN(text_add_visible, "ok\xff\xc3"), "ok\\xff\\xc3");
	cr_assert_str_eq(SHOWN(text_add_visible, "na\xc3\xafve \xf0\x9f\x90\x8d"), "na\xc3\xafve \xf0\x9f\x90\x8d");
}

Test(text, json_is_valid_whatever_comes_in)
{
	cr_assert_str_eq(SHOWN(text_add_json, "a\"b\\c\n\t\x01"), "a\\\"b\\\\c\\n\\t\\u0001");
	cr_assert_str_eq(SHOWN(text_add_json, "\xff"), "\xef\xbf\xbd");
	cr_assert_str_eq(SHOWN(text_add_json, "<module>"), "<module>");
	cr_assert_str_eq(SHOWN(text_add_json, "</script><!--"), "\\u003c/script>\\u003c!--");
	cr_assert_str_eq(shown(text_add_json, "a\0b", 3), "a\\u0000b");
}

Test(text, html_cannot_leave_its_element_or_attribute)
{
	cr_assert_str_eq(SHOWN(text_add_html, "<b a='x' c=\"y\">&"), "&lt;b a=&#39;x&#39; c=&quot;y&quot;&gt;&amp;");
	cr_assert_str_eq(shown(text_add_html, "\0", 1), "\\x00");
}

Test(text, markdown_cannot_leave_its_cell)
{
	cr_assert_str_eq(SHOWN(text_add_markdown, "a|b`c*_[x](y)<z>#&\\"), "a\\|b\\`c\\*\\_\\[x\\](y)\\<z\\>\\#\\&\\\\");
	cr_assert_str_eq(SHOWN(text_add_markdown, "\n"), "\\\\x0a");
}

Test(text, utf8_knows_what_is_not_utf8)
{
	static const struct { char bytes[8]; size_t length, expected; } rows[] = {
		{ "a", 1, 1 }, { "\xc3\xa9", 2, 2 }, { "\xe2\x82\xac", 3, 3 }, { "\xf0\x9f\x90\x8d", 4, 4 },
		{ "\xc3\xa9", 1, 0 },             /* cut */
		{ "\xc0\xaf", 2, 0 },             /* overlong */
		{ "\xe0\x80\xaf", 3, 0 },         /* overlong */
		{ "\xf0\x80\x80\xaf", 4, 0 },     /* overlong */
		{ "\xed\xa0\x80", 3, 0 },         /* surrogate */
		{ "\xf4\x90\x80\x80", 4, 0 },     /* beyond U+10FFFF */
		{ "\x80", 1, 0 }, { "\xff", 1, 0 }, { "", 0, 0 },
	};
	size_t i;

	for (i = 0; i < sizeof rows / sizeof *rows; i++)
		cr_assert_eq(utf8_length(rows[i].bytes, rows[i].length), rows[i].expected, "row %zu", i);
}
