/* What the attacher (hold.c) and the small process (holder.c) share. */
#ifndef INFERSCOPE_INJECT_HOLDER_H
#define INFERSCOPE_INJECT_HOLDER_H

#include "inject/hold.h"

/* A shared mapping, locked in memory. */
struct hold_page {
	/* The attacher's. */
	uint32_t asked; /* futex: counts questions */
	pid_t tid;
	bool force;
	uint32_t timeout_ms; /* for a thread to stop; and for one that has, to be let go */

	/* The holder's. */
	uint32_t answered; /* futex: the question that was answered last */
	int result;        /* enum hold_result */
	bool leaving; /* ends after this answer: only its death lets go of what it has */
	volatile bool held;
	volatile uint64_t interrupted_ns;
	struct hold_copy copy;
};

struct hold_work {
	struct hold_page *page;
	const struct target *target;
	hold_extra extra;
	void *context;
	pid_t parent;
};

/* What the forked child does. Never returns. */
void holder_process(const struct hold_work *work) __attribute__((noreturn));

#endif
