/* Words, numbers and strings of the dump's lines, with the place for messages. For this layer alone. */
#ifndef INFERSCOPE_TRACE_SCAN_H
#define INFERSCOPE_TRACE_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

struct scan {
	const char *at, *line_start, *next_line;
	unsigned line; /* from 1 */
};
struct word {
	const char *at;
	size_t length;
};

void scan_start(struct scan *scan, const char *text);
/* To the next line that is neither empty nor a comment; false at the end. */
bool scan_next_line(struct scan *scan);
/* Passes blanks; true at the end of the line or a comment. */
bool scan_line_ends(struct scan *scan);

/* ERR_ASSEMBLE with line and column, of where SCAN stands or of AT. Returns -1. */
int scan_fail(const struct scan *scan, struct error *err, const char *format, ...) __attribute__((format(printf, 3, 4)));
int scan_fail_at(const struct scan *scan, const char *at, struct error *err, const char *format, ...) __attribute__((format(printf, 4, 5)));

bool scan_at_digit(const struct scan *scan);
/* Letters, digits and underscores; may be empty. */
struct word scan_word(struct scan *scan);
bool scan_accept_word(struct scan *scan, const char *word);
bool scan_accept(struct scan *scan, char c);
int scan_expect(struct scan *scan, char c, struct error *err);
/* Decimal or 0x…. */
int scan_u64(struct scan *scan, uint64_t *out, struct error *err);
int scan_u32(struct scan *scan, uint32_t *out, struct error *err);
/* With a sign; *out has its bits. */
int scan_i64(struct scan *scan, uint64_t *out, struct error *err);
/* A quoted string with JSON's escapes, and \xNN for a byte. Appended to OUT. */
int scan_string(struct scan *scan, struct text *out, struct error *err);
bool scan_hex_byte(struct scan *scan, unsigned char *out);

bool word_is(const struct word *word, const char *name);

#endif
