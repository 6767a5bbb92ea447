#include "import/json.h"

#include <stdlib.h>
#include <string.h>

/* What may come next. */
enum state { VALUE, FIRST_VALUE /* or ] */, FIRST_KEY /* or } */, KEY, COLON, AFTER /* , or the end of what it is in */, DONE, BROKEN };

/* The input learns how far the reader came. */
static void settle(struct json *json)
{
	input_skip(json->input, (size_t)(json->at - json->window));
	json->window = json->at;
}

bool json_more(struct json *json)
{
	size_t length;
	bool got;

	/* The token at hand may lie in the window, which moves. */
	if (json->text >= (char *)json->window && json->text < (char *)json->end) {
		memcpy(json->buffer, json->text, json->length);
		json->buffer[json->length] = '\0';
		json->text = json->buffer;
	}
	settle(json);
	got = input_more(json->input);
	json->at = json->window = input_window(json->input, &length);
	json->end = json->at + length;
	return got;
}

int json_open(struct json *json, struct input *input)
{
	size_t length;

	*json = (struct json){ .input = input, .state = VALUE, .buffer = malloc(JSON_STRING_MAX + 1), .text = "" };
	json->at = json->window = input_window(input, &length);
	json->end = json->at + length;
	return json->buffer ? 0 : -1;
}

uint64_t json_offset(const struct json *json)
{
	return input_offset(json->input) + (uint64_t)(json->at - json->window);
}

const char *json_ahead(struct json *json, size_t *length)
{
	json_more(json);
	*length = (size_t)(json->end - json->at);
	return (const char *)json->at;
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

size_t json_text(const struct json *json, char *out, size_t size)
{
	size_t length = json->length < size - 1 ? json->length : size - 1;

	while (length && length < json->length && ((unsigned char)json->text[length] & 0xc0) == 0x80)
		length--;
	memcpy(out, json->text, length);
	out[length] = '\0';
	return length;
}

/* The next byte that is no white space, not yet consumed; -1 at the end. */
static inline int peek(struct json *json)
{
	do
		for (; json->at < json->end; json->at++)
			if (*json->at > ' ' || !(*json->at == ' ' || *json->at == '\n' || *json->at == '\r' || *json->at == '\t'))
				return *json->at;
	while (json_more(json));
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
	json->at++;
	json->object[json->depth / 8] &= (unsigned char)~(1u << json->depth % 8);
	json->object[json->depth / 8] |= (unsigned char)((unsigned)object << json->depth % 8);
	json->depth++;
	json->state = object ? FIRST_KEY : FIRST_VALUE;
	return object ? JSON_OBJECT : JSON_ARRAY;
}

static enum json_token close_container(struct json *json, unsigned char *behind)
{
	bool object = in_object(json);

	json->at = behind;
	json->depth--;
	json->state = json->depth ? AFTER : DONE;
	return object ? JSON_OBJECT_END : JSON_ARRAY_END;
}

/* ---- strings ---- */

/* From the opening quote to the closing one. Most lie whole and plain in the window, and stay there: the closing quote becomes their end. */
static inline bool read_string(struct json *json)
{
	unsigned char *from = json->at + 1, *to = json_plain_end(from, json->end);

	json->at = from;
	if (to == json->end || *to != '"' || to - from > JSON_STRING_MAX)
		return json_gather_string(json);
	*to = '\0';
	json->at = to + 1;
	json->text = (char *)from;
	json->length = (size_t)(to - from);
	return true;
}

/* ---- other scalars ---- */

static bool is_word(unsigned char c)
{
	return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '+' || c == '-' || c == '.' || c == '_';
}

static inline bool ends_word(unsigned char c)
{
	return c == ',' || c == '}' || c == ']' || !is_word(c);
}

static inline const unsigned char *digits(const unsigned char *text, const unsigned char *end)
{
	while (text < end && *text >= '0' && *text <= '9')
		text++;
	return text;
}

/* Where a number by RFC 8259's grammar ends, NULL when there is none. */
static inline const unsigned char *number_end(const unsigned char *text, const unsigned char *end)
{
	const unsigned char *from;

	text += text < end && *text == '-';
	if (text == end)
		return NULL;
	if (*text == '0')
		text++;
	else if (*text >= '1' && *text <= '9')
		text = digits(text, end);
	else
		return NULL;
	if (text < end && *text == '.') {
		from = text + 1;
		text = digits(from, end);
		if (text == from)
			return NULL;
	}
	if (text < end && (*text | 32) == 'e') {
		from = text + 1;
		from += from < end && (*from == '+' || *from == '-');
		text = digits(from, end);
		if (text == from)
			return NULL;
	}
	return text;
}

static enum json_token word_token(const struct json *json)
{
	static const struct { const char *word; enum json_token token; } words[] = {
		{ "true", JSON_TRUE }, { "false", JSON_FALSE }, { "null", JSON_NULL }, { "NaN", JSON_NULL }, { "Infinity", JSON_NULL }, { "-Infinity", JSON_NULL },
	};

	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (json_is(json, words[i].word))
			return words[i].token;
	return JSON_BAD;
}

static enum json_token read_word(struct json *json)
{
	enum { WORD_MAX = 400 };
	const unsigned char *to = number_end(json->at, json->end);
	size_t length = 0;
	enum json_token token;

	/* Most are numbers, whole in the window. */
	if (to && to < json->end && ends_word(*to)) {
		json->text = (char *)json->at;
		json->length = (size_t)(to - json->at);
		json->at += json->length;
		return JSON_NUMBER;
	}
	for (;;) {
		while (json->at + length < json->end && length <= WORD_MAX && is_word(json->at[length]))
			length++;
		if (json->at + length < json->end || length > WORD_MAX || !json_more(json))
			break;
	}
	if (length == 0 || length > WORD_MAX)
		return broken(json, "a value is missing");
	memcpy(json->buffer, json->at, length);
	json->buffer[length] = '\0';
	json->text = json->buffer;
	json->length = length;
	to = json->at + length;
	token = number_end(json->at, to) == to ? JSON_NUMBER : word_token(json);
	if (token == JSON_BAD)
		return broken(json, "a value is neither number nor word");
	json->at += length;
	return token;
}

/* ---- tokens ---- */

static enum json_token read_value(struct json *json, int c)
{
	if (c == '{' || c == '[')
		return open_container(json, c == '{');
	json->state = json->depth ? AFTER : DONE;
	if (c == '"')
		return read_string(json) ? JSON_STRING : broken(json, "a string does not end, or holds what it may not");
	return read_word(json);
}

static enum json_token read_key(struct json *json, int c)
{
	if (c != '"')
		return broken(json, "a key is missing");
	if (!read_string(json))
		return broken(json, "a key does not end, or holds what it may not");
	if (peek(json) != ':')
		return broken(json, "a colon is missing");
	json->at++;
	json->state = VALUE;
	return JSON_KEY;
}

enum json_token json_next(struct json *json)
{
	int c;

	json->text = "";
	json->length = 0;
	if (json->state == VALUE && json->at < json->end && *json->at > ' ')
		return read_value(json, *json->at);
	if (json->state == BROKEN)
		return JSON_BAD;
	c = peek(json);
	if (json->state == DONE)
		return c < 0 && !input_failure(json->input) ? JSON_END : broken(json, "something follows its end");
	if (c < 0)
		return broken(json, "it ends in the middle");
	if (json->state == AFTER && c == ',') {
		json->at++;
		json->state = in_object(json) ? KEY : VALUE;
		c = peek(json);
		if (c < 0)
			return broken(json, "it ends in the middle");
	} else if (json->state == AFTER) {
		return c == (in_object(json) ? '}' : ']') ? close_container(json, json->at + 1) : broken(json, "a comma is missing");
	}
	if ((json->state == FIRST_KEY && c == '}') || (json->state == FIRST_VALUE && c == ']'))
		return close_container(json, json->at + 1);
	return json->state == FIRST_KEY || json->state == KEY ? read_key(json, c) : read_value(json, c);
}

/* Where a key stands that begins in the window, with at most one space before it and LEAST bytes from there on; NULL: that cannot be told so quickly. */
static inline unsigned char *key_at(const struct json *json, ptrdiff_t least)
{
	unsigned char *at = json->at;

	if (json->end - at < least + 2 || !(json->state == FIRST_KEY || (json->state == AFTER && *at == ',' && in_object(json))))
		return NULL;
	at += json->state == AFTER;
	at += *at == ' ' || *at == '\n';
	return *at == '"' ? at : NULL;
}

static inline void key_end(struct json *json, unsigned char *behind)
{
	json->at = behind + (behind < json->end && *behind == ' ');
	json->state = VALUE;
}

bool json_take_key(struct json *json, const struct json_word *word)
{
	unsigned char *at = key_at(json, sizeof word->bytes);
	unsigned wanted = (1u << word->length) - 1;

	if (!at || (~sixteen_places(sixteen_load(at) == sixteen_load(word->bytes)) & wanted))
		return false;
	key_end(json, at + word->length);
	return true;
}

/* Anything unusual is left to json_next(). */
enum json_token json_key(struct json *json)
{
	unsigned char *at = key_at(json, 8), *to;

	if (!at)
		return json_next(json);
	to = json_plain_end(at + 1, json->end);
	if (json->end - to < 2 || *to != '"' || to[1] != ':' || to - at > JSON_STRING_MAX)
		return json_next(json);
	*to = '\0';
	json->text = (char *)at + 1;
	json->length = (size_t)(to - at - 1);
	key_end(json, to + 2);
	return JSON_KEY;
}

bool json_pass(struct json *json)
{
	unsigned char *to = NULL;

	if (json_at_value(json) && *json->at == '"') {
		to = json_plain_end(json->at + 1, json->end);
		to = to < json->end && *to == '"' ? to + 1 : NULL;
	} else if (json_at_value(json)) {
		to = (unsigned char *)number_end(json->at, json->end);
		to = to && to < json->end && ends_word(*to) ? to : NULL;
	}
	if (!to)
		return json_skip(json, json_next(json));
	json_pass_to(json, (char *)to);
	return true;
}

bool json_take_letter(struct json *json, char *out)
{
	const char *at = (const char *)json->at;

	if (!json_at_value(json) || json->end - json->at < 4 || at[0] != '"' || at[1] == '"' || at[1] == '\\' || at[2] != '"')
		return false;
	*out = at[1];
	json_pass_to(json, at + 3);
	return true;
}

bool json_leave(struct json *json)
{
	unsigned char *to = (json->state == FIRST_KEY || json->state == AFTER) && json->depth && in_object(json) ? json_object_end(json->at, json->end) : NULL;

	if (!to)
		return false;
	close_container(json, to);
	return true;
}

bool json_at_value(const struct json *json)
{
	return json->state == VALUE && json->at < json->end;
}

void json_pass_to(struct json *json, const char *to)
{
	json->at += to - (const char *)json->at;
	json->state = json->depth ? AFTER : DONE;
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
