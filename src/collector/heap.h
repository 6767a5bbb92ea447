/*
 * What native libraries allocate with libc's functions, or with those of the allocator that stands in for it. heap.c has the functions that count
 * bytes and pass everything on; slots.c puts them where libraries find the addresses of malloc and its kin.
 */
#ifndef INFERSCOPE_COLLECTOR_HEAP_H
#define INFERSCOPE_COLLECTOR_HEAP_H

#include "collector/collector.h"

/* heap.c: ours for the function, to be stored in a slot. Callable for ever once real functions are known. */
uint64_t heap_function(enum heap_function which);

/*
 * slots.c. Not under the GIL, and not in a hook: both take the loader's lock, so that no library goes away meanwhile, and keep other threads from
 * forking. Exchanges what slots there are; those that another tool changed since are left.
 */
void slots_put_in(void);
void slots_take_out(void);
/* The same in a forked child, which has one thread and may take no lock. */
void slots_forked(void);

#endif
