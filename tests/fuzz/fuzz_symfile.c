/* Any bytes as a library: its tables read, addresses named. The first six bytes are an address of interest; the next two say where its debug file begins, in units of 64 bytes (0: there is none). */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unwind/symfile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEAD = 8, STEP = 24, LOOKS = 32, UNIT = 64 };
#define DEBUG_FILE "lib/fuzz.debug"

static char root[64];
static int root_fd = -1;

static void folder_remove(void)
{
	unlinkat(root_fd, DEBUG_FILE, 0);
	unlinkat(root_fd, "lib", AT_REMOVEDIR);
	rmdir(root);
}

static void folder_make(void)
{
	if (root_fd >= 0)
		return;
	snprintf(root, sizeof root, "/dev/shm/fuzz_symfile.XXXXXX");
	if (!mkdtemp(root) || (root_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0 || mkdirat(root_fd, "lib", 0700) < 0)
		abort();
	atexit(folder_remove);
}

static void debug_write(const uint8_t *data, size_t size)
{
	int fd;

	unlinkat(root_fd, DEBUG_FILE, 0);
	if (!size)
		return;
	fd = openat(root_fd, DEBUG_FILE, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	close(fd);
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
	folder_make();
	debug_write(data + debug, size - debug);
	places.process_root = root_fd;
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
