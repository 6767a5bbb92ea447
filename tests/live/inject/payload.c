/* A library to be loaded into a target by tests: its entry counts, works or waits, as its argument says. Needs libc only. */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "payload.h"

#ifdef PAYLOAD_MISSING
extern void a_symbol_that_nobody_has(void);
#endif

static uint64_t calls;

static uint64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* Small blocks: the kind that malloc hands out without locks while it believes in one thread. */
static void work(struct payload_argument *argument)
{
	uint64_t until_us = now_us() + argument->work_us;
	unsigned char *blocks[200];

	do {
		for (int i = 0; i < 200; i++) {
			blocks[i] = malloc(24 + (size_t)(i % 7) * 8);
			memset(blocks[i], i, 24);
		}
		for (int i = 0; i < 200; i++) {
			argument->bad += blocks[i][23] != (unsigned char)i;
			free(blocks[i]);
		}
	} while (now_us() < until_us);
}

__attribute__((visibility("default"))) void payload_entry(struct payload_argument *argument)
{
#ifdef PAYLOAD_MISSING
	a_symbol_that_nobody_has();
#endif
	argument->calls = __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
	if (argument->work_us)
		work(argument);
	if (argument->sleep_ms)
		nanosleep(&(struct timespec){ argument->sleep_ms / 1000, argument->sleep_ms % 1000 * 1000000 }, NULL);
	__atomic_store_n(&argument->done, 1, __ATOMIC_RELEASE);
}
