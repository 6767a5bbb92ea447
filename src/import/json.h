/*
 * A streaming JSON reader: token after token, in the memory of one window, for documents of any size. Numbers stay text, so that nothing is rounded. Besides
 * RFC 8259 it takes NaN and Infinity (as null; Python writes them) and bytes that are no UTF-8 (as they are: writers escape them). For this layer alone.
 */
#ifndef INFERSCOPE_IMPORT_JSON_H
#define INFERSCOPE_IMPORT_JSON_H

#include "import/input.h"
#include "import/sixteen.h"

enum json_token {
	JSON_BAD = -1, /* no JSON, or it breaks off: json_failure() */
	JSON_END = 0,  /* after the document's value */
	JSON_OBJECT, JSON_OBJECT_END, JSON_ARRAY, JSON_ARRAY_END,
	JSON_KEY, JSON_STRING, JSON_NUMBER, JSON_TRUE, JSON_FALSE, JSON_NULL,
};

enum { JSON_DEPTH_MAX = 256, JSON_STRING_MAX = 1 << 16 /* longer ones are cut */ };

struct json {
	struct input *input;
	/* Of the token at hand: key, string without escapes, or number. NUL-terminated for keys and strings; valid until the next token. */
	const char *text;
	size_t length;
	unsigned depth;
	/* the reader's own */
	unsigned char *at, *end, *window; /* of the input: unread bytes, and what it thinks is unread */
	uint8_t state;
	const char *why;
	unsigned char object[JSON_DEPTH_MAX / 8]; /* bit per depth: object or array */
	char *buffer;
};

/* INPUT stays the caller's. -1: out of memory. */
int json_open(struct json *json, struct input *input);
void json_close(struct json *json);
enum json_token json_next(struct json *json);
/* The same in an object, where a key or the object's end is next: quicker. */
enum json_token json_key(struct json *json);
/* The key that is thought to be next, as it stands there with quotes and colon: passed over, or false. Most objects of a document have the same keys in the same order. */
struct json_word { char bytes[16]; uint8_t length; };
#define JSON_WORD(key) { "\"" key "\":", sizeof key + 2 }
bool json_take_key(struct json *json, const struct json_word *word);
/* Passes over the value that is next. False when it broke. */
bool json_pass(struct json *json);
/* Reads on to the end of the value that TOKEN began: nothing for scalars. False when it broke. */
bool json_skip(struct json *json, enum json_token token);
/* Passes over what is left of the object that the reader stands in, before a key. Only strings and brackets are looked at, so that it is quick where nobody wants
 * what stands there. False when the object's end is not in the window, or it breaks before: then nothing was passed over. */
bool json_leave(struct json *json);
/* What was wrong, static; NULL when nothing. */
const char *json_failure(const struct json *json);
uint64_t json_offset(const struct json *json); /* where it stands, in unpacked bytes */
/* More of what follows, without reading on: LENGTH bytes, valid until the next token. */
const char *json_ahead(struct json *json, size_t *length);
bool json_is(const struct json *json, const char *text);
/* Copies the token's text, cut at SIZE but not within a character. Returns its length. */
size_t json_text(const struct json *json, char *out, size_t size);

/* The token's text (number, or string that holds one) as a decimal number times 1000, rounded half away from zero: microseconds → ns.
 * False when it is none or does not fit. */
bool json_thousandths(const struct json *json, int64_t *out);
/* The same as a whole number: "12", 12, 12.0, "0x1f". */
bool json_whole(const struct json *json, int64_t *out);
/* Either of the two: a number that was there, or not. */
struct number { int64_t value; bool known; };
struct number json_number(const struct json *json, bool thousandths);
/* Passes over the value that is next if it is a plain number, whole in the window. False when it is not, or cannot be told so quickly: then json_next() gives it. */
bool json_take_number(struct json *json, bool thousandths, struct number *out);
/* The same of a string of one plain byte. */
bool json_take_letter(struct json *json, char *out);
/* For the readers of values alone: whether a value is next and begins in the window; and that it ended before TO, which lies there. */
bool json_at_value(const struct json *json);
void json_pass_to(struct json *json, const char *to);
/* For the readers of strings alone: at least one byte more, false at the end; and the rest of a string, which is gathered in the buffer. False when it breaks. */
bool json_more(struct json *json);
bool json_gather_string(struct json *json);
/* The first byte from AT on that is no plain part of a string, or END: sixteen at a time. */
static inline unsigned char *json_plain_end(unsigned char *at, const unsigned char *end)
{
	for (; end - at >= 16; at += 16) {
		sixteen bytes = sixteen_load(at);
		unsigned places = sixteen_places((bytes == '"') | (bytes == '\\') | (bytes <= 0x1f));

		if (places)
			return at + __builtin_ctz(places);
	}
	while (at < end && *at != '"' && *at != '\\' && *at >= 0x20)
		at++;
	return at;
}
/* Behind the bracket that closes the object whose inside begins at AT; NULL when it is not before END. */
unsigned char *json_object_end(unsigned char *at, const unsigned char *end);
/* The value that TOKEN begins: [x, y, z]; anything else is passed over. False when it broke. */
bool json_three(struct json *json, enum json_token token, int64_t out[3]);

#endif
