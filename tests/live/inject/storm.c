/* Tight native loops for targets.py: threads that are nearly always inside malloc, or inside the loader. Results are checked. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* So that one file serves glibc 2.31 too, where they lie in libdl. */
#ifdef __aarch64__
#define OLDEST_LIBC "GLIBC_2.17"
#else
#define OLDEST_LIBC "GLIBC_2.2.5"
#endif
__asm__(".symver dlopen,dlopen@" OLDEST_LIBC);
__asm__(".symver dlclose,dlclose@" OLDEST_LIBC);

volatile int storm_end;

long storm_malloc(void);
long storm_dlopen(void);

long storm_malloc(void)
{
	unsigned char *blocks[64] = { NULL };
	size_t sizes[64] = { 0 };
	unsigned random = 1;
	long bad = 0;

	while (!storm_end) {
		unsigned k;

		random = random * 1103515245 + 12345;
		k = random >> 16 & 63;
		if (blocks[k])
			bad += blocks[k][0] != (unsigned char)k || blocks[k][sizes[k] - 1] != (unsigned char)k;
		free(blocks[k]);
		sizes[k] = (random >> 8 & 1) ? 24 + (random >> 9 & 63) : 1100 + (random >> 8 & 4095);
		blocks[k] = malloc(sizes[k]);
		memset(blocks[k], (int)k, sizes[k]);
	}
	for (int k = 0; k < 64; k++)
		free(blocks[k]);
	return bad;
}

long storm_dlopen(void)
{
	static const char *const names[] = { "libresolv.so.2", "libanl.so.1", "libnss_compat.so.2", "libnss_hesiod.so.2", "libutil.so.1" };
	long bad = 0;
	unsigned i = 0;

	while (!storm_end) {
		void *library = dlopen(names[i++ % 5], RTLD_NOW | RTLD_LOCAL);

		if (library)
			bad += dlclose(library) != 0;
	}
	return bad;
}
