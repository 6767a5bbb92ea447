/*
 * The one mapping of ours in the target: control page, the raw thread's stack, its TLS image, TCB and DTV.
 *
 *   scratch                                                             scratch + size
 *   | control 4 KiB | stack 256 KiB | static TLS … | TCB 4 KiB | DTV 20 KiB |
 *     stays           given back      given back with glibc's malloc, stays with another (it may keep lists through thread storage)
 */
#ifndef INFERSCOPE_INJECT_SCRATCH_H
#define INFERSCOPE_INJECT_SCRATCH_H

#include "inject/critical.h"
#include "inject/target.h"

struct scratch {
	uint64_t control, size;
	uint64_t stack_top, tcb, dtv;
	uint64_t give_back, give_back_size;
	bool control_mapped; /* an earlier attach's page is used again */
};

/* Lays it out, at AGAIN if that is possible, else at a random place. False: no room. */
bool scratch_plan(const struct target *target, uint64_t again, uint64_t seed, struct scratch *out);
/* Writes the raw thread's TCB and DTV, with what WINDOW saw of the borrowed thread. TID is the raw thread's own. 0 or -1 with errno. */
int scratch_write_thread(const struct target *target, const struct scratch *scratch, const struct window *window, uint32_t tid);

#endif
