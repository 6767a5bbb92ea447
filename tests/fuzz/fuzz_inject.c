/* What entering reads of a process that may lie: its maps, its threads' system calls, notes, code bytes, seccomp filters. */
/* folders: src/base inject/decode.c inject/image.c inject/memory.c inject/resume.c inject/seccomp.c inject/threads.c */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mappings.h"
#include "inject/decode.h"
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
	seccomp_judge(filter, count, 0x1000, 0x3d0f00, &nr);
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
	free(text);
	return 0;
}
