/* What a thread of another process is blocked in, as /proc/PID/task/TID/syscall says: system call, stack pointer, program counter. */
#ifndef INFERSCOPE_SESSION_BLOCK_H
#define INFERSCOPE_SESSION_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/event.h"
#include "base/procfs.h"

enum { BLOCK_NO_CALL = -1 /* a page fault, say */, BLOCK_NOT_TOLD = -2 /* blocked, but the kernel does not say where */ };

struct block { int64_t number; uint64_t argument, sp, pc; };

/* Where the interpreter's state lies: a futex in there is the GIL's. Both 0: not known. */
struct block_runtime { uint64_t start, end; };

/* _PyRuntime at START, SIZE bytes as its symbol has it (0: not told), of the version PYTHON_HEX. */
struct block_runtime block_runtime_at(uint64_t start, uint64_t size, uint32_t python_hex);

enum block_result { BLOCK_GONE = -1, BLOCK_RUNNING = 0, BLOCK_BLOCKED = 1 };
/* What the thread does this moment; *OUT only when it is blocked. */
enum block_result block_read(const struct procfs *procfs, pid_t pid, pid_t tid, struct block *out);
bool block_same(const struct block *a, const struct block *b);
/* "futex", "gil" for the GIL's, "" outside of system calls. */
void block_name(const struct block *block, const struct block_runtime *runtime, char *out, size_t size);
/* What a thread that is blocked there waits for, as far as the call tells. */
enum thread_state block_state(const struct block *block, const struct block_runtime *runtime);

#endif
