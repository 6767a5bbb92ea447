/* What a few functions of the target refer to; the instructions are the machine's (code_*.c). */
#include "inject/decode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* digit+ . digit+ [. digit+ …] */
static bool looks_like_version(const char *text)
{
	size_t major = strspn(text, "0123456789"), minor;

	if (major == 0 || major > 2 || text[major] != '.')
		return false;
	minor = strspn(text + major + 1, "0123456789");
	return minor > 0 && minor <= 3 && strlen(text) < 32;
}

bool decode_version(const struct memory *memory, uint64_t addr, char *out, size_t out_size)
{
	unsigned char code[192];
	size_t size = sizeof code;

	out[0] = '\0';
	/* The function may be the last thing before the end of a mapping. */
	while (size >= 32 && memory_read(memory, addr, code, size) < 0)
		size /= 2;
	for (size_t at = 0; size >= 32 && at < size; at += DECODE_STEP) {
		uint64_t where;
		char text[64];

		if (decode_is_end(code, size, at))
			break;
		where = decode_address(code, size, at, addr);
		if (where < 4096 || memory_read_string(memory, where, text, sizeof text) < 0)
			continue;
		text[strcspn(text, " ")] = '\0'; /* or the finished "3.13.5 (main, …)" */
		if (!looks_like_version(text))
			continue;
		snprintf(out, out_size, "%s", text);
		return true;
	}
	return false;
}

bool decode_python_version(const char *text, int *major, int *minor, int *micro, uint32_t *hex)
{
	uint32_t level = 0xf, serial = 0;
	char *end;

	*major = (int)strtol(text, &end, 10);
	if (end == text || *end != '.')
		return false;
	text = end + 1;
	*minor = (int)strtol(text, &end, 10);
	if (end == text || *minor < 0 || *minor > 255)
		return false;
	*micro = -1;
	if (*end == '.') {
		text = end + 1;
		*micro = (int)strtol(text, &end, 10);
		if (end == text || *micro < 0 || *micro > 255)
			*micro = -1;
	}
	if (*end == 'a' || *end == 'b' || (*end == 'r' && end[1] == 'c')) {
		level = *end == 'a' ? 0xa : *end == 'b' ? 0xb : 0xc;
		end += *end == 'r' ? 2 : 1;
		serial = (uint32_t)strtol(end, NULL, 10) & 0xf;
	}
	*hex = (uint32_t)*major << 24 | (uint32_t)*minor << 16 | (uint32_t)(*micro < 0 ? 0 : *micro) << 8 | level << 4 | serial;
	return true;
}
