/* Questions about system calls and the stacks that made them. */
#ifndef INFERSCOPE_ANALYZE_SYSCALLS_H
#define INFERSCOPE_ANALYZE_SYSCALLS_H

#include "timeline/timeline.h"

/* Was it made in a callback of an asyncio event loop, which stood still meanwhile? Waiting for the GIL is another matter. */
bool syscall_blocks_loop(const struct timeline *timeline, const struct syscall_site *site);

#endif
