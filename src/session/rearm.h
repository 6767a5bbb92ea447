/*
 * When a throttled program that has no thread of ours is entered again to turn its hooks on. A first time after a second, in which a window's worth is
 * earned, as a try before that is one for nothing; then every 10 s for as long as nothing in the program turns them on. Plain data that begins as zeros.
 */
#ifndef INFERSCOPE_SESSION_REARM_H
#define INFERSCOPE_SESSION_REARM_H

#include <stdbool.h>
#include <stdint.h>

struct rearm {
	uint64_t due_ns;   /* 0: it is not wanted */
	uint64_t again_ns; /* not before */
};

/* WANTED: at this moment hooks are off, and nobody in there turns them on for certain. True: now is the time. */
bool rearm_due(struct rearm *rearm, bool wanted, uint64_t now_ns);

#endif
