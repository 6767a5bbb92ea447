/* x86-64's instructions: short, well-known sequences; whatever does not match exactly is "unknown", never a guess. */
#include "inject/decode.h"

#include <string.h>

#define LOOK_BACK 24 /* bytes before the call in which the argument is set: a handful of moves */

static int32_t signed32(const unsigned char *bytes)
{
	int32_t value;

	memcpy(&value, bytes, sizeof value);
	return value;
}

/* The last setting of esi before CODE[AT]: 0, 1, TLS_ARGUMENT_NONE, or TLS_ARGUMENT_UNKNOWN when it is set to something else. */
static int esi_before(const unsigned char *code, size_t at)
{
	size_t from = at > LOOK_BACK ? at - LOOK_BACK : 0;

	for (size_t i = at; i-- > from;) {
		if (code[i] == 0xbe && i + 5 <= at) { /* mov esi, imm32 */
			int32_t value = signed32(code + i + 1);

			return value == 0 || value == 1 ? value : TLS_ARGUMENT_UNKNOWN;
		}
		if (code[i] == 0x31 && i + 2 <= at && code[i + 1] == 0xf6) /* xor esi, esi */
			return 0;
	}
	return TLS_ARGUMENT_NONE;
}

int decode_tls_argument(const unsigned char *code, size_t size, uint64_t addr, uint64_t init)
{
	int found = TLS_ARGUMENT_UNKNOWN;
	bool any = false;

	for (size_t i = 0; i + 5 <= size; i++) {
		int value;

		if (code[i] != 0xe8 && code[i] != 0xe9) /* call or jmp rel32 */
			continue;
		if (addr + i + 5 + (uint64_t)(int64_t)signed32(code + i + 1) != init)
			continue;
		value = esi_before(code, i);
		if (any && value != found)
			return TLS_ARGUMENT_UNKNOWN;
		found = value;
		any = true;
	}
	return found;
}

/* Is this one that jumps to where SLOT says: [endbr64] [bnd] jmp *slot(%rip)? */
static bool leads_through(const struct memory *memory, uint64_t addr, uint64_t slot)
{
	unsigned char code[16];
	size_t at = 0;

	if (memory_read(memory, addr, code, sizeof code) < 0)
		return false;
	if (memcmp(code, "\xf3\x0f\x1e\xfa", 4) == 0)
		at += 4;
	if (code[at] == 0xf2)
		at++;
	return code[at] == 0xff && code[at + 1] == 0x25 && addr + at + 6 + (uint64_t)(int64_t)signed32(code + at + 2) == slot;
}

/* mov reg, %rdi that ends at END. */
static bool sets_rdi(const unsigned char *code, size_t end)
{
	return end >= 3 && (code[end - 3] == 0x48 || code[end - 3] == 0x4c) && code[end - 2] == 0x89 && (code[end - 1] & 0xc7) == 0xc7;
}

/* xor %esi, %esi or mov imm32, %esi that ends at END: its length, 0 = another instruction. */
static size_t sets_esi(const unsigned char *code, size_t end, int *value)
{
	if (end >= 2 && code[end - 2] == 0x31 && code[end - 1] == 0xf6) {
		*value = 0;
		return 2;
	}
	if (end < 5 || code[end - 5] != 0xbe)
		return 0;
	*value = signed32(code + end - 4);
	return 5;
}

/* The two arguments are set by the last two instructions before the call at CODE[AT], in either order. */
static int arguments_before(const unsigned char *code, size_t at)
{
	int value = TLS_ARGUMENT_UNKNOWN;
	size_t length;
	bool both;

	if (sets_rdi(code, at)) {
		both = sets_esi(code, at - 3, &value) != 0;
	} else {
		length = sets_esi(code, at, &value);
		both = length && sets_rdi(code, at - length);
	}
	return both && (value == 0 || value == 1) ? value : TLS_ARGUMENT_UNKNOWN;
}

int decode_tls_argument_of_caller(const struct memory *memory, const unsigned char *code, size_t size, uint64_t addr, uint64_t slot)
{
	int found = TLS_ARGUMENT_UNKNOWN;
	bool any = false;

	for (size_t i = 0; i + 6 <= size; i++) {
		bool direct = code[i] == 0xff && code[i + 1] == 0x15 && addr + i + 6 + (uint64_t)(int64_t)signed32(code + i + 2) == slot; /* call *slot(%rip) */
		int value;

		if (!direct && (code[i] != 0xe8 || !leads_through(memory, addr + i + 5 + (uint64_t)(int64_t)signed32(code + i + 1), slot)))
			continue;
		value = arguments_before(code, i);
		if (any && value != found)
			return TLS_ARGUMENT_UNKNOWN;
		found = value;
		any = true;
	}
	return found;
}

uint64_t decode_address(const unsigned char *code, size_t size, size_t at, uint64_t addr)
{
	const unsigned char *c = code + at;
	size_t rest = size - at;

	if (rest >= 7 && (c[0] == 0x48 || c[0] == 0x4c) && c[1] == 0x8d && (c[2] & 0xc7) == 0x05) /* lea reg, [rip + disp32] */
		return addr + at + 7 + (uint64_t)(int64_t)signed32(c + 3);
	if (rest >= 5 && c[0] >= 0xb8 && c[0] <= 0xbf) /* mov r32, imm32: non-PIE programs */
		return (uint32_t)signed32(c + 1);
	if (rest >= 7 && c[0] == 0x48 && c[1] == 0xc7 && (c[2] & 0xf8) == 0xc0) /* mov r64, simm32 */
		return (uint64_t)(int64_t)signed32(c + 3);
	return 0;
}

bool decode_is_end(const unsigned char *code, size_t size, size_t at)
{
	/* ret and padding */
	return code[at] == 0xc3 && at + 1 < size && (code[at + 1] == 0xcc || code[at + 1] == 0x90 || code[at + 1] == 0x66 || code[at + 1] == 0x0f);
}

int decode_initialized(const struct memory *memory, uint64_t addr)
{
	unsigned char code[32];
	size_t at = 0;
	uint64_t where;
	uint32_t value;

	if (memory_read(memory, addr, code, sizeof code) < 0)
		return -1;
	if (memcmp(code, "\xf3\x0f\x1e\xfa", 4) == 0) /* endbr64 */
		at = 4;
	if (code[at] == 0x8b && code[at + 1] == 0x05 && code[at + 6] == 0xc3) { /* mov eax, [rip + x]; ret */
		where = addr + at + 6 + (uint64_t)(int64_t)signed32(code + at + 2);
	} else if (memcmp(code + at, "\x48\x8b\x05", 3) == 0 && code[at + 7] == 0x8b && code[at + 8] == 0x40 && code[at + 10] == 0xc3) {
		/* mov rax, [rip + got]; mov eax, [rax + x]; ret */
		if (memory_read(memory, addr + at + 7 + (uint64_t)(int64_t)signed32(code + at + 3), &where, sizeof where) < 0)
			return -1;
		where += (uint64_t)(int64_t)(signed char)code[at + 9];
	} else if (memcmp(code + at, "\x48\x8b\x05", 3) == 0 && code[at + 7] == 0x8b && code[at + 8] == 0x80 && code[at + 13] == 0xc3) {
		/* the same with a large offset: 3.13 */
		if (memory_read(memory, addr + at + 7 + (uint64_t)(int64_t)signed32(code + at + 3), &where, sizeof where) < 0)
			return -1;
		where += (uint64_t)(int64_t)signed32(code + at + 9);
	} else {
		return -1;
	}
	if (memory_read(memory, where, &value, sizeof value) < 0)
		return -1;
	return value != 0;
}
