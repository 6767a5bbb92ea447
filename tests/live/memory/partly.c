/* Preloaded: has some of malloc's kin, and not malloc. Blocks of its posix_memalign() lie inside larger ones, and only its free() knows where those begin. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#define MARK 0xfeedfeed12345678u

void __libc_free(void *block);

int posix_memalign(void **out, size_t alignment, size_t size)
{
	char *whole = malloc(size + 2 * alignment + 64);
	uintptr_t *block;

	if (!whole)
		return ENOMEM;
	block = (uintptr_t *)(((uintptr_t)whole + 32 + alignment) & ~(uintptr_t)(alignment - 1));
	block[-1] = MARK;
	block[-2] = (uintptr_t)whole;
	*out = block;
	return 0;
}

void free(void *block)
{
	uintptr_t *words = block;

	if (block && ((uintptr_t)block & 63) == 0 && words[-1] == MARK) {
		words[-1] = 0;
		block = (void *)words[-2];
	}
	__libc_free(block);
}
