/*
 * One look at the threads of the target: which run and which are blocked, their stacks, and who holds the GIL while others wait for it,
 * as SAMPLE and GIL events. A sample stands for the time since the last look at its thread.
 */
#ifndef INFERSCOPE_SESSION_WATCH_H
#define INFERSCOPE_SESSION_WATCH_H

#include "base/clock.h"
#include "session/census.h"
#include "session/natives.h"

enum { WEIGHT_LOOKS = 10 }; /* a sample stands for as many looks at most */

struct watch {
	struct census *census;
	struct pyreader *reader;
	struct stacks *stacks;
	struct natives *natives;    /* NULL = Python frames only */
	struct event_builder *builder;
	struct clock_map clock;
	bool tsc;
	uint64_t weight_max_ns;     /* a longer time nobody knows */
	struct seen_thread **due;   /* of this look; room for CAPACITY */
	size_t due_count, capacity;
	uint64_t samples, failed;   /* failed: looks that could not read the interpreter */
};

void watch_done(struct watch *watch);
/* Looks once. */
void watch_once(struct watch *watch);

#endif
