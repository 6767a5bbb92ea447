/* The double of CUPTI's strings: names of kernels, devices and ranges. */
#include "profiler.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { NAMES_BYTES = 1 << 20, NAMES_MAX = 4096 };

static struct {
	char *bytes;
	size_t used, count;
	struct {
		const char *key, *text;
	} known[NAMES_MAX];
} names;

/* Names lie in memory of their own, so that a pointer kept for longer than the session is a crash. TEXT is a name of the driver. */
const char *name_keep(const char *text)
{
	size_t length = strlen(text) + 1;

	for (size_t i = 0; i < names.count; i++)
		if (names.known[i].key == text)
			return names.known[i].text;
	if (!names.bytes && (names.bytes = mmap(NULL, NAMES_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) == MAP_FAILED)
		abort();
	if (names.count == NAMES_MAX || names.used + length > NAMES_BYTES)
		return "too many names";
	names.known[names.count].key = text;
	names.known[names.count++].text = memcpy(names.bytes + names.used, text, length);
	names.used += length;
	return names.known[names.count - 1].text;
}

void names_forget(void)
{
	if (names.bytes)
		mprotect(names.bytes, NAMES_BYTES, PROT_NONE);
	names.bytes = NULL;
	names.used = names.count = 0;
}
