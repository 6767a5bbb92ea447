/*
 * Stacks and functions of samples, each named once: CODE and STACK events. Ids begin at SAMPLER_FIRST_ID, beyond those of the collector.
 */
#ifndef INFERSCOPE_SESSION_STACKS_H
#define INFERSCOPE_SESSION_STACKS_H

#include "trace/writer.h"
#include "unwind/pystack.h"
#include "unwind/symbols.h"

enum { SAMPLER_FIRST_ID = 0x40000000 };

struct stacks;

/* READER and BUILDER stay the caller's and must outlive it; events of what is new go to BUILDER. */
int stacks_open(struct pyreader *reader, struct event_builder *builder, struct stacks **out, struct error *err);
void stacks_close(struct stacks *stacks);
/* The time of the events to come. */
void stacks_time(struct stacks *stacks, uint64_t ticks);
/* The id of the function at this address, 0 when there can be no more; the stamp changes when another one has taken the address. */
uint32_t stacks_code(struct stacks *stacks, uint64_t address, uint32_t stamp);
/* The id of a stack of Python frames alone, 0 for none. */
uint32_t stacks_python(struct stacks *stacks, const struct pystack *stack);
/* Stacks frame by frame, outermost first: the id of the stack that has one more frame than PARENT (0 = empty). PARENT itself when there can be no more. */
uint32_t stacks_push_python(struct stacks *stacks, uint32_t parent, uint64_t code, uint32_t stamp);
uint32_t stacks_push_native(struct stacks *stacks, uint32_t parent, uint32_t native);
/* Frames that could not be pushed. */
uint64_t stacks_left_out(const struct stacks *stacks);
/* The id of a native function: one for each name, file and module (NULL = in none). SYMBOL's strings are told apart by their address, which lives on. */
uint32_t stacks_native(struct stacks *stacks, const struct symbol *symbol, const struct module *module, uint64_t address);
/* A function of MODULE has no name: what names of it come from is told, once for each file. */
void stacks_unnamed(struct stacks *stacks, const struct module *module, const char *source);

#endif
