/* Growable text, and ways to show bytes that nobody vouches for. Out of memory is sticky: `failed` is set and further calls do nothing. */
#ifndef INFERSCOPE_BASE_TEXT_H
#define INFERSCOPE_BASE_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

struct text {
	char *data; /* always NUL-terminated once anything was added; NULL before */
	size_t length;
	size_t capacity;
	bool failed;
};

void text_init(struct text *text);
/* What it holds, "" before anything was added; until the next change. */
static inline const char *text_string(const struct text *text) { return text->data ? text->data : ""; }
void text_done(struct text *text);
/* Ends PART, which went into WHOLE: what failed in it failed there. */
void text_end(struct text *part, struct text *whole);
void text_clear(struct text *text); /* a failure stays */
void text_add(struct text *text, const void *bytes, size_t length);
void text_add_string(struct text *text, const char *string);
void text_printf(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Adds BYTES as valid UTF-8 on one line: control characters, invalid bytes, bidirectional overrides and line separators become \xNN or \u{…}. */
void text_add_visible(struct text *text, const char *bytes, size_t length);
/* The same bytes inside a JSON string (without the quotes): always valid JSON, invalid UTF-8 becomes U+FFFD. */
void text_add_json(struct text *text, const char *bytes, size_t length);
/* Inside HTML text or a quoted attribute. */
void text_add_html(struct text *text, const char *bytes, size_t length);
/* Inside a Markdown table cell: visible, with | ` * _ [ ] < > & \ # escaped. */
void text_add_markdown(struct text *text, const char *bytes, size_t length);

bool text_ends_with(const char *text, const char *end);

/* Length of the UTF-8 sequence at BYTES (at most LENGTH), or 0 when it is not valid (overlong, surrogate, beyond U+10FFFF, cut). */
size_t utf8_length(const char *bytes, size_t length);

#endif
