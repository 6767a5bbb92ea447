/* Threads of our own in the target, and words that they wait for. */
#ifndef INFERSCOPE_COLLECTOR_THREAD_H
#define INFERSCOPE_COLLECTOR_THREAD_H

#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "collector/libc.h"

/* It gets no signal of the target: the mask of who makes it, all blocked for as long, is inherited. False: there is none. */
static inline bool thread_start(pthread_t *thread, void *(*run)(void *), size_t stack_bytes)
{
	pthread_attr_t attributes;
	sigset_t all, before;
	bool made;

	if (pthread_attr_init(&attributes))
		return false;
	pthread_attr_setstacksize(&attributes, stack_bytes);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	made = !pthread_create(thread, &attributes, run, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return made;
}

/* Until somebody wakes it, a signal comes, or NS are over; not at all where WORD is not VALUE. */
static inline void futex_wait(uint32_t *word, uint32_t value, uint64_t ns)
{
	struct timespec timeout = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};

	syscall(SYS_futex, word, FUTEX_WAIT, value, &timeout, NULL, 0);
}

static inline void futex_tell(uint32_t *word, uint32_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

#endif
