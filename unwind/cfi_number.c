/* Numbers as DWARF writes them, read within bounds. */
#include "unwind/cfi.h"

uint64_t cfi_number(struct cfi_bytes *bytes, size_t size)
{
	uint64_t value = 0;

	if ((size_t)(bytes->end - bytes->at) < size) {
		bytes->failed = true;
		bytes->at = bytes->end;
		return 0;
	}
	for (size_t i = 0; i < size; i++)
		value |= (uint64_t)bytes->at[i] << (8 * i);
	bytes->at += size;
	return value;
}

int64_t cfi_signed(struct cfi_bytes *bytes, size_t size)
{
	/* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): SIZE is 1 to 8 */
	uint64_t value = cfi_number(bytes, size), sign = 1ull << (8 * size - 1);

	return (int64_t)((value ^ sign) - sign);
}

/* Bits beyond the 64th are dropped; SHIFT becomes how many bits were there. */
static uint64_t leb(struct cfi_bytes *bytes, unsigned *shift, uint8_t *last)
{
	uint64_t value = 0;

	*shift = 0;
	do {
		*last = (uint8_t)cfi_number(bytes, 1);
		if (*shift < 64)
			value |= (uint64_t)(*last & 0x7f) << *shift;
		*shift += 7;
	} while (*last & 0x80);
	return value;
}

uint64_t cfi_uleb(struct cfi_bytes *bytes)
{
	unsigned shift;
	uint8_t last;

	return leb(bytes, &shift, &last);
}

int64_t cfi_sleb(struct cfi_bytes *bytes)
{
	unsigned shift;
	uint8_t last;
	uint64_t value = leb(bytes, &shift, &last);

	if ((last & 0x40) && shift < 64)
		value |= ~0ull << shift;
	return (int64_t)value;
}
