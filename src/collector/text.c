/* str objects to UTF-8, by layout. */
#include "collector/text.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "abi/cpython.h"

static size_t put_character(uint32_t c, char *out)
{
	if (!c || (c >= 0xd800 && c < 0xe000) || c > 0x10ffff)
		c = 0xfffd; /* no place in text; the reader from outside (unwind/pycode.c) says the same */
	if (c < 0x80) {
		out[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (char)(0xc0 | c >> 6);
		out[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		out[0] = (char)(0xe0 | c >> 12);
		out[1] = (char)(0x80 | (c >> 6 & 0x3f));
		out[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | (c >> 18 & 7));
	out[1] = (char)(0x80 | (c >> 12 & 0x3f));
	out[2] = (char)(0x80 | (c >> 6 & 0x3f));
	out[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}

size_t text_room(const struct python *python, const PyObject *str, size_t most)
{
	size_t length = str ? (size_t)at_pointer(str, python->layout->unicode_length) : 1;

	return length < most / 4 ? 4 * length + 2 : most; /* 2: for what is not compact */
}

/* ASCII without NUL is UTF-8 as it is. False: there is a NUL in it. */
static bool copy_plain(const char *data, size_t length, char *out)
{
	if (memchr(data, 0, length))
		return false;
	memcpy(out, data, length);
	out[length] = 0;
	return true;
}

size_t text_from_str(const struct python *python, const PyObject *str, char *out, size_t size, bool *cut)
{
	const struct cpython_layout *layout = python->layout;
	const char *base = (const char *)str;
	size_t length, used;
	uint32_t state, kind;
	const char *data;

	if (!str)
		return text_from_c("?", out, size, cut);
	length = (size_t)at_pointer(base, layout->unicode_length);
	memcpy(&state, base + layout->unicode_state, sizeof state);
	kind = state >> layout->unicode_kind_bit & 7;
	if (!(state >> layout->unicode_compact_bit & 1) || (kind != 1 && kind != 2 && kind != 4))
		return text_from_c("?", out, size, cut);
	data = base + (state >> layout->unicode_ascii_bit & 1 ? layout->unicode_ascii_size : layout->unicode_compact_size);
	used = length < size ? length : size - 1;
	if (kind == 1 && state >> layout->unicode_ascii_bit & 1 && copy_plain(data, used, out)) {
		*cut |= used < length;
		return used;
	}
	used = 0;
	for (size_t i = 0; i < length; i++) {
		char bytes[8];
		uint32_t c = kind == 1 ? ((const uint8_t *)data)[i] : kind == 2 ? ((const uint16_t *)data)[i] : ((const uint32_t *)data)[i];
		size_t n = put_character(c, bytes);

		if (used + n >= size) {
			*cut = true;
			break;
		}
		memcpy(out + used, bytes, n);
		used += n;
	}
	out[used] = 0;
	return used;
}

/* Length of the UTF-8 sequence that begins here, 0 if none does. */
static size_t sequence(const unsigned char *s)
{
	size_t n = s[0] < 0x80 ? 1 : s[0] >= 0xc2 && s[0] < 0xe0 ? 2 : (s[0] & 0xf0) == 0xe0 ? 3 : s[0] >= 0xf0 && s[0] < 0xf5 ? 4 : 0;

	for (size_t i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	if ((n == 3 && ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] >= 0xa0))) ||
	    (n == 4 && ((s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] >= 0x90))))
		return 0;
	return n;
}

size_t text_from_c(const char *string, char *out, size_t size, bool *cut)
{
	const unsigned char *s = (const unsigned char *)(string ? string : "");
	size_t used = 0;

	while (*s) {
		size_t n = sequence(s);

		if (used + (n ? n : 1) >= size) {
			*cut = true;
			break;
		}
		if (n) {
			memcpy(out + used, s, n);
			used += n;
			s += n;
		} else {
			out[used++] = '?';
			s++;
		}
	}
	out[used] = 0;
	return used;
}
