/*
 * Values without the interpreter's help: numbers, text and lengths are read from the object's memory; of anything else only the type is told, because
 * its repr() would be code of the target. Whatever is read may be changing, or be no object at all.
 */
#include "unwind/pyvalue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/cpython.h"

enum { TEXT_MAX = 160, BYTES_SHOWN = 48, DIGIT_BITS = 30, OBJECT_BYTES = 32, PAGE = 4096 };

/* Py_TPFLAGS_*: instances are laid out as the builtin type's; HEAPTYPE: a class made by Python code. */
enum { FLAG_HEAP = 1 << 9, FLAG_INT = 1 << 24, FLAG_LIST = 1 << 25, FLAG_TUPLE = 1 << 26, FLAG_BYTES = 1 << 27, FLAG_STR = 1 << 28, FLAG_DICT = 1 << 29 };

struct object {
	uint64_t addr;
	char type[PYTYPE_NAME_MAX]; /* without its module */
	uint64_t flags;
	unsigned char head[OBJECT_BYTES];
};

/* A C string, cut to SIZE; never reads into a page that it does not reach. */
static int read_name(const struct pyreader *reader, uint64_t addr, char *out, size_t size)
{
	size_t used = 0;

	if (addr < PAGE)
		return -1;
	while (used < size - 1) {
		size_t part = PAGE - (addr + used) % PAGE;

		if (part > size - 1 - used)
			part = size - 1 - used;
		if (reader_read(reader, addr + used, out + used, part) < 0)
			return -1;
		out[used + part] = '\0';
		if (memchr(out + used, '\0', part))
			return 0;
		used += part;
	}
	return 0;
}

static int read_object(const struct pyreader *reader, uint64_t addr, struct object *out)
{
	const struct cpython_layout *layout = reader->walk.layout;
	char name[PYTYPE_NAME_MAX * 2];
	const char *dot;
	uint64_t type, at;

	out->addr = addr;
	if (!address_plausible(addr) || reader_read(reader, addr, out->head, sizeof out->head) < 0)
		return -1;
	type = word_at(out->head, layout->object_type);
	if (!address_plausible(type) || reader_word(reader, type + (uint64_t)layout->type_name, &at) < 0
	    || reader_word(reader, type + (uint64_t)layout->type_flags, &out->flags) < 0 || read_name(reader, at, name, sizeof name) < 0)
		return -1;
	dot = strrchr(name, '.');
	snprintf(out->type, sizeof out->type, "%.63s", dot ? dot + 1 : name);
	return 0;
}

/* -1: it cannot be read, or has more than 64 bits; *BITS says about how many. */
static int read_int(const struct pyreader *reader, const struct object *object, bool *negative, uint64_t *value, uint64_t *bits)
{
	const struct cpython_layout *layout = reader->walk.layout;
	uint64_t tag = word_at(object->head, layout->long_tag >= 0 ? layout->long_tag : layout->object_size), count;
	uint32_t digits[3] = { 0 };

	*negative = layout->long_tag >= 0 ? (tag & 3) == 2 : (int64_t)tag < 0;
	count = layout->long_tag >= 0 ? tag >> 3 : *negative ? 0 - tag : tag;
	*bits = count < 1ull << 40 ? count * DIGIT_BITS : 0;
	if (count > 3 || reader_read(reader, object->addr + (uint64_t)layout->long_digits, digits, count * sizeof digits[0]) < 0 || digits[2] >= 1u << (64 - 2 * DIGIT_BITS))
		return -1;
	*value = 0;
	for (uint64_t i = count; i-- > 0;)
		*value = *value << DIGIT_BITS | digits[i];
	return 0;
}

static void put_int(const struct pyreader *reader, const struct object *object, char *out, size_t size)
{
	uint64_t value, bits;
	bool negative;

	if (read_int(reader, object, &negative, &value, &bits) < 0)
		snprintf(out, size, "<int of %llu bits>", (unsigned long long)bits);
	else
		snprintf(out, size, "%s%llu", negative ? "-" : "", (unsigned long long)value);
}

/* The shortest that reads back as the same number. */
static void put_float(const struct pyreader *reader, const struct object *object, char *out, size_t size)
{
	double value;

	memcpy(&value, object->head + reader->walk.layout->float_value, sizeof value);
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(out, size, "%.*g", digits, value);
		if (strtod(out, NULL) == value)
			break;
	}
	if (!strpbrk(out, ".eni"))
		strncat(out, ".0", size - strlen(out) - 1);
}

/* TEXT between quotes; what would end the line or the quotes is escaped. */
static void put_quoted(const char *prefix, const char *text, size_t length, bool bytes, bool whole, char *out, size_t size)
{
	size_t used = (size_t)snprintf(out, size, "%s'", prefix);

	for (size_t i = 0; i < length && used + 12 < size; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c == '\\' || c == '\'')
			used += (size_t)snprintf(out + used, size - used, "\\%c", c);
		else if (c == '\n')
			used += (size_t)snprintf(out + used, size - used, "\\n");
		else if (c < 0x20 || c == 0x7f || (bytes && c >= 0x80))
			used += (size_t)snprintf(out + used, size - used, "\\x%02x", c);
		else
			out[used++] = (char)c;
		if (used + 12 >= size && i + 1 < length)
			whole = false;
	}
	/* Not in the middle of a character. */
	while (!whole && !bytes && used > 1 && ((unsigned char)out[used - 1] & 0xc0) == 0x80)
		used--;
	if (!whole && !bytes && used > 1 && (unsigned char)out[used - 1] >= 0xc0)
		used--;
	snprintf(out + used, size - used, "'%s", whole ? "" : "…");
}

static void put_str(const struct pyreader *reader, const struct object *object, char *out, size_t size)
{
	char text[TEXT_MAX];
	bool whole;

	if (reader_str(reader, object->addr, text, sizeof text, &whole) < 0)
		snprintf(out, size, "<str>");
	else
		put_quoted("", text, strlen(text), false, whole, out, size);
}

static void put_bytes(const struct pyreader *reader, const struct object *object, char *out, size_t size)
{
	uint64_t length = word_at(object->head, reader->walk.layout->object_size);
	char text[BYTES_SHOWN];
	size_t shown = length < sizeof text ? (size_t)length : sizeof text;

	if (reader_read(reader, object->addr + (uint64_t)reader->walk.layout->bytes_text, text, shown) < 0)
		snprintf(out, size, "<bytes>");
	else
		put_quoted("b", text, shown, true, shown == length, out, size);
}

static void put_length(const struct object *object, int offset, char *out, size_t size)
{
	long long length = (long long)word_at(object->head, offset);

	if (length < 0)
		snprintf(out, size, "<%s>", object->type);
	else
		snprintf(out, size, "<%s, %lld item%s>", object->type, length, length == 1 ? "" : "s");
}

static void put_object(const struct pyreader *reader, const struct object *object, char *out, size_t size)
{
	const struct cpython_layout *layout = reader->walk.layout;
	if (strcmp(object->type, "NoneType") == 0)
		snprintf(out, size, "None");
	else if (object->flags & FLAG_INT && object->flags & FLAG_HEAP)
		snprintf(out, size, "<%s>", object->type);
	else if (strcmp(object->type, "bool") == 0 && object->flags & FLAG_INT)
		snprintf(out, size, "%s", word_at(object->head, layout->long_digits) & 1 ? "True" : "False");
	else if (object->flags & FLAG_INT)
		put_int(reader, object, out, size);
	else if (strcmp(object->type, "float") == 0 && !(object->flags & FLAG_HEAP))
		put_float(reader, object, out, size);
	else if (object->flags & FLAG_STR)
		put_str(reader, object, out, size);
	else if (object->flags & FLAG_BYTES)
		put_bytes(reader, object, out, size);
	else if (object->flags & (FLAG_LIST | FLAG_TUPLE))
		put_length(object, layout->object_size, out, size);
	else if (object->flags & FLAG_DICT)
		put_length(object, layout->dict_used, out, size);
	else if ((strcmp(object->type, "set") == 0 || strcmp(object->type, "frozenset") == 0) && !(object->flags & FLAG_HEAP))
		put_length(object, layout->set_used, out, size);
	else
		snprintf(out, size, "<%s>", object->type);
}

bool reader_value(const struct pyreader *reader, uint64_t addr, char *out, size_t size)
{
	struct object object;

	if (read_object(reader, addr, &object) == 0 && strcmp(object.type, "cell") == 0) {
		addr = word_at(object.head, reader->walk.layout->cell_value);
		if (!addr)
			return false;
	}
	if (read_object(reader, addr, &object) < 0)
		snprintf(out, size, "<unreadable>");
	else
		put_object(reader, &object, out, size);
	return true;
}

int reader_type_name(const struct pyreader *reader, uint64_t addr, char out[PYTYPE_NAME_MAX])
{
	struct object object;

	if (read_object(reader, addr, &object) < 0)
		return -1;
	memcpy(out, object.type, sizeof object.type);
	return 0;
}

bool reader_number(const struct pyreader *reader, uint64_t addr, uint64_t *out)
{
	struct object object;
	uint64_t bits;
	bool negative;

	return read_object(reader, addr, &object) == 0 && object.flags & FLAG_INT && read_int(reader, &object, &negative, out, &bits) == 0 && !negative;
}
