/* x86-64's instructions, as far as unwinding and naming look at them. */
#include "unwind/code.h"

#include <stddef.h>
#include <string.h>

#include "unwind/call_site.h"

enum { WORD = 8, LEA_BYTES = 7 };

const struct cfi_row code_called_row = { .cfa_register = DWARF_RSP, .cfa_value = WORD, .rules = { [DWARF_RSP] = CFI_IS, [DWARF_RIP] = CFI_AT }, .values = { [DWARF_RIP] = -WORD } };

/* struct sigcontext: r8 … r15, then the others; in struct ucontext, which lies at the top of the stack in a signal's frame. */
const uint64_t code_signal_offset = 40;
const uint8_t code_signal_order[DWARF_COUNT] = { DWARF_R8, 9, 10, 11, 12, 13, 14, DWARF_R15, DWARF_RDI, DWARF_RSI, DWARF_RBP, DWARF_RBX, DWARF_RDX, DWARF_RAX, DWARF_RCX, DWARF_RSP, DWARF_RIP };

/* A stub of the procedure linkage table, "[endbr64] [bnd] jmp *…(%rip)": reached by a call, has touched nothing. */
bool code_is_linkage_stub(const unsigned char *code)
{
	if (memcmp(code, "\xf3\x0f\x1e\xfa", 4) == 0)
		code += 4;
	if (*code == 0xf2)
		code++;
	return code[0] == 0xff && code[1] == 0x25;
}

/* "mov $15, %rax; syscall": returns from a signal handler (musl and old C libraries have no table for it). */
bool code_is_signal_return(const unsigned char *code)
{
	return memcmp(code, "\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05", 9) == 0;
}

/* lea DISTANCE(%rip),REGISTER at AT: the address it makes. */
bool code_takes_address(const unsigned char *code, size_t size, size_t at, uint64_t addr, uint64_t *out)
{
	int32_t distance;

	if (size - at < LEA_BYTES || (code[at] & 0xfb) != 0x48 || code[at + 1] != 0x8d || (code[at + 2] & 0xc7) != 0x05)
		return false;
	memcpy(&distance, code + at + 3, sizeof distance);
	*out = addr + at + LEA_BYTES + (uint64_t)(int64_t)distance;
	return true;
}

bool code_fills_slot(uint32_t type)
{
	return type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT || type == R_X86_64_IRELATIVE;
}

bool code_stub_slot(const unsigned char *stub, size_t size, uint64_t addr, uint64_t *out)
{
	static const unsigned char endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	size_t at = memcmp(stub, endbr64, sizeof endbr64) == 0 ? sizeof endbr64 : 0;
	int32_t value;

	if (at + 1 < size && stub[at] == 0xf2) /* bnd */
		at++;
	if (at + 6 > size || stub[at] != 0xff || stub[at + 1] != 0x25) /* jmp *value(%rip) */
		return false;
	memcpy(&value, stub + at + 2, sizeof value);
	*out = addr + at + 6 + (uint64_t)(int64_t)value;
	return true;
}

bool code_stub_number(const unsigned char *stub, size_t size, uint64_t *out)
{
	static const unsigned char endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	size_t at = memcmp(stub, endbr64, sizeof endbr64) == 0 ? sizeof endbr64 : 0;
	int32_t value;

	if (at + 1 < size && stub[at] == 0xf2)
		at++;
	if (at + 5 > size || stub[at] != 0x68) /* push $value */
		return false;
	memcpy(&value, stub + at + 1, sizeof value);
	*out = (uint64_t)value;
	return value >= 0;
}

/* Bytes of the instruction "call *…" (FF /2) that CODE begins with, 0 = another one (Intel SDM 2A, 2.1: ModRM, SIB, displacement). */
static size_t indirect_bytes(const unsigned char *code)
{
	size_t prefix = (code[0] & 0xf0) == 0x40; /* REX */
	unsigned char mode, base;

	if (code[prefix] != 0xff || (code[prefix + 1] >> 3 & 7) != 2)
		return 0;
	mode = code[prefix + 1] >> 6;
	base = code[prefix + 1] & 7;
	if (mode == 3)
		return prefix + 2;
	if (base == 4 && mode == 0 && (code[prefix + 2] & 7) == 5)
		return prefix + 7;
	return prefix + 2 + (base == 4) + (mode == 1 ? 1 : mode == 2 || (mode == 0 && base == 5) ? 4 : 0);
}

struct call_site call_site_before(const unsigned char code[CALL_BYTES_MAX], uint64_t ip)
{
	unsigned char room[CALL_BYTES_MAX + 3] = { 0 }; /* a prefix may be looked at, and what follows it, behind the end */
	struct call_site site = { .direct = code[CALL_BYTES_MAX - 5] == 0xe8 };
	int32_t distance;

	memcpy(room, code, CALL_BYTES_MAX);
	for (size_t bytes = 2; bytes <= CALL_BYTES_MAX; bytes++)
		site.indirect |= indirect_bytes(room + CALL_BYTES_MAX - bytes) == bytes;
	memcpy(&distance, code + CALL_BYTES_MAX - sizeof distance, sizeof distance);
	site.target = site.direct ? ip + (uint64_t)(int64_t)distance : 0;
	return site;
}
