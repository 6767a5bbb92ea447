/*
 * How the borrowed thread goes on: which instruction, with which result of the system call it was in. The kernel would do this by
 * itself on a plain release; after our stub it is ours to do, exactly. Pure arithmetic on registers, for every system call there is.
 */
#ifndef INFERSCOPE_INJECT_RESUME_H
#define INFERSCOPE_INJECT_RESUME_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/user.h>

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

/* Can NR be made again when it said EINTR to a stop, though no handler ran? */
bool resume_repeats(long nr);

struct resume {
	uint64_t rip, rax, r10;
	uint64_t interrupted_rip, interrupted_rax; /* instead, if a caught signal came meanwhile */
	uint64_t part_done;       /* bytes it had done when it was stopped: the same call goes on behind them; 0 = not such a call, or all done */
	bool heeds_signals;       /* interrupted_rip counts */
	bool ask_restart;         /* … but not when the signal's handler has SA_RESTART */
	bool repaired;            /* the call had EINTR already, from our stop: it is made again */
	bool restarts;            /* the call goes on (in any of the ways) */
};

/* Unless it was done with a file proper (which may also end early because a limit was reached), this call was cut short by our stop. */
bool resume_is_part(const struct user_regs_struct *regs);
/* WATCHED_MS: how long the thread is known to have been in this very call; taken off its time limit. */
void resume_plan(const struct user_regs_struct *regs, int64_t watched_ms, struct resume *out);

#endif
