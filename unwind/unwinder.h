/* libunwind over a copy of a thread, with tables that were looked at before. For walk.c alone. */
#ifndef INFERSCOPE_UNWIND_UNWINDER_H
#define INFERSCOPE_UNWIND_UNWINDER_H

#include "unwind/tables.h"
#include "unwind/walk.h"

struct unwinder;

/* READ reads the walk's memory: 0 or -1. NULL when memory is short. */
struct unwinder *unwinder_new(const struct modules *modules, struct tables *tables, int (*read)(void *context, uint64_t addr, void *buffer, size_t size), void *context);
void unwinder_free(struct unwinder *unwinder);
/* What it remembers of tables is void. */
void unwinder_forget(struct unwinder *unwinder);
/* Walks as far as it can: true when it came to the last frame or filled OUT; false: OUT has the frames that were found (0 or more). */
bool unwinder_walk(struct unwinder *unwinder, const struct thread_copy *copy, struct native_stack *out);

#endif
