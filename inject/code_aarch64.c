/* aarch64's instructions: short, well-known sequences; whatever does not match exactly is "unknown", never a guess. */
#include "inject/decode.h"

#include "base/a64.h"

#define LOOK_BACK 8 /* instructions before the call in which the argument is set, or before the add that completes an address */
#define BTI_C 0xd503245fu
#define RET 0xd65f03c0u

/* The last setting of w1 before CODE[AT]: 0, 1, TLS_ARGUMENT_NONE, or TLS_ARGUMENT_UNKNOWN when it is set to something else. */
static int w1_before(const unsigned char *code, size_t at)
{
	size_t from = at > LOOK_BACK * 4 ? at - LOOK_BACK * 4 : 0;

	for (size_t i = at; i > from;) {
		uint32_t word = a64_word(code, i -= 4);

		if (word >> 26 == 0x25) /* bl: what was in w1 is gone, and nobody set it since */
			return TLS_ARGUMENT_NONE;
		if ((word & 0x7fe0001f) == 0x52800001) { /* movz w1, #imm16 */
			uint32_t value = word >> 5 & 0xffff;

			return value <= 1 ? (int)value : TLS_ARGUMENT_UNKNOWN;
		}
		if ((word & 0x7fffffff) == 0x2a1f03e1) /* mov w1, wzr */
			return 0;
		if ((word & 0x1f) == 1 && (word >> 26 & 7) != 5) /* register 1 in anything but a branch */
			return TLS_ARGUMENT_UNKNOWN;
	}
	return TLS_ARGUMENT_NONE;
}

int decode_tls_argument(const unsigned char *code, size_t size, uint64_t addr, uint64_t init)
{
	int found = TLS_ARGUMENT_UNKNOWN;
	bool any = false;

	for (size_t i = 0; i + 4 <= size; i += 4) {
		uint32_t word = a64_word(code, i);
		int value;

		if ((word & 0x7c000000) != 0x14000000) /* b, bl */
			continue;
		if (addr + i + (uint64_t)(a64_signed(word, 0, 26) * 4) != init)
			continue;
		value = w1_before(code, i);
		if (any && value != found)
			return TLS_ARGUMENT_UNKNOWN;
		found = value;
		any = true;
	}
	return found;
}

/* No such loader was seen. */
int decode_tls_argument_of_caller(const struct memory *memory, const unsigned char *code, size_t size, uint64_t addr, uint64_t slot)
{
	(void)memory, (void)code, (void)size, (void)addr, (void)slot;
	return TLS_ARGUMENT_UNKNOWN;
}

/* adrp register, page: the page, 0 = another instruction or another register. */
static uint64_t page_of(uint32_t word, uint64_t addr, uint32_t reg)
{
	if ((word & 0x9f000000) != 0x90000000 || (word & 0x1f) != reg)
		return 0;
	return (addr & ~0xfffull) + (uint64_t)((a64_signed(word, 5, 19) << 2 | (word >> 29 & 3)) * 4096);
}

uint64_t decode_address(const unsigned char *code, size_t size, size_t at, uint64_t addr)
{
	uint32_t add, from;

	if (size - at < 4)
		return 0;
	add = a64_word(code, at);
	from = add >> 5 & 0x1f;
	if ((add & 0xffc00000) != 0x91000000) /* add x, x, #imm12 */
		return 0;
	for (size_t i = at; i >= 4 && at - i < LOOK_BACK * 4;) {
		uint64_t page;

		i -= 4;
		page = page_of(a64_word(code, i), addr + i, from);
		if (page)
			return page + (add >> 10 & 0xfff);
	}
	return 0;
}

bool decode_is_end(const unsigned char *code, size_t size, size_t at)
{
	return size - at >= 4 && a64_word(code, at) == RET;
}

int decode_initialized(const struct memory *memory, uint64_t addr)
{
	unsigned char code[20];
	size_t at = 0;
	uint32_t load, value;
	uint64_t where;

	if (memory_read(memory, addr, code, sizeof code) < 0)
		return -1;
	if (a64_word(code, 0) == BTI_C)
		at = 4;
	where = page_of(a64_word(code, at), addr + at, 0); /* adrp x0, … */
	if (!where)
		return -1;
	load = a64_word(code, at + 4);
	if ((load & 0xffc003ff) == 0xf9400000 && at == 0) { /* ldr x0, [x0, #…]: the table's; then the word itself */
		if (memory_read(memory, where + (load >> 10 & 0xfff) * 8, &where, sizeof where) < 0)
			return -1;
		at += 4;
		load = a64_word(code, at + 4);
	}
	if ((load & 0xffc003ff) != 0xb9400000 || a64_word(code, at + 8) != RET) /* ldr w0, [x0, #…]; ret */
		return -1;
	if (memory_read(memory, where + (load >> 10 & 0xfff) * 4, &value, sizeof value) < 0)
		return -1;
	return value != 0;
}
