/*
 * Which native functions are the interpreter's loop: the one of that name, and what stacks show to run Python frames, as the loop has no name of its own in some builds
 * (Debian's 3.14 and 3.15). Python frames that were read a moment later may seem to be run by another function that stands in their place on the stack of the
 * moment before: beside functions that are known to be the loop, a new one is believed only when it was met so again and again, and hardly ever otherwise.
 */
#ifndef INFERSCOPE_SESSION_LOOPS_H
#define INFERSCOPE_SESSION_LOOPS_H

#include <stdbool.h>
#include <stdint.h>

enum { LOOPS_MAX = 16 };

/* Begins as zeros. Names are compared by address, and must stay. */
struct loops {
	const char *names[LOOPS_MAX];
	uint32_t count;
	struct loop_candidate { const char *name; uint64_t met, missed; } candidates[LOOPS_MAX];
	uint32_t candidate_count;
};

bool loops_have(const struct loops *loops, const char *name);
/* In a stack where Python frames and native ones fit, NAME ran some; ALONE: no function of that stack was known to be the loop. True: it is learned. */
bool loops_met(struct loops *loops, const char *name, bool alone);
/* … and here it ran none. */
void loops_missed(struct loops *loops, const char *name);

#endif
