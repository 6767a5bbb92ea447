/*
 * Stacks and functions of samples, each named once: CODE and STACK events. Ids begin at SAMPLER_FIRST_ID, beyond those of the collector.
 */
#ifndef INFERSCOPE_SESSION_STACKS_H
#define INFERSCOPE_SESSION_STACKS_H

#include "trace/writer.h"
#include "unwind/pystack.h"

enum { SAMPLER_FIRST_ID = 0x40000000 };

struct stacks;

/* READER and BUILDER stay the caller's and must outlive it; events of what is new go to BUILDER. */
int stacks_open(struct pyreader *reader, struct event_builder *builder, struct stacks **out, struct error *err);
void stacks_close(struct stacks *stacks);
/* The time of the events to come. */
void stacks_time(struct stacks *stacks, uint64_t ticks);
/* The id of a stack of Python frames alone, 0 for none. */
uint32_t stacks_python(struct stacks *stacks, const struct pystack *stack);

#endif
