/*
 * Which Python functions ran at the moment of a copy, where their frames could only be read a little later: the interpreter's loop keeps the address of the
 * instruction it is at in a register or on its stack, and both are in the copy. Who called whom within one call of the loop (3.11 and later) is remembered from
 * frames that were read before.
 */
#ifndef INFERSCOPE_UNWIND_PYMOMENT_H
#define INFERSCOPE_UNWIND_PYMOMENT_H

#include "unwind/join.h"

struct pymoment;

/* READER stays the caller's and must outlive it. ERR_MEMORY. */
int pymoment_open(struct pyreader *reader, struct pymoment **out, struct error *err);
void pymoment_close(struct pymoment *moment); /* accepts NULL */
/* Remembers the functions of STACK, and who called whom. */
void pymoment_learn(struct pymoment *moment, const struct pystack *stack);
/* The Python stack of the moment when COPY was taken, which was walked to NATIVE; LATER is what was read afterwards (of no frames but with its tid: nothing could be), RULES says from where on nothing
 * had changed by then. Its frames have no addresses and no lines. False, and OUT is of no use: it cannot be told for certain. */
bool pymoment_stack(struct pymoment *moment, const struct thread_copy *copy, const struct native_stack *native, const struct join_rules *rules, const struct pystack *later, struct pystack *out);

#endif
