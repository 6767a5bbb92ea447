/* Any bytes as a library: its tables read, addresses named. The first eight bytes are an address of interest. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "unwind/symfile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEAD = 8, STEP = 24, LOOKS = 32 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct debug_places nowhere = { .process_root = -1, .own_root = -1, .folder = "/" };
	struct symbol found[SYMBOL_INLINES_MAX];
	struct strings *names;
	struct symfile *file;
	uint64_t addr;
	int fd;

	if (size < HEAD)
		return 0;
	memcpy(&addr, data, sizeof addr);
	fd = memfd_create("fuzz", MFD_CLOEXEC);
	if (fd < 0 || write(fd, data + HEAD, size - HEAD) != (ssize_t)(size - HEAD))
		abort();
	names = strings_new();
	file = symfile_load(fd, "/lib/fuzz.so", &nowhere, names);
	for (int i = 0; file && i < LOOKS; i++) {
		size_t count = symfile_find(file, addr + (uint64_t)i * STEP, found);

		if (count < 1 || count > SYMBOL_INLINES_MAX || !found[count - 1].name[0] || found[count - 1].inlined)
			abort();
	}
	if (file && !symfile_source(file)[0])
		abort();
	symfile_free(file);
	strings_free(names);
	close(fd);
	return 0;
}
