/* Any bytes as an ELF file that a process has mapped, and that lies: looked at, symbols looked for by whatever hash tables it claims to have. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "inject/image.h"

enum { PLACE = 0x10000 /* where it is mapped: its memory is read from a file, by address */ };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_up(const struct image *image)
{
	static const char *const names[] = { "malloc", "Py_GetVersion", "gnu_get_libc_version", "a", "" };

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		uint64_t addr = image_symbol(image, names[i], NULL);

		if (addr && !image_has(image, addr))
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct memory memory = { .fd = fd };
	struct mapping mapping = { .start = PLACE, .end = PLACE + size, .path = "/lib/fuzz.so" };
	uint8_t elf_class;
	uint16_t machine;
	struct image image;

	if (fd < 0 || pwrite(fd, data, size, PLACE) != (ssize_t)size)
		abort();
	image_is_elf(&memory, PLACE, &elf_class, &machine);
	if (image_open(&memory, NULL, &mapping, &image)) {
		if (image.segment_count > IMAGE_MAX_SEGMENTS || image.low > image.high || strlen(image.soname) >= sizeof image.soname || strlen(image.build_id) >= sizeof image.build_id)
			abort();
		look_up(&image);
	}
	close(fd);
	return 0;
}
