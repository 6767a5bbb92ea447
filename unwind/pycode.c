/* Code objects of the target: telling one from anything else, and their names. Where a frame points, pystack.c says. */
#include "abi/cpython.h"
#include "base/clock.h"
#include "unwind/pyreader.h"

#include <string.h>

enum { CODE_BYTES_MAX = 256, STR_HEADER_BYTES = 72, STR_UNITS_MAX = 1024, NAME_STAMPED_BYTES = 64 };

static bool is_code_type(struct pyreader *reader, uint64_t type)
{
	uint64_t name;
	char text[5];

	if (type && type == reader->code_type)
		return true;
	if (reader->code_type || !address_plausible(type) || reader_word(reader, type + (uint64_t)reader->walk.layout->type_name, &name) < 0
	    || reader_read(reader, name, text, sizeof text) < 0 || memcmp(text, "code", sizeof text) != 0)
		return false;
	reader->code_type = type;
	return true;
}

static int read_code(struct pyreader *reader, uint64_t addr, unsigned char bytes[CODE_BYTES_MAX])
{
	size_t size = (size_t)reader->walk.layout->code_size;

	if (!address_plausible(addr) || size > CODE_BYTES_MAX || reader_read(reader, addr, bytes, size) < 0)
		return -1;
	return is_code_type(reader, word_at(bytes, reader->walk.layout->object_type)) ? 0 : -1;
}

/* Of the beginning of a name: that of a function that is gone may have had the same address. */
static uint64_t name_hash(const struct pyreader *reader, uint64_t addr)
{
	char text[NAME_STAMPED_BYTES];
	uint64_t hash = 0;

	if (reader_str(reader, addr, text, sizeof text, NULL) == 0)
		for (const char *at = text; *at; at++)
			hash = (hash ^ (unsigned char)*at) * 0x100000001b3ull;
	return hash;
}

static uint32_t code_stamp(const struct pyreader *reader, const unsigned char *bytes)
{
	uint64_t hash = name_hash(reader, word_at(bytes, reader->walk.layout->code_name)) * 0x9e3779b97f4a7c15ull;

	hash = (hash ^ word_at(bytes, reader->walk.layout->code_filename)) * 0x9e3779b97f4a7c15ull;
	hash = (hash ^ half_at(bytes, reader->walk.layout->code_firstlineno)) * 0x9e3779b97f4a7c15ull;
	return (uint32_t)(hash >> 32);
}

const struct known_code *reader_code(struct pyreader *reader, uint64_t addr)
{
	uint64_t now_ns = clock_monotonic_ns();

	return reader_code_since(reader, addr, now_ns > KNOWN_NS ? now_ns - KNOWN_NS : 0);
}

const struct known_code *reader_code_since(struct pyreader *reader, uint64_t addr, uint64_t since_ns)
{
	unsigned char bytes[CODE_BYTES_MAX];
	size_t slot = (size_t)(addr * 0x9e3779b97f4a7c15ull >> 52) % KNOWN_CODES;
	struct known_code *known;
	uint64_t looked_ns;

	if (addr == 0)
		return NULL;
	while (reader->codes[slot].addr && reader->codes[slot].addr != addr)
		slot = (slot + 1) % KNOWN_CODES;
	known = &reader->codes[slot];
	if (known->addr && known->looked_ns >= since_ns)
		return known;
	looked_ns = clock_monotonic_ns();
	if (read_code(reader, addr, bytes) < 0)
		return NULL;
	if (!known->addr && ++reader->code_count > KNOWN_CODES / 2) {
		/* Programs that make code without end: begin again. */
		memset(reader->codes, 0, sizeof reader->codes);
		reader->code_count = 1;
		known = &reader->codes[(size_t)(addr * 0x9e3779b97f4a7c15ull >> 52) % KNOWN_CODES];
	}
	known->addr = addr;
	known->looked_ns = looked_ns;
	known->stamp = code_stamp(reader, bytes);
	/* 3.12 and later: the trampoline under an inlined __init__ calls itself and its file by the same str, and has no line. */
	known->internal = reader->walk.minor >= 12 && half_at(bytes, reader->walk.layout->code_firstlineno) == 0
		&& word_at(bytes, reader->walk.layout->code_name) == word_at(bytes, reader->walk.layout->code_filename);
	return known;
}

/* ---- names ---- */

static size_t utf8_put(char *out, uint32_t point)
{
	/* A lone surrogate (undecodable byte of a file name) and NUL have no place in UTF-8 text. */
	if (point == 0 || (point >= 0xd800 && point < 0xe000) || point > 0x10ffff)
		point = 0xfffd;
	if (point < 0x80) {
		out[0] = (char)point;
		return 1;
	}
	if (point < 0x800) {
		out[0] = (char)(0xc0 | point >> 6);
		out[1] = (char)(0x80 | (point & 0x3f));
		return 2;
	}
	if (point < 0x10000) {
		out[0] = (char)(0xe0 | point >> 12);
		out[1] = (char)(0x80 | (point >> 6 & 0x3f));
		out[2] = (char)(0x80 | (point & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | point >> 18);
	out[1] = (char)(0x80 | (point >> 12 & 0x3f));
	out[2] = (char)(0x80 | (point >> 6 & 0x3f));
	out[3] = (char)(0x80 | (point & 0x3f));
	return 4;
}

static uint32_t unit_at(const unsigned char *units, size_t index, uint32_t kind)
{
	uint32_t value = 0;

	memcpy(&value, units + index * kind, kind);
	return value;
}

int reader_str(const struct pyreader *reader, uint64_t addr, char *out, size_t size, bool *whole)
{
	const struct cpython_layout *layout = reader->walk.layout;
	unsigned char header[STR_HEADER_BYTES], units[STR_UNITS_MAX * 4];
	uint32_t state, kind;
	uint64_t length;
	size_t used = 0, i;

	if (!address_plausible(addr) || reader_read(reader, addr, header, (size_t)layout->unicode_ascii_size) < 0)
		return -1;
	state = half_at(header, layout->unicode_state);
	length = word_at(header, layout->unicode_length);
	kind = state >> layout->unicode_kind_bit & 7;
	if (!(state >> layout->unicode_compact_bit & 1) || (kind != 1 && kind != 2 && kind != 4) || length > UINT32_MAX)
		return -1;
	if (whole)
		*whole = length <= size && length <= STR_UNITS_MAX;
	if (length > size)
		length = size;
	if (length > STR_UNITS_MAX)
		length = STR_UNITS_MAX;
	addr += (uint64_t)(state >> layout->unicode_ascii_bit & 1 ? layout->unicode_ascii_size : layout->unicode_compact_size);
	if (length > 0 && reader_read(reader, addr, units, length * kind) < 0)
		return -1;
	for (i = 0; i < length; i++) {
		char sequence[4];
		size_t bytes = utf8_put(sequence, unit_at(units, i, kind));

		if (used + bytes >= size)
			break;
		memcpy(out + used, sequence, bytes);
		used += bytes;
	}
	out[used] = '\0';
	if (whole && i < length)
		*whole = false;
	return 0;
}

int pyreader_code(struct pyreader *reader, uint64_t code, struct pycode *out)
{
	const struct cpython_layout *layout = reader->walk.layout;
	unsigned char bytes[CODE_BYTES_MAX];
	struct pycode found;

	if (read_code(reader, code, bytes) < 0 || reader_str(reader, word_at(bytes, layout->code_name), found.name, sizeof found.name, NULL) < 0
	    || reader_str(reader, word_at(bytes, layout->code_filename), found.file, sizeof found.file, NULL) < 0)
		return -1;
	if (layout->code_qualname < 0)
		memcpy(found.qualname, found.name, sizeof found.name);
	else if (reader_str(reader, word_at(bytes, layout->code_qualname), found.qualname, sizeof found.qualname, NULL) < 0)
		return -1;
	found.line = half_at(bytes, layout->code_firstlineno);
	*out = found;
	return 0;
}
