/*
 * How the borrowed thread goes on: which instruction, with which result of the system call it was in. The kernel would do this by
 * itself on a plain release; after our stub it is ours to do, exactly. Pure arithmetic on registers, for every system call there is.
 */
#ifndef INFERSCOPE_INJECT_RESUME_H
#define INFERSCOPE_INJECT_RESUME_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "inject/machine.h"

/* What a thread does, as far as stopping it matters; better ones first. */
enum thread_kind {
	THREAD_BLOCKED,         /* in a system call that the kernel restarts exactly */
	THREAD_RUNNING,
	THREAD_PRONE_INFINITE,  /* in a call that says EINTR after a stop, or that it did a part, without time limit: gone on with by us, exactly */
	THREAD_PRONE_FINITE,    /* the same with a time limit: restarted with what is left, as far as known */
	THREAD_UNKNOWN,         /* in a call that nobody tried: not borrowed */
	THREAD_UNFIT,           /* never */
};

/* The kind of a thread blocked in system call NR with arguments ARGS; *timeout_ms its limit where it is known, else -1. */
enum thread_kind resume_kind(long nr, const uint64_t args[6], int64_t *timeout_ms);
/* "futex", "epoll_wait", … or "call N". Static or in BUFFER. */
const char *resume_call_name(long nr, char *buffer, unsigned size);

/* Does it depend on the first argument, a descriptor, how NR takes a stop? threads.c looks at it. */
bool resume_needs_descriptor(long nr);

/* Can NR be made again when it said EINTR to a stop, though no handler ran? */
bool resume_repeats(long nr);

/* What /proc told of the thread's system call before it was asked to stop. */
struct waiting {
	bool known;
	long nr;
	uint64_t args[6];
	uint64_t sp, pc;
};

/* The call that it is in, -1 = none. */
long resume_call(const struct thread_registers *registers, const struct waiting *seen);
/* RESUME is the machine's. SEEN counts only if the thread is known not to have left that call until it was stopped. WATCHED_MS: how long it is known to have been in this very call; taken off its time limit. */
void resume_plan_held(const struct thread_registers *registers, const struct waiting *seen, int64_t watched_ms, struct resume *out);
/* A call that our stop ended with EINTR is made again, though we do not enter; then lets go. */
void resume_let_go(pid_t tid, const struct thread_registers *registers, const struct resume *resume);

#endif
