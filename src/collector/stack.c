/*
 * A thread's stack bounds without system calls or allocation (pthread_getattr_np reads /proc/self/maps for the main thread and
 * allocates for all). struct pthread holds the block's address and size side by side, at an offset that differs between
 * glibc versions: the entry thread knows its own bounds from pthread_getattr_np, and looks where they stand in itself.
 */
#include "collector/stack.h"

#include <string.h>
#include <sys/resource.h>

#include "collector/collector.h"
#include "collector/libc.h"

/* Our share of what is used: a fifth, so that a sixteenth of a stack costs a program that needs all of it 1 % (3.8-3.10; measured by case_stack_is_left). */
enum { PTHREAD_WORDS = 2048 / 8, REACH = 16, UNKNOWN_REACH = 8 * 1024 };

void stack_learn(void)
{
	const uintptr_t *words = (const uintptr_t *)pthread_self();
	struct rlimit limit;
	pthread_attr_t attributes;
	void *low = NULL, **end;
	size_t size = 0;

	end = dlsym(RTLD_DEFAULT, "__libc_stack_end");
	the.stack.main_top = end ? (uintptr_t)*end : 0;
	the.stack.main_size = !getrlimit(RLIMIT_STACK, &limit) && limit.rlim_cur != RLIM_INFINITY ? limit.rlim_cur : 8u << 20;
	the.stack.block_word = -1;
	if (pthread_getattr_np(pthread_self(), &attributes))
		return;
	if (!pthread_attr_getstack(&attributes, &low, &size))
		for (int i = 16; i < PTHREAD_WORDS - 1; i++) /* the block includes the guard, the answer does not */
			if (words[i] && words[i] <= (uintptr_t)low && words[i + 1] < (uintptr_t)1 << 40 && words[i] + words[i + 1] == (uintptr_t)low + size) {
				the.stack.block_word = i;
				break;
			}
	pthread_attr_destroy(&attributes);
}

uintptr_t stack_floor(void)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);
	const uintptr_t *words = (const uintptr_t *)pthread_self();
	int at = the.stack.block_word;

	if (at >= 0 && words[at]) {
		uintptr_t low = words[at], size = words[at + 1];

		if (here > low && here <= low + size)
			return low + size - size / REACH;
	}
	if (the.stack.main_top && here <= the.stack.main_top && the.stack.main_top - here < the.stack.main_size)
		return the.stack.main_top - the.stack.main_size / REACH;
	return here - UNKNOWN_REACH; /* a stack that somebody else made: a little growth only */
}
