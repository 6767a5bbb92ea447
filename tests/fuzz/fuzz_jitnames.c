/* Any bytes as perf map and as JIT dump, handed over in two pieces; then addresses are looked up. The first byte says where they are cut. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "unwind/jitnames.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look(struct jitnames *names)
{
	for (size_t i = 0; i < names->entries.count && i < 64; i++) {
		uint64_t start = names->entries.items[i].start;
		const char *name, *file;
		uint32_t line;

		if (jitnames_find(names, start, &name, &file, &line) && (strlen(name) > JIT_NAME_MAX || strlen(file) > JIT_NAME_MAX))
			abort();
		jitnames_find(names, start - 1, &name, &file, &line);
	}
}

static void as_map(const uint8_t *data, size_t size, size_t cut)
{
	struct jitnames names = { .names = strings_new() };
	size_t taken = jitnames_add_map(&names, (const char *)data, cut);

	if (taken > cut)
		abort();
	look(&names);
	if (jitnames_add_map(&names, (const char *)data + taken, size - taken) > size - taken)
		abort();
	look(&names);
	strings_free(names.names);
	jitnames_done(&names);
}

static void as_dump(const uint8_t *data, size_t size, size_t cut)
{
	struct jitnames names = { .names = strings_new() };
	uint64_t at = jitdump_header(data, size);

	if (at <= cut)
		at += jitnames_add_dump(&names, data + at, cut - at);
	look(&names);
	if (at <= size)
		jitnames_add_dump(&names, data + at, size - at);
	look(&names);
	strings_free(names.names);
	jitnames_done(&names);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t cut;

	if (size == 0)
		return 0;
	cut = (size - 1) * data[0] / 255;
	as_map(data + 1, size - 1, cut);
	as_dump(data + 1, size - 1, cut);
	return 0;
}
