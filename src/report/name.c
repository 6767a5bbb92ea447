/* Names on one line. What a character is worth in columns follows Unicode's East Asian widths, coarsely. */
#include "report/name.h"

#include <stdint.h>
#include <string.h>

struct range { uint32_t first, last; };

static const struct range NO_WIDTH[] = { { 0x300, 0x36f }, { 0x483, 0x489 }, { 0x591, 0x5bd }, { 0x610, 0x61a }, { 0x64b, 0x65f }, { 0x1ab0, 0x1aff }, { 0x1dc0, 0x1dff }, { 0x200b, 0x200f }, { 0x2060, 0x2064 }, { 0x20d0, 0x20ff }, { 0xfe00, 0xfe0f }, { 0xfe20, 0xfe2f }, { 0xfeff, 0xfeff }, { 0xe0000, 0xe01ef } };
static const struct range TWO_WIDE[] = { { 0x1100, 0x115f }, { 0x231a, 0x231b }, { 0x23e9, 0x23ec }, { 0x2614, 0x2615 }, { 0x26aa, 0x26ab }, { 0x26bd, 0x26be }, { 0x2705, 0x2705 }, { 0x2728, 0x2728 }, { 0x274c, 0x274c }, { 0x2e80, 0x303e }, { 0x3041, 0xa4cf }, { 0xa960, 0xa97f }, { 0xac00, 0xd7a3 }, { 0xf900, 0xfaff }, { 0xfe30, 0xfe6f }, { 0xff00, 0xff60 }, { 0xffe0, 0xffe6 }, { 0x1f300, 0x1f64f }, { 0x1f680, 0x1f6ff }, { 0x1f900, 0x1faff }, { 0x20000, 0x3fffd } };

static bool in_ranges(uint32_t point, const struct range *ranges, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (point >= ranges[i].first && point <= ranges[i].last)
			return true;
	return false;
}

/* BYTES is a whole sequence of LENGTH, as utf8_length() found it. */
static uint32_t decode(const char *bytes, size_t length)
{
	uint32_t point = (unsigned char)bytes[0];

	if (length == 1)
		return point;
	point &= 0x7fu >> length;
	for (size_t i = 1; i < length; i++)
		point = point << 6 | ((unsigned char)bytes[i] & 0x3f);
	return point;
}

static size_t point_columns(uint32_t point)
{
	if (point < 0x300)
		return 1;
	if (in_ranges(point, NO_WIDTH, sizeof NO_WIDTH / sizeof *NO_WIDTH))
		return 0;
	return in_ranges(point, TWO_WIDE, sizeof TWO_WIDE / sizeof *TWO_WIDE) ? 2 : 1;
}

size_t name_columns(const char *utf8, size_t length)
{
	size_t columns = 0;

	for (size_t at = 0, step; at < length; at += step) {
		step = utf8_length(utf8 + at, length - at);
		columns += step ? point_columns(decode(utf8 + at, step)) : 1;
		step += !step;
	}
	return columns;
}

static void add_ascii(struct text *out, const char *utf8, size_t length)
{
	for (size_t at = 0, step; at < length; at += step) {
		step = utf8_length(utf8 + at, length - at);
		step += !step;
		if ((unsigned char)utf8[at] < 0x80)
			text_add(out, utf8 + at, 1);
		else
			text_printf(out, "\\u{%x}", (unsigned)decode(utf8 + at, step));
	}
}

/* Where the last COLUMNS columns of UTF8 begin. */
static size_t tail_start(const char *utf8, size_t length, size_t columns, bool path)
{
	size_t total = name_columns(utf8, length), at = 0, slash;

	while (at < length && total > columns) {
		size_t step = utf8_length(utf8 + at, length - at);

		step += !step;
		total -= name_columns(utf8 + at, step);
		at += step;
	}
	/* A combining mark would join the ellipsis. */
	while (at < length && utf8_length(utf8 + at, length - at) && name_columns(utf8 + at, utf8_length(utf8 + at, length - at)) == 0)
		at += utf8_length(utf8 + at, length - at);
	if (!path)
		return at;
	for (slash = at; slash < length && utf8[slash] != '/'; slash++)
		;
	return slash < length && slash - at < columns / 3 ? slash : at;
}

static size_t head_end(const char *utf8, size_t length, size_t columns)
{
	size_t used = 0, at = 0;

	while (at < length) {
		size_t step = utf8_length(utf8 + at, length - at);

		step += !step;
		used += name_columns(utf8 + at, step);
		if (used > columns)
			break;
		at += step;
	}
	return at;
}

void name_add(struct text *out, const char *bytes, size_t columns, unsigned flags)
{
	const char *ellipsis = flags & NAME_ASCII ? "..." : "…";
	size_t ellipsis_columns = flags & NAME_ASCII ? 3 : 1;
	size_t length = strlen(bytes), limit = columns * 4 + 16;
	struct text visible, plain;
	struct text *shown = &visible;
	bool cut = length > limit;

	text_init(&visible);
	text_init(&plain);
	if (cut && !(flags & NAME_HEAD)) {
		bytes += length - limit;
		while (((unsigned char)*bytes & 0xc0) == 0x80)
			bytes++;
		length = strlen(bytes);
	} else if (cut) {
		length = limit;
		while (length && ((unsigned char)bytes[length] & 0xc0) == 0x80)
			length--;
	}
	text_add_visible(&visible, bytes, length);
	if (visible.length && (flags & NAME_ASCII)) {
		add_ascii(&plain, visible.data, visible.length);
		shown = &plain;
	}
	if (shown->length == 0) {
		/* nothing to add */
	} else if (!cut && name_columns(shown->data, shown->length) <= columns) {
		text_add(out, shown->data, shown->length);
	} else if (columns <= ellipsis_columns) {
		text_add(out, "...", columns < 3 ? columns : 3);
	} else if (flags & NAME_HEAD) {
		text_add(out, shown->data, head_end(shown->data, shown->length, columns - ellipsis_columns));
		text_add_string(out, ellipsis);
	} else {
		size_t start = tail_start(shown->data, shown->length, columns - ellipsis_columns, flags & NAME_PATH);

		text_add_string(out, ellipsis);
		text_add(out, shown->data + start, shown->length - start);
	}
	out->failed |= visible.failed || plain.failed;
	text_done(&visible);
	text_done(&plain);
}

void name_add_prose(struct text *out, const char *bytes, size_t columns, unsigned flags, bool markdown)
{
	struct text shown;

	text_init(&shown);
	name_add(&shown, bytes, columns, flags);
	if (markdown)
		text_add_markdown(out, text_string(&shown), shown.length);
	else
		text_add(out, text_string(&shown), shown.length);
	text_end(&shown, out);
}
