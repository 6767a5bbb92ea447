/* Frames of every size, a call that never returns at a function's end, and a call through a pointer. Built without frame pointers, and stripped. */
#include <unistd.h>

#if defined(__clang__)
#define KEPT __attribute__((noinline, optnone))
#else
#define KEPT __attribute__((noipa))
#endif

void library_enter(void (*last)(void), int depth);

static KEPT int use(volatile char *bytes, int size)
{
	for (int i = 0; i < size; i++)
		bytes[i] = (char)i;
	return bytes[size - 1];
}

static KEPT __attribute__((noreturn)) void never_returns(void (*last)(void))
{
	last();
	_exit(3);
}

static KEPT void aligned(void (*last)(void))
{
	char bytes[512] __attribute__((aligned(256)));

	use(bytes, 512);
	never_returns(last);
}

static KEPT int variable(void (*last)(void), int size)
{
	char bytes[size];

	use(bytes, size);
	aligned(last);
	return use(bytes, size);
}

KEPT void library_enter(void (*last)(void), int depth)
{
	char bytes[64];

	use(bytes, 64);
	if (depth > 0)
		library_enter(last, depth - 1);
	else
		variable(last, 100 + depth);
	use(bytes, 64);
}
