#include "unwind/call_site.h"

#include <stddef.h>
#include <string.h>

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
