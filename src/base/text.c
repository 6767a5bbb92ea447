/* Growable text and the ways to show foreign bytes: visible, JSON, HTML, Markdown. Which one fits where is the writer's to know. */
#include "base/text.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void text_init(struct text *text)
{
	memset(text, 0, sizeof *text);
}

void text_done(struct text *text)
{
	free(text->data);
	text_init(text);
}

void text_end(struct text *part, struct text *whole)
{
	whole->failed |= part->failed;
	text_done(part);
}

void text_clear(struct text *text)
{
	text->length = 0;
	if (text->data)
		text->data[0] = '\0';
}

/* Room for MORE bytes and the NUL. */
static bool make_room(struct text *text, size_t more)
{
	size_t wanted, capacity;
	char *data;

	if (text->failed)
		return false;
	if (more >= SIZE_MAX / 2 - text->length)
		goto failed;
	wanted = text->length + more + 1;
	if (wanted <= text->capacity)
		return true;
	capacity = text->capacity ? text->capacity : 64;
	while (capacity < wanted)
		capacity *= 2;
	data = realloc(text->data, capacity);
	if (!data)
		goto failed;
	text->data = data;
	text->capacity = capacity;
	return true;
failed:
	text->failed = true;
	return false;
}

void text_add(struct text *text, const void *bytes, size_t length)
{
	if (!make_room(text, length))
		return;
	if (length)
		memcpy(text->data + text->length, bytes, length);
	text->length += length;
	text->data[text->length] = '\0';
}

void text_add_string(struct text *text, const char *string)
{
	text_add(text, string, strlen(string));
}

void text_printf(struct text *text, const char *format, ...)
{
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(NULL, 0, format, arguments);
	va_end(arguments);
	if (length < 0)
		text->failed = true;
	if (length < 0 || !make_room(text, (size_t)length))
		return;
	va_start(arguments, format);
	vsnprintf(text->data + text->length, (size_t)length + 1, format, arguments);
	va_end(arguments);
	text->length += (size_t)length;
}

size_t utf8_length(const char *bytes, size_t length)
{
	const unsigned char *at = (const unsigned char *)bytes;
	unsigned char low = 0x80, high = 0xbf; /* what the second byte may be */
	size_t need, i;

	if (length == 0)
		return 0;
	if (at[0] < 0x80)
		return 1;
	if (at[0] >= 0xc2 && at[0] <= 0xdf)
		need = 2;
	else if (at[0] >= 0xe0 && at[0] <= 0xef)
		need = 3;
	else if (at[0] >= 0xf0 && at[0] <= 0xf4)
		need = 4;
	else
		return 0;
	if (at[0] == 0xe0)
		low = 0xa0; /* else overlong */
	else if (at[0] == 0xed)
		high = 0x9f; /* else a surrogate */
	else if (at[0] == 0xf0)
		low = 0x90; /* else overlong */
	else if (at[0] == 0xf4)
		high = 0x8f; /* else beyond U+10FFFF */
	if (length < need || at[1] < low || at[1] > high)
		return 0;
	for (i = 2; i < need; i++)
		if (at[i] < 0x80 || at[i] > 0xbf)
			return 0;
	return need;
}

/* The character of a valid sequence of STEP bytes. */
static uint32_t utf8_decode(const char *bytes, size_t step)
{
	const unsigned char *at = (const unsigned char *)bytes;

	switch (step) {
	case 1:
		return at[0];
	case 2:
		return (at[0] & 0x1fu) << 6 | (at[1] & 0x3fu);
	case 3:
		return (at[0] & 0x0fu) << 12 | (at[1] & 0x3fu) << 6 | (at[2] & 0x3fu);
	default:
		return (at[0] & 0x07u) << 18 | (at[1] & 0x3fu) << 12 | (at[2] & 0x3fu) << 6 | (at[3] & 0x3fu);
	}
}

/* Characters that move the cursor, reorder the line or begin a new one: whoever names a function so wants to hide something. */
static bool is_deceptive(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c <= 0x9f) || c == 0x61c || c == 0x200e || c == 0x200f || (c >= 0x2028 && c <= 0x202e) ||
	       (c >= 0x2066 && c <= 0x2069) || c == 0xfeff;
}

/* SPECIAL gives the replacement of an ASCII character, or NULL to keep it. BEFORE stands in front of escapes' backslash. */
static void add_shown(struct text *text, const char *bytes, size_t length, const char *(*special)(char), const char *before)
{
	const char *replacement;
	size_t at = 0, step;
	uint32_t c;

	while (at < length) {
		step = utf8_length(bytes + at, length - at);
		c = step ? utf8_decode(bytes + at, step) : (unsigned char)bytes[at];
		replacement = step == 1 && special ? special(bytes[at]) : NULL;
		if (step == 0 || (step == 1 && is_deceptive(c)))
			text_printf(text, "%s\\x%02x", before, (unsigned)c);
		else if (is_deceptive(c))
			text_printf(text, "%s\\u{%x}", before, (unsigned)c);
		else if (replacement)
			text_add_string(text, replacement);
		else
			text_add(text, bytes + at, step);
		at += step ? step : 1;
	}
	make_room(text, 0);
	if (text->data)
		text->data[text->length] = '\0';
}

void text_add_visible(struct text *text, const char *bytes, size_t length)
{
	add_shown(text, bytes, length, NULL, "");
}

static const char *html_special(char c)
{
	switch (c) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&quot;";
	case '\'':
		return "&#39;";
	default:
		return NULL;
	}
}

void text_add_html(struct text *text, const char *bytes, size_t length)
{
	add_shown(text, bytes, length, html_special, "");
}

static const char *markdown_special(char c)
{
	switch (c) {
	case '|':
		return "\\|";
	case '`':
		return "\\`";
	case '*':
		return "\\*";
	case '_':
		return "\\_";
	case '[':
		return "\\[";
	case ']':
		return "\\]";
	case '<':
		return "\\<";
	case '>':
		return "\\>";
	case '\\':
		return "\\\\";
	case '#':
		return "\\#";
	case '&':
		return "\\&";
	default:
		return NULL;
	}
}

void text_add_markdown(struct text *text, const char *bytes, size_t length)
{
	add_shown(text, bytes, length, markdown_special, "\\");
}

void text_add_json(struct text *text, const char *bytes, size_t length)
{
	size_t at = 0, step;
	uint32_t c;

	while (at < length) {
		step = utf8_length(bytes + at, length - at);
		c = step ? utf8_decode(bytes + at, step) : 0xfffd;
		if (step == 0)
			text_add(text, "\xef\xbf\xbd", 3);
		else if (c == '"' || c == '\\')
			text_printf(text, "\\%c", (int)c);
		else if (c == '\n')
			text_add(text, "\\n", 2);
		else if (c == '\t')
			text_add(text, "\\t", 2);
		else if (is_deceptive(c))
			text_printf(text, "\\u%04x", (unsigned)c);
		else if (c == '<' && (at + 1 == length || bytes[at + 1] == '/' || bytes[at + 1] == '!'))
			text_add(text, "\\u003c", 6); /* the document may lie in a <script> */
		else
			text_add(text, bytes + at, step);
		at += step ? step : 1;
	}
	make_room(text, 0);
	if (text->data)
		text->data[text->length] = '\0';
}

bool text_ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), tail = strlen(end);

	return length >= tail && strcmp(text + length - tail, end) == 0;
}
