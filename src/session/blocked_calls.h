/* System calls as looks see them: of each thread the one that it is blocked in, look after look, until it is found elsewhere. Told as CPU_SYSCALL events with the flag SAMPLED. */
#ifndef INFERSCOPE_SESSION_BLOCKED_CALLS_H
#define INFERSCOPE_SESSION_BLOCKED_CALLS_H

#include "session/descriptors.h"
#include "session/sight.h"
#include "trace/writer.h"

struct blocked_calls;

/* NULL: out of memory. */
struct blocked_calls *blocked_calls_open(const struct procfs *procfs, pid_t pid);
void blocked_calls_close(struct blocked_calls *calls); /* accepts NULL */
/* SIGHT was at TICKS, and stands for WEIGHT_NS. */
void blocked_calls_see(struct blocked_calls *calls, const struct sight *sight, uint64_t ticks, struct event_builder *builder);
/* Tells what is still going on. */
void blocked_calls_end(struct blocked_calls *calls, struct event_builder *builder);

/* "read(socket)", "futex(gil)", "openat": NUMBER with its first argument; GIL: it is a wait for that. */
enum { SYSCALL_LABEL = 64 };
void syscall_label(struct descriptors *descriptors, uint64_t number, uint64_t first, bool gil, char out[SYSCALL_LABEL]);

#endif
