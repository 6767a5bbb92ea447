/* Names of system calls. */
#ifndef INFERSCOPE_SESSION_SYSCALLS_H
#define INFERSCOPE_SESSION_SYSCALLS_H

#include <stddef.h>
#include <stdint.h>

/* "futex"; "syscall_N" for one that is not known. */
void syscall_name(uint64_t number, char *out, size_t size);

#endif
