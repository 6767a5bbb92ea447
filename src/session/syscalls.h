/* Names of the system calls that a thread may be seen waiting in. */
#ifndef INFERSCOPE_SESSION_SYSCALLS_H
#define INFERSCOPE_SESSION_SYSCALLS_H

#include <stddef.h>
#include <stdint.h>

/* "futex"; "syscall_N" for one that never waits. */
void syscall_name(uint64_t number, char *out, size_t size);

#endif
