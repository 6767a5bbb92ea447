/*
 * Samples of the Python stacks of all threads, read from the target's memory without stopping it. Stacks and functions get ids
 * from SAMPLER_FIRST_ID on, beyond those of the collector.
 */
#ifndef INFERSCOPE_SESSION_STACKS_H
#define INFERSCOPE_SESSION_STACKS_H

#include "session/observe.h"
#include "unwind/pystack.h"

enum { SAMPLER_FIRST_ID = 0x40000000 };

struct stacks;

/* READER and OBSERVE stay the caller's and must outlive it. */
int stacks_open(struct pyreader *reader, const struct observe *observe, struct stacks **out, struct error *err);
void stacks_close(struct stacks *stacks);
/* One look at TICKS: SAMPLE events that stand for WEIGHT_NS each, and CODE and STACK for what is new. Returns the threads seen, -1 when
 * the interpreter could not be read now. */
int stacks_sample(struct stacks *stacks, uint64_t ticks, uint64_t weight_ns, struct event_builder *builder);
uint64_t stacks_count(const struct stacks *stacks);

#endif
