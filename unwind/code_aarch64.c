/* aarch64's instructions, as far as unwinding and naming look at them. */
#include "unwind/code.h"

#include <stddef.h>

#include "base/a64.h"
#include "unwind/call_site.h"

enum { SCRATCH = 16, LOOK_BACK = 16 /* instructions between the two that make an address */ };

/* The return address is in its register, and nothing is on the stack. */
const struct cfi_row code_called_row = { .cfa_register = DWARF_SP, .rules = { [DWARF_SP] = CFI_IS } };

/* struct rt_sigframe: siginfo (128 bytes), ucontext, whose uc_mcontext (at 176) has the fault's address before these. */
const uint64_t code_signal_offset = 128 + 176 + 8;
const uint8_t code_signal_order[DWARF_COUNT] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, DWARF_SP, DWARF_PC };

/* adrp register, page. */
static bool is_page(uint32_t word, uint64_t addr, uint32_t reg, uint64_t *out)
{
	if ((word & 0x9f000000) != 0x90000000 || (word & 0x1f) != reg)
		return false;
	*out = (addr & ~0xfffull) + (uint64_t)((a64_signed(word, 5, 19) << 2 | (word >> 29 & 3)) * 4096);
	return true;
}

/* "[bti c] adrp x16, …; ldr x17, [x16, …]; add x16, …; br x17" */
bool code_stub_slot(const unsigned char *stub, size_t size, uint64_t addr, uint64_t *out)
{
	size_t at = size >= 4 && a64_word(stub, 0) == 0xd503245f ? 4 : 0;
	uint64_t page;

	if (at + 8 > size || !is_page(a64_word(stub, at), addr + at, SCRATCH, &page) || (a64_word(stub, at + 4) & 0xffc003ff) != 0xf9400211)
		return false;
	*out = page + (a64_word(stub, at + 4) >> 10 & 0xfff) * 8;
	return true;
}

bool code_stub_number(const unsigned char *stub, size_t size, uint64_t *out)
{
	return false; /* they push none here */
}

bool code_is_linkage_stub(const unsigned char *code)
{
	uint64_t slot;

	return code_stub_slot(code, 16, 0, &slot);
}

/* "mov x8, #139; svc #0" */
bool code_is_signal_return(const unsigned char *code)
{
	return a64_word(code, 0) == 0xd2801168 && a64_word(code, 4) == 0xd4000001;
}

/* "add x, x, #…", and before it the adrp whose page it completes. */
bool code_takes_address(const unsigned char *code, size_t size, size_t at, uint64_t addr, uint64_t *out)
{
	uint32_t add = size - at < 4 ? 0 : a64_word(code, at);
	uint64_t page;

	if ((add & 0xffc00000) != 0x91000000)
		return false;
	for (size_t i = at; i >= 4 && at - i < LOOK_BACK * 4;) {
		i -= 4;
		if (!is_page(a64_word(code, i), addr + i, add >> 5 & 0x1f, &page))
			continue;
		*out = page + (add >> 10 & 0xfff);
		return true;
	}
	return false;
}

bool code_fills_slot(uint32_t type)
{
	return type == R_AARCH64_JUMP_SLOT || type == R_AARCH64_GLOB_DAT || type == R_AARCH64_IRELATIVE;
}

struct call_site call_site_before(const unsigned char code[CALL_BYTES_MAX], uint64_t ip)
{
	uint32_t word = a64_word(code, CALL_BYTES_MAX - 4);
	struct call_site site = { .direct = word >> 26 == 0x25, .indirect = (word & 0xfffffc1f) == 0xd63f0000 };

	site.target = site.direct ? ip - 4 + (uint64_t)(a64_signed(word, 0, 26) * 4) : 0;
	return site;
}
