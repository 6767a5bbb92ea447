/* How much C stack the calling thread has. */
#ifndef INFERSCOPE_COLLECTOR_STACK_H
#define INFERSCOPE_COLLECTOR_STACK_H

#include <stdint.h>

/* Finds where this libc notes a thread's stack. Call once from a thread made by pthread_create. */
void stack_learn(void);
/* The address half way down the calling thread's stack; a little below here where it is not known. No system call, no allocation. */
uintptr_t stack_floor(void);

#endif
