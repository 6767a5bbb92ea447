/* Numbers of a document, exactly: no floating point between what the file says and what is counted with. */
#include <stdlib.h>
#include <string.h>

#include "import/json.h"

/* VALUE times 10^EXPONENT, rounded half up. False when it does not fit. */
static bool scale(uint64_t *value, long exponent)
{
	bool up = false;

	for (; *value && exponent > 0; exponent--)
		if (__builtin_mul_overflow(*value, 10, value))
			return false;
	for (; *value && exponent < 0; exponent++) {
		up = *value % 10 >= 5;
		*value /= 10;
	}
	*value += up && exponent == 0;
	return *value <= INT64_MAX;
}

static inline bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* The digits at TEXT behind those of *VALUE, up to eight at a time: pairs are put together, then pairs of pairs. */
static inline const char *take_digits(const char *text, const char *end, uint64_t *value)
{
	static const uint64_t powers[] = { 1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000 };
	const uint64_t high = 0xf0f0f0f0f0f0f0f0u, zeros = 0x3030303030303030u;

	while (end - text >= 8) {
		uint64_t bytes, others;
		unsigned count;

		memcpy(&bytes, text, 8);
		/* A digit is 0x30 to 0x39: its high half is 3, and still is with 6 more. What a carry spoils comes after a byte that is no digit. */
		others = ((bytes & high) ^ zeros) | (((bytes + 0x0606060606060606u) & high) ^ zeros);
		count = others ? (unsigned)__builtin_ctzll(others) / 8 : 8;
		if (!count)
			return text;
		bytes <<= 64 - 8 * count; /* fewer than eight: zeros before them */
		bytes = (bytes & 0x0f0f0f0f0f0f0f0fu) * 2561 >> 8;
		bytes = (bytes & 0x00ff00ff00ff00ffu) * 6553601 >> 16;
		bytes = (bytes & 0x0000ffff0000ffffu) * 42949672960001u >> 32;
		*value = *value * powers[count] + bytes;
		text += count;
		if (count < 8)
			return text;
	}
	for (; text < end && is_digit(*text); text++)
		*value = *value * 10 + (uint64_t)(*text - '0');
	return text;
}

/* The same of what most numbers in JSON are: few digits, not more of them behind the point than SHIFT. Returns its end, NULL when it is not such a one. */
static inline const char *plain_number(const char *text, const char *end, int shift, int64_t *out)
{
	enum { DIGITS_MAX = 19 /* an unsigned number has room for them */ };
	static const uint64_t powers[] = { 1, 10, 100, 1000 };
	const char *from, *point = NULL;
	bool negative = text < end && *text == '-';
	uint64_t value = 0;

	text += negative;
	from = text;
	end = end - text > DIGITS_MAX + 1 ? text + DIGITS_MAX + 1 : end;
	text = take_digits(text, end, &value);
	if (text == from || (*from == '0' && text - from > 1))
		return NULL;
	if (text < end && *text == '.') {
		point = text;
		text = take_digits(text + 1, end, &value);
		shift -= (int)(text - point - 1);
		if (text - point == 1)
			return NULL;
	}
	if (text - from - (point != NULL) > DIGITS_MAX || shift < 0 || __builtin_mul_overflow(value, powers[shift], &value) || value > INT64_MAX)
		return NULL;
	*out = negative ? -(int64_t)value : (int64_t)value;
	return text;
}

/* Its digits as an integer times 10^SHIFT, rounded. */
static bool decimal(const struct json *json, int shift, int64_t *out)
{
	const char *text = json->text, *end = text + json->length, *from;
	bool negative = text < end && *text == '-', point = false;
	uint64_t value = 0;
	long exponent = 0;

	text += text < end && (*text == '-' || *text == '+');
	from = text;
	for (; text < end && ((*text >= '0' && *text <= '9') || (*text == '.' && !point)); text++) {
		if (*text == '.') {
			point = true;
		} else if (value <= (UINT64_MAX - 9) / 10) {
			value = value * 10 + (uint64_t)(*text - '0');
			shift -= point;
		} else {
			shift += !point; /* more digits than fit */
		}
	}
	if (text - from <= point)
		return false;
	if (text < end && (*text | 32) == 'e') {
		char *after;

		exponent = strtol(text + 1, &after, 10); /* what follows a number in the document ends it */
		if (after == text + 1)
			return false;
		text = after;
	}
	if (text != end || exponent > 1000 || exponent < -1000 || !scale(&value, exponent + shift))
		return false;
	*out = negative ? -(int64_t)value : (int64_t)value;
	return true;
}

bool json_thousandths(const struct json *json, int64_t *out)
{
	return decimal(json, 3, out);
}

bool json_whole(const struct json *json, int64_t *out)
{
	char *end;

	if (json->length > 2 && json->text[0] == '0' && (json->text[1] | 32) == 'x') {
		uint64_t value = strtoull(json->text, &end, 16);

		*out = (int64_t)value;
		return end == json->text + json->length && value <= INT64_MAX;
	}
	return decimal(json, 0, out);
}

struct number json_number(const struct json *json, bool thousandths)
{
	struct number number = { 0, false };

	number.known = thousandths ? json_thousandths(json, &number.value) : json_whole(json, &number.value);
	return number;
}

bool json_take_number(struct json *json, bool thousandths, struct number *out)
{
	const char *end = (const char *)json->end, *to = json_at_value(json) ? plain_number((const char *)json->at, end, thousandths ? 3 : 0, &out->value) : NULL;

	/* What follows a number that ends here and in the window. */
	if (!to || to == end || !(*to == ',' || *to == '}' || *to == ']'))
		return false;
	out->known = true;
	json_pass_to(json, to);
	return true;
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
