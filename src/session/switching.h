/*
 * How much longer a switch of threads takes here with events of perf_event: two threads of ours pass a byte to and fro on one CPU, without and with them. Threads
 * that never had one: the kernel keeps something of each (Linux 6.18).
 */
#ifndef INFERSCOPE_SESSION_SWITCHING_H
#define INFERSCOPE_SESSION_SWITCHING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* What makes switches take longer. */
struct switching_load {
	bool (*add)(void *context, const pid_t tids[2], int round); /* to both threads; called by the first one; false: it could not be, and nothing was */
	void (*remove)(void *context);
	void *context;
	int rounds; /* with something else each time; what they say is averaged */
};

/* How much longer one takes with it, in ns, as cold_ns() has it. 0: nothing to be told from none, or it could not be measured. */
uint64_t switching_extra_ns(const struct switching_load *load);

#endif
