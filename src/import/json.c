#include "import/json.h"

#include <stdlib.h>
#include <string.h>

/* What may come next. */
enum state { VALUE, FIRST_VALUE /* or ] */, FIRST_KEY /* or } */, KEY, COLON, AFTER /* , or the end of what it is in */, DONE, BROKEN };

int json_open(struct json *json, struct input *input)
{
	*json = (struct json){ .input = input, .state = VALUE, .buffer = malloc(JSON_STRING_MAX + 1), .text = "" };
	return json->buffer ? 0 : -1;
}

void json_close(struct json *json)
{
	free(json->buffer);
	json->buffer = NULL;
}

static enum json_token broken(struct json *json, const char *why)
{
	json->state = BROKEN;
	json->why = input_failure(json->input) ? input_failure(json->input) : why;
	return JSON_BAD;
}

const char *json_failure(const struct json *json)
{
	return json->why;
}

bool json_is(const struct json *json, const char *text)
{
	return strcmp(json->text, text) == 0;
}

void json_text(const struct json *json, char *out, size_t size)
{
	size_t length = json->length < size - 1 ? json->length : size - 1;

	while (length && length < json->length && ((unsigned char)json->text[length] & 0xc0) == 0x80)
		length--;
	memcpy(out, json->text, length);
	out[length] = '\0';
}

/* The next byte that is no white space, not yet consumed; -1 at the end. */
static int peek(struct json *json)
{
	size_t length, at;
	const unsigned char *window;

	do {
		window = input_window(json->input, &length);
		for (at = 0; at < length && (window[at] == ' ' || window[at] == '\n' || window[at] == '\r' || window[at] == '\t'); at++)
			;
		input_skip(json->input, at);
		if (at < length)
			return window[at];
	} while (input_more(json->input));
	return -1;
}

static bool in_object(const struct json *json)
{
	return json->object[(json->depth - 1) / 8] >> (json->depth - 1) % 8 & 1;
}

static enum json_token open_container(struct json *json, bool object)
{
	if (json->depth == JSON_DEPTH_MAX)
		return broken(json, "it nests too deep");
	input_skip(json->input, 1);
	json->object[json->depth / 8] &= (unsigned char)~(1u << json->depth % 8);
	json->object[json->depth / 8] |= (unsigned char)((unsigned)object << json->depth % 8);
	json->depth++;
	json->state = object ? FIRST_KEY : FIRST_VALUE;
	return object ? JSON_OBJECT : JSON_ARRAY;
}

static enum json_token close_container(struct json *json)
{
	bool object = in_object(json);

	input_skip(json->input, 1);
	json->depth--;
	json->state = json->depth ? AFTER : DONE;
	return object ? JSON_OBJECT_END : JSON_ARRAY_END;
}

/* ---- strings ---- */

struct out { char *bytes; size_t length; };

static void put(struct out *out, const void *bytes, size_t length)
{
	if (length > JSON_STRING_MAX - out->length)
		length = JSON_STRING_MAX - out->length;
	memcpy(out->bytes + out->length, bytes, length);
	out->length += length;
}

static void put_character(struct out *out, uint32_t c)
{
	char bytes[4];
	size_t length = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

	if (length == 1) {
		bytes[0] = (char)c;
	} else {
		for (size_t i = length - 1; i > 0; i--, c >>= 6)
			bytes[i] = (char)(0x80 | (c & 0x3f));
		bytes[0] = (char)((0xf00u >> length & 0xf0) | c);
	}
	if (length <= JSON_STRING_MAX - out->length)
		put(out, bytes, length);
}

/* COUNT bytes in the window; false when the document ends before. */
static bool have(struct json *json, size_t count)
{
	size_t length;

	for (;;) {
		input_window(json->input, &length);
		if (length >= count)
			return true;
		if (!input_more(json->input))
			return false;
	}
}

/* Four hexadecimal digits at AT in the window. */
static bool hex4(struct json *json, size_t at, uint32_t *out)
{
	size_t length;
	const unsigned char *window;

	if (!have(json, at + 4))
		return false;
	window = input_window(json->input, &length);
	*out = 0;
	for (size_t i = 0; i < 4; i++) {
		unsigned char c = window[at + i];
		unsigned digit = c >= '0' && c <= '9' ? c - (unsigned)'0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10u : 16u;

		if (digit > 15)
			return false;
		*out = *out << 4 | digit;
	}
	return true;
}

/* After \u: one half of a pair alone becomes U+FFFD. */
static bool escape_unicode(struct json *json, struct out *out)
{
	uint32_t c, low;
	size_t length;
	const unsigned char *window;

	if (!hex4(json, 2, &c))
		return false;
	input_skip(json->input, 6);
	if (c >= 0xd800 && c < 0xdc00 && have(json, 6)) {
		window = input_window(json->input, &length);
		if (window[0] == '\\' && window[1] == 'u' && hex4(json, 2, &low) && low >= 0xdc00 && low < 0xe000) {
			input_skip(json->input, 6);
			put_character(out, 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00));
			return true;
		}
	}
	put_character(out, c >= 0xd800 && c < 0xe000 ? 0xfffd : c);
	return true;
}

/* At a backslash. */
static bool escape(struct json *json, struct out *out)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	size_t length;
	const char *found;
	unsigned char c;

	if (!have(json, 2))
		return false;
	c = input_window(json->input, &length)[1];
	if (c == 'u')
		return escape_unicode(json, out);
	found = c ? strchr(from, c) : NULL;
	if (!found)
		return false;
	put(out, &to[found - from], 1);
	input_skip(json->input, 2);
	return true;
}

/* From the opening quote to the closing one, into the buffer. */
static bool read_string(struct json *json)
{
	struct out out = { json->buffer, 0 };

	input_skip(json->input, 1);
	for (;;) {
		size_t length, at = 0;
		const unsigned char *window = input_window(json->input, &length);

		while (at < length && window[at] != '"' && window[at] != '\\' && window[at] >= 0x20)
			at++;
		put(&out, window, at);
		input_skip(json->input, at);
		if (at == length) {
			if (!input_more(json->input))
				return false;
			continue;
		}
		if (window[at] == '"')
			break;
		if (window[at] != '\\' || !escape(json, &out))
			return false;
	}
	input_skip(json->input, 1);
	out.bytes[out.length] = '\0';
	json->text = out.bytes;
	json->length = out.length;
	return true;
}

/* ---- other scalars ---- */

static bool is_word(unsigned char c)
{
	return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '+' || c == '-' || c == '.' || c == '_';
}

/* RFC 8259's grammar of numbers. */
static bool is_number(const char *text)
{
	text += *text == '-';
	if (*text == '0')
		text++;
	else if (*text >= '1' && *text <= '9')
		text += strspn(text, "0123456789");
	else
		return false;
	if (*text == '.') {
		size_t digits = strspn(++text, "0123456789");

		if (!digits)
			return false;
		text += digits;
	}
	if (*text == 'e' || *text == 'E') {
		size_t digits;

		text++;
		text += *text == '+' || *text == '-';
		digits = strspn(text, "0123456789");
		if (!digits)
			return false;
		text += digits;
	}
	return *text == '\0';
}

static enum json_token read_word(struct json *json)
{
	static const struct { const char *word; enum json_token token; } words[] = {
		{ "true", JSON_TRUE }, { "false", JSON_FALSE }, { "null", JSON_NULL }, { "NaN", JSON_NULL }, { "Infinity", JSON_NULL }, { "-Infinity", JSON_NULL },
	};
	enum { WORD_MAX = 400 };
	size_t length, at = 0;
	const unsigned char *window;

	for (;;) {
		window = input_window(json->input, &length);
		while (at < length && at <= WORD_MAX && is_word(window[at]))
			at++;
		if (at < length || at > WORD_MAX || !input_more(json->input))
			break;
	}
	window = input_window(json->input, &length);
	if (at == 0 || at > WORD_MAX)
		return broken(json, "a value is missing");
	memcpy(json->buffer, window, at);
	json->buffer[at] = '\0';
	json->text = json->buffer;
	json->length = at;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		if (json_is(json, words[i].word)) {
			input_skip(json->input, at);
			return words[i].token;
		}
	}
	if (!is_number(json->text))
		return broken(json, "a value is neither number nor word");
	input_skip(json->input, at);
	return JSON_NUMBER;
}

/* ---- tokens ---- */

static enum json_token read_value(struct json *json, int c)
{
	enum json_token token;

	if (c == '{' || c == '[')
		return open_container(json, c == '{');
	json->state = json->depth ? AFTER : DONE;
	if (c == '"')
		return read_string(json) ? JSON_STRING : broken(json, "a string does not end, or holds what it may not");
	token = read_word(json);
	return token;
}

static enum json_token read_key(struct json *json, int c)
{
	if (c != '"')
		return broken(json, "a key is missing");
	if (!read_string(json))
		return broken(json, "a key does not end, or holds what it may not");
	if (peek(json) != ':')
		return broken(json, "a colon is missing");
	input_skip(json->input, 1);
	json->state = VALUE;
	return JSON_KEY;
}

enum json_token json_next(struct json *json)
{
	int c;

	json->text = "";
	json->length = 0;
	if (json->state == BROKEN)
		return JSON_BAD;
	c = peek(json);
	if (json->state == DONE)
		return c < 0 && !input_failure(json->input) ? JSON_END : broken(json, "something follows its end");
	if (c < 0)
		return broken(json, "it ends in the middle");
	if (json->state == AFTER && c == ',') {
		input_skip(json->input, 1);
		json->state = in_object(json) ? KEY : VALUE;
		c = peek(json);
		if (c < 0)
			return broken(json, "it ends in the middle");
	} else if (json->state == AFTER) {
		return c == (in_object(json) ? '}' : ']') ? close_container(json) : broken(json, "a comma is missing");
	}
	if ((json->state == FIRST_KEY && c == '}') || (json->state == FIRST_VALUE && c == ']'))
		return close_container(json);
	return json->state == FIRST_KEY || json->state == KEY ? read_key(json, c) : read_value(json, c);
}

bool json_skip(struct json *json, enum json_token token)
{
	unsigned outside = json->depth;

	if (token == JSON_BAD || token == JSON_END)
		return false;
	if (token != JSON_OBJECT && token != JSON_ARRAY)
		return true;
	do {
		if (json_next(json) == JSON_BAD)
			return false;
	} while (json->depth >= outside);
	return true;
}

/* ---- numbers ---- */

/* Digits of TEXT as an integer times 10^SHIFT, rounded. */
static bool decimal(const char *text, int shift, int64_t *out)
{
	bool negative = *text == '-', point = false, any = false, up = false;
	uint64_t value = 0;
	long exponent = 0;
	char *end;

	text += *text == '-' || *text == '+';
	for (; (*text >= '0' && *text <= '9') || (*text == '.' && !point); text++) {
		if (*text == '.') {
			point = true;
		} else if (any = true, value <= (UINT64_MAX - 9) / 10) {
			value = value * 10 + (uint64_t)(*text - '0');
			shift -= point;
		} else {
			shift += !point; /* more digits than fit */
		}
	}
	if (any && (*text | 32) == 'e') {
		exponent = strtol(text + 1, &end, 10);
		if (end == text + 1)
			return false;
		text = end;
	}
	if (!any || *text || exponent > 1000 || exponent < -1000)
		return false;
	for (exponent += shift; value && exponent > 0; exponent--)
		if (__builtin_mul_overflow(value, 10, &value))
			return false;
	for (; value && exponent < 0; exponent++) {
		up = value % 10 >= 5;
		value /= 10;
	}
	value += up && exponent == 0;
	if (value > INT64_MAX)
		return false;
	*out = negative ? -(int64_t)value : (int64_t)value;
	return true;
}

bool json_thousandths(const struct json *json, int64_t *out)
{
	return decimal(json->text, 3, out);
}

bool json_whole(const struct json *json, int64_t *out)
{
	char *end;

	if (json->text[0] == '0' && (json->text[1] | 32) == 'x') {
		uint64_t value = strtoull(json->text, &end, 16);

		*out = (int64_t)value;
		return *end == '\0' && end != json->text + 2 && value <= INT64_MAX;
	}
	return decimal(json->text, 0, out);
}

bool json_three(struct json *json, enum json_token token, int64_t out[3])
{
	if (token != JSON_ARRAY)
		return json_skip(json, token);
	for (size_t i = 0; (token = json_next(json)) != JSON_ARRAY_END; i++) {
		if (token == JSON_NUMBER && i < 3)
			json_whole(json, &out[i]);
		else if (!json_skip(json, token))
			return false;
	}
	return true;
}
