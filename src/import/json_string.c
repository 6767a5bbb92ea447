/* Strings that do not lie whole and plain in the window: escapes, and pieces from one window to the next. And objects that are passed over unread. */
#include <string.h>

#include "import/json.h"

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
	while ((size_t)(json->end - json->at) < count)
		if (!json_more(json))
			return false;
	return true;
}

/* Four hexadecimal digits at AT in the window. */
static bool hex4(struct json *json, size_t at, uint32_t *out)
{
	if (!have(json, at + 4))
		return false;
	*out = 0;
	for (size_t i = 0; i < 4; i++) {
		unsigned char c = json->at[at + i];
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

	if (!hex4(json, 2, &c))
		return false;
	json->at += 6;
	if (c >= 0xd800 && c < 0xdc00 && have(json, 6) && json->at[0] == '\\' && json->at[1] == 'u' && hex4(json, 2, &low) && low >= 0xdc00 && low < 0xe000) {
		json->at += 6;
		put_character(out, 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00));
		return true;
	}
	put_character(out, c >= 0xd800 && c < 0xe000 ? 0xfffd : c);
	return true;
}

/* At a backslash. */
static bool escape(struct json *json, struct out *out)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *found;
	unsigned char c;

	if (!have(json, 2))
		return false;
	c = json->at[1];
	if (c == 'u')
		return escape_unicode(json, out);
	found = c ? strchr(from, c) : NULL;
	if (!found)
		return false;
	put(out, &to[found - from], 1);
	json->at += 2;
	return true;
}

bool json_gather_string(struct json *json)
{
	struct out out = { json->buffer, 0 };

	for (;;) {
		unsigned char *to = json_plain_end(json->at, json->end);

		put(&out, json->at, (size_t)(to - json->at));
		json->at = to;
		if (to == json->end) {
			if (!json_more(json))
				return false;
			continue;
		}
		if (*to == '"')
			break;
		if (*to != '\\' || !escape(json, &out))
			return false;
	}
	json->at++;
	out.bytes[out.length] = '\0';
	json->text = out.bytes;
	json->length = out.length;
	return true;
}

/* The first quote or bracket from AT on, or END. */
static inline unsigned char *mark_find(unsigned char *at, const unsigned char *end)
{
	for (; end - at >= 16; at += 16) {
		sixteen bytes = sixteen_load(at), curly = bytes | 0x20; /* square brackets become curly ones with bit 5, and nothing else does */
		unsigned places = sixteen_places((bytes == '"') | (curly == '{') | (curly == '}'));

		if (places)
			return at + __builtin_ctz(places);
	}
	while (at < end && *at != '"' && (*at | 0x20) != '{' && (*at | 0x20) != '}')
		at++;
	return at;
}

/* Behind the closing quote; NULL when it is not before END. */
static inline unsigned char *string_end(unsigned char *at, const unsigned char *end)
{
	while ((at = json_plain_end(at, end)) < end && *at == '\\' && end - at > 2)
		at += 2;
	return at < end && *at == '"' ? at + 1 : NULL;
}

unsigned char *json_object_end(unsigned char *at, const unsigned char *end)
{
	for (unsigned depth = 1; at && (at = mark_find(at, end)) < end;) {
		unsigned char mark = *at++;

		if (mark == '"')
			at = string_end(at, end);
		else if (mark == '{' || mark == '[')
			depth++;
		else if (--depth == 0)
			return mark == '}' ? at : NULL;
	}
	return NULL;
}
