/* Any bytes as a library: its tables read, addresses named. The first six bytes are an address of interest; the next two say where its debug file begins, in units of 64 bytes (0: there is none). */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/fuzz/tree.h"
#include "unwind/symfile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEAD = 8, STEP = 24, LOOKS = 32, UNIT = 64 };
#define DEBUG_FILE "lib/fuzz.debug"

static void debug_write(const uint8_t *data, size_t size)
{
	unlinkat(tree_fd, DEBUG_FILE, 0);
	if (size)
		tree_write(DEBUG_FILE, data, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct debug_places places = { .process_root = -1, .own_root = -1, .folder = "/" };
	struct symbol found[SYMBOL_INLINES_MAX];
	struct strings *names;
	struct symfile *file;
	size_t debug;
	uint64_t addr;
	int fd;

	if (size < HEAD)
		return 0;
	memcpy(&addr, data, sizeof addr);
	debug = (size_t)(addr >> 48) * UNIT;
	addr &= (UINT64_C(1) << 48) - 1;
	debug = debug && debug < size ? debug : size;
	tree_make((const char *const[]){ "lib" }, 1);
	debug_write(data + debug, size - debug);
	places.process_root = tree_fd;
	fd = memfd_create("fuzz", MFD_CLOEXEC);
	if (fd < 0 || write(fd, data + HEAD, size - HEAD) != (ssize_t)(size - HEAD))
		abort();
	names = strings_new();
	file = symfile_load(fd, "/lib/fuzz.so", &places, names);
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
