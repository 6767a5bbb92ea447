/* What entering reads of a process that may lie: its maps, its threads' system calls, notes, code bytes, relocations, seccomp filters. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mappings.h"
#include "inject/decode.h"
#include "inject/got.h"
#include "inject/image.h"
#include "inject/seccomp.h"
#include "inject/threads.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_maps(const char *text, size_t size)
{
	struct maps maps;

	if (maps_parse(text, size, &maps) < 0)
		return;
	for (size_t i = 0; i < maps.count; i++) {
		if (maps.list[i].start >= maps.list[i].end || (i && maps.list[i].start < maps.list[i - 1].end))
			abort();
		if (maps_find(&maps, maps.list[i].start) != &maps.list[i] || maps_free(&maps, maps.list[i].start, 1))
			abort();
	}
	for (uint64_t seed = 1; seed < 1ull << 50; seed *= 977) {
		uint64_t gap = maps_gap(&maps, 0x80000, seed);

		if (gap && !maps_free(&maps, gap, 0x80000))
			abort();
	}
	maps_done(&maps);
}

static void fuzz_filter(const uint8_t *data, size_t size)
{
	struct sock_filter filter[64];
	size_t count = size / sizeof *filter;
	int nr;

	if (count > 64)
		count = 64;
	memcpy(filter, data, count * sizeof *filter);
	seccomp_judge(filter, count, 0x1000, 0x3d0f00, true, &nr);
}

/* A library that begins with where its own tables are, and how large; all of it may be written. */
static void fuzz_slots(const uint8_t *data, size_t size)
{
	static const char *const names[] = { "malloc", "free" };
	uint64_t base = (uint64_t)(uintptr_t)data;
	struct image image = { .memory = { .pid = getpid() }, .base = base, .bias = base, .low = base, .high = base + size, .segment_count = 1 };
	uint16_t words[8];
	struct got got = { 0 };
	bool read_only = false;

	if (size < sizeof words)
		return;
	memcpy(words, data, sizeof words);
	image.segments[0] = (struct image_segment){ base, base + size, words[7] & 1, true };
	image.symtab = base + words[0];
	image.strtab = base + words[1];
	image.strtab_size = words[2];
	image.jmprel = base + words[3];
	image.jmprel_size = image.rela_size = (uint64_t)words[4] << (words[7] >> 10);
	image.rela = base + words[5];
	image.relro_start = base;
	image.relro_end = base + words[6];
	if (!got_read(&image, names, 2, &got, &read_only))
		abort();
	for (size_t i = 0; i < got.slots.count; i++)
		if (got.slots.items[i].at < base || got.slots.items[i].at > base + size - 8 || got.slots.items[i].name > 1)
			abort();
	got_done(&got);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), id[64];
	struct candidate candidate = { 0 };
	int major, minor, micro, argument;
	uint32_t hex;

	if (!text)
		return 0;
	if (size)
		memcpy(text, data, size);
	text[size] = '\0';
	fuzz_maps(text, size);
	thread_classify(text, &candidate);
	decode_python_version(text, &major, &minor, &micro, &hex);
	argument = decode_tls_argument(data, size, 0x1000, 0x1010);
	if (argument != 0 && argument != 1 && argument != TLS_ARGUMENT_NONE && argument != TLS_ARGUMENT_UNKNOWN)
		abort();
	for (size_t at = 0; at < size; at++)
		decode_address(data, size, at, 0x1000);
	image_build_id_of(data, size, id, sizeof id);
	if (strlen(id) >= sizeof id)
		abort();
	fuzz_filter(data, size);
	fuzz_slots(data, size);
	free(text);
	return 0;
}
