/* Scanning one line of dump text. */
#include "trace/scan.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void scan_start(struct scan *scan, const char *text)
{
	*scan = (struct scan){ .at = text, .line_start = text, .next_line = text };
}

bool scan_next_line(struct scan *scan)
{
	do {
		if (!*scan->next_line)
			return false;
		scan->at = scan->line_start = scan->next_line;
		scan->line++;
		scan->next_line += strcspn(scan->next_line, "\n");
		if (*scan->next_line)
			scan->next_line++;
	} while (scan_line_ends(scan));
	return true;
}

bool scan_line_ends(struct scan *scan)
{
	scan->at += strspn(scan->at, " \t\r");
	return *scan->at == '\0' || *scan->at == '\n' || *scan->at == '#';
}

__attribute__((format(printf, 4, 0)))
static int fail_at(const struct scan *scan, const char *at, struct error *err, const char *format, va_list arguments)
{
	char what[512];

	vsnprintf(what, sizeof what, format, arguments);
	return fail(err, ERR_ASSEMBLE, "line %u, column %zu: %s", scan->line, (size_t)(at - scan->line_start) + 1, what);
}

int scan_fail(const struct scan *scan, struct error *err, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	fail_at(scan, scan->at, err, format, arguments);
	va_end(arguments);
	return -1;
}

int scan_fail_at(const struct scan *scan, const char *at, struct error *err, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	fail_at(scan, at, err, format, arguments);
	va_end(arguments);
	return -1;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

bool scan_at_digit(const struct scan *scan)
{
	return is_digit(*scan->at);
}

struct word scan_word(struct scan *scan)
{
	struct word word;

	scan->at += strspn(scan->at, " \t");
	word.at = scan->at;
	while (is_digit(*scan->at) || (*scan->at >= 'a' && *scan->at <= 'z') || (*scan->at >= 'A' && *scan->at <= 'Z') || *scan->at == '_')
		scan->at++;
	word.length = (size_t)(scan->at - word.at);
	return word;
}

bool word_is(const struct word *word, const char *name)
{
	return strlen(name) == word->length && memcmp(name, word->at, word->length) == 0;
}

bool scan_accept_word(struct scan *scan, const char *name)
{
	struct scan ahead = *scan;
	struct word word = scan_word(&ahead);

	if (!word_is(&word, name))
		return false;
	*scan = ahead;
	return true;
}

bool scan_accept(struct scan *scan, char c)
{
	if (*scan->at != c)
		return false;
	scan->at++;
	return true;
}

int scan_expect(struct scan *scan, char c, struct error *err)
{
	return scan_accept(scan, c) ? 0 : scan_fail(scan, err, "'%c' is missing", c);
}

static int hex_digit(char c)
{
	if (is_digit(c))
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

int scan_u64(struct scan *scan, uint64_t *out, struct error *err)
{
	const char *start = scan->at;
	uint64_t value = 0;
	int base = 10, digit;

	if (start[0] == '0' && start[1] == 'x') {
		base = 16;
		scan->at += 2;
	}
	if (hex_digit(*scan->at) < 0 || hex_digit(*scan->at) >= base)
		return scan_fail_at(scan, start, err, "a number is missing");
	while ((digit = hex_digit(*scan->at)) >= 0 && digit < base) {
		if (__builtin_mul_overflow(value, (uint64_t)base, &value) || __builtin_add_overflow(value, (uint64_t)digit, &value))
			return scan_fail_at(scan, start, err, "the number does not fit 64 bits");
		scan->at++;
	}
	*out = value;
	return 0;
}

int scan_u32(struct scan *scan, uint32_t *out, struct error *err)
{
	const char *start = scan->at;
	uint64_t value;

	if (scan_u64(scan, &value, err) < 0)
		return -1;
	if (value > UINT32_MAX)
		return scan_fail_at(scan, start, err, "the number does not fit 32 bits");
	*out = (uint32_t)value;
	return 0;
}

int scan_i64(struct scan *scan, uint64_t *out, struct error *err)
{
	const char *start = scan->at;
	bool negative = scan_accept(scan, '-');
	uint64_t value;

	if (scan_u64(scan, &value, err) < 0)
		return -1;
	/* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): scan_u64 has set it */
	if (value > (uint64_t)INT64_MAX + (negative ? 1 : 0))
		return scan_fail_at(scan, start, err, "the number does not fit 64 bits with a sign");
	*out = negative ? -value : value;
	return 0;
}

bool scan_hex_byte(struct scan *scan, unsigned char *out)
{
	int high = hex_digit(scan->at[0]), low = high < 0 ? -1 : hex_digit(scan->at[1]);

	if (low < 0)
		return false;
	*out = (unsigned char)(high << 4 | low);
	scan->at += 2;
	return true;
}

static bool scan_hex4(struct scan *scan, uint32_t *out)
{
	unsigned char high, low;

	if (!scan_hex_byte(scan, &high) || !scan_hex_byte(scan, &low))
		return false;
	*out = (uint32_t)high << 8 | low;
	return true;
}

static void add_character(struct text *out, uint32_t c)
{
	unsigned char bytes[4];
	size_t length;

	if (c < 0x80) {
		bytes[0] = (unsigned char)c;
		length = 1;
	} else if (c < 0x800) {
		bytes[0] = (unsigned char)(0xc0 | c >> 6);
		bytes[1] = (unsigned char)(0x80 | (c & 0x3f));
		length = 2;
	} else if (c < 0x10000) {
		bytes[0] = (unsigned char)(0xe0 | c >> 12);
		bytes[1] = (unsigned char)(0x80 | (c >> 6 & 0x3f));
		bytes[2] = (unsigned char)(0x80 | (c & 0x3f));
		length = 3;
	} else {
		bytes[0] = (unsigned char)(0xf0 | c >> 18);
		bytes[1] = (unsigned char)(0x80 | (c >> 12 & 0x3f));
		bytes[2] = (unsigned char)(0x80 | (c >> 6 & 0x3f));
		bytes[3] = (unsigned char)(0x80 | (c & 0x3f));
		length = 4;
	}
	text_add(out, bytes, length);
}

/* After "\u": one character, from a surrogate pair if it must be. */
static bool scan_unicode(struct scan *scan, struct text *out)
{
	uint32_t c, low;

	if (!scan_hex4(scan, &c) || (c >= 0xdc00 && c <= 0xdfff))
		return false;
	if (c >= 0xd800 && c <= 0xdbff) {
		if (!scan_accept(scan, '\\') || !scan_accept(scan, 'u') || !scan_hex4(scan, &low) || low < 0xdc00 || low > 0xdfff)
			return false;
		c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
	}
	add_character(out, c);
	return true;
}

static int scan_escape(struct scan *scan, struct text *out, struct error *err)
{
	static const char plain[] = "\"\\/bfnrt", meaning[] = "\"\\/\b\f\n\r\t";
	const char *start = scan->at, *found;
	unsigned char byte;

	scan->at++; /* the backslash */
	if (*scan->at && (found = strchr(plain, *scan->at))) {
		text_add(out, &meaning[found - plain], 1);
		scan->at++;
		return 0;
	}
	if (scan_accept(scan, 'x') && scan_hex_byte(scan, &byte)) {
		text_add(out, &byte, 1);
		return 0;
	}
	if (scan_accept(scan, 'u') && scan_unicode(scan, out))
		return 0;
	return scan_fail_at(scan, start, err, "this escape is not known");
}

int scan_string(struct scan *scan, struct text *out, struct error *err)
{
	const char *start = scan->at;
	size_t plain;

	if (scan_expect(scan, '"', err) < 0)
		return -1;
	for (;;) {
		plain = strcspn(scan->at, "\"\\\n");
		text_add(out, scan->at, plain);
		scan->at += plain;
		if (*scan->at == '"')
			break;
		if (*scan->at != '\\')
			return scan_fail_at(scan, start, err, "the string does not end");
		if (scan_escape(scan, out, err) < 0)
			return -1;
	}
	scan->at++;
	return 0;
}
