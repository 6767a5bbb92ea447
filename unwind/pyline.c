/*
 * Which line an instruction is of, from a code object's table in the target:
 *
 *   3.8, 3.9   co_lnotab: pairs (bytes of code, lines), both to be added up; lines signed
 *   3.10       co_linetable: pairs (bytes of code, lines); the entry that covers the instruction counts, -128 = no line (PEP 626)
 *   3.11 …     co_linetable: entries of a first byte 1 kkkk lll (kind, code units - 1) and varints, whose bytes have no high bit (PEP 657,
 *              Objects/locations.md)
 */
#include "unwind/pyreader.h"

#include <string.h>

#include "abi/cpython.h"

enum { TABLE_BYTES_MAX = 1 << 16, CODE_HEAD_MAX = 256, NO_LINE = -128 };

/* Locations of 3.11. */
enum { LOCATION_LONG = 14, LOCATION_NO_COLUMNS = 13, LOCATION_ONE_LINE_0 = 10, LOCATION_ONE_LINE_2 = 12, LOCATION_NONE = 15 };

static uint32_t line_lnotab(const unsigned char *table, size_t size, uint32_t first, uint32_t at)
{
	uint32_t addr = 0;
	int64_t line = first;

	for (size_t i = 0; i + 1 < size; i += 2) {
		addr += table[i];
		if (addr > at)
			break;
		line += (signed char)table[i + 1];
	}
	return line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
}

static uint32_t line_3_10(const unsigned char *table, size_t size, uint32_t first, uint32_t at)
{
	uint32_t addr = 0;
	int64_t line = first;

	for (size_t i = 0; i + 1 < size; i += 2) {
		int delta = (signed char)table[i + 1]; /* NOLINT(bugprone-signed-char-misuse,cert-str34-c): a number with a sign */

		addr += table[i];
		if (delta != NO_LINE)
			line += delta;
		if (at < addr)
			return delta != NO_LINE && line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
	}
	return 0;
}

static int64_t signed_varint(const unsigned char *table, size_t size, size_t *at)
{
	uint64_t value = 0;

	for (unsigned shift = 0; *at < size && shift < 36; shift += 6) {
		unsigned char byte = table[(*at)++];

		value |= (uint64_t)(byte & 63) << shift;
		if (!(byte & 64))
			break;
	}
	return value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

static uint32_t line_3_11(const unsigned char *table, size_t size, uint32_t first, uint32_t at)
{
	uint64_t addr = 0;
	int64_t line = first;
	size_t i = 0;

	while (i < size) {
		unsigned char head = table[i++];
		unsigned kind = head >> 3 & 15;

		if (!(head & 128))
			return 0;
		if (kind == LOCATION_LONG || kind == LOCATION_NO_COLUMNS)
			line += signed_varint(table, size, &i);
		else if (kind >= LOCATION_ONE_LINE_0 && kind <= LOCATION_ONE_LINE_2)
			line += kind - LOCATION_ONE_LINE_0;
		addr += ((uint64_t)(head & 7) + 1) * 2;
		if (at < addr)
			return kind != LOCATION_NONE && line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
		while (i < size && !(table[i] & 128))
			i++;
	}
	return 0;
}

uint32_t pyreader_line(struct pyreader *reader, uint64_t code, uint64_t instr)
{
	const struct cpython_layout *layout = reader->walk.layout;
	const int minor = reader->walk.minor;
	unsigned char head[CODE_HEAD_MAX], table[TABLE_BYTES_MAX];
	uint64_t bytes, size, at;
	uint32_t first;

	if (!reader_code(reader, code) || (size_t)layout->code_size > sizeof head || reader_read(reader, code, head, (size_t)layout->code_size) < 0)
		return 0;
	first = half_at(head, layout->code_firstlineno);
	bytes = word_at(head, layout->code_linetable);
	if (minor >= 11)
		at = instr - (code + (uint64_t)layout->code_bytes);
	else
		at = minor == 10 ? (uint64_t)(int64_t)(int32_t)instr * 2 : (uint64_t)(int64_t)(int32_t)instr;
	if ((int64_t)at < 0)
		return first; /* it has not begun */
	if (at > UINT32_MAX || !address_plausible(bytes) || reader_word(reader, bytes + (uint64_t)layout->object_size, &size) < 0)
		return 0;
	/* What lies beyond is not read: such an instruction has no line then. */
	if (size > sizeof table)
		size = sizeof table;
	if (size && reader_read(reader, bytes + (uint64_t)layout->bytes_text, table, size) < 0)
		return 0;
	return minor >= 11 ? line_3_11(table, size, first, (uint32_t)at) : minor == 10 ? line_3_10(table, size, first, (uint32_t)at) : line_lnotab(table, size, first, (uint32_t)at);
}
