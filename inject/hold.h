/*
 * A look at single threads: held for some 30 us, registers and stack copied, let go again exactly as it was; signals never wait, no
 * system call sees an EINTR. The holding is done by a small process of its own (signals blocked, memory locked, a watchdog
 * that ends it after 50 ms), so that nothing that happens to the attacher can keep a thread stopped. docs/SAFETY.md.
 */
#ifndef INFERSCOPE_INJECT_HOLD_H
#define INFERSCOPE_INJECT_HOLD_H

#include "inject/inject.h"

enum { HOLD_STACK_MAX = 1 << 16, HOLD_EXTRA_MAX = 1 << 16 };

enum hold_result {
	HOLD_COPIED,
	HOLD_GONE,      /* the thread ended */
	HOLD_REFUSED,   /* error: errno of PTRACE_SEIZE (EPERM: traced by somebody else, or not permitted) */
	HOLD_NOT_NOW,   /* did not stop in time, is stopped by job control, or gets a signal: look again later */
	HOLD_PRONE,     /* blocked in a call that a stop would disturb: not touched */
	HOLD_FAILED,    /* error: errno; the holder is of no use any longer */
};

struct hold_copy {
	int error;
	uint64_t at_ns, hold_ns;     /* CLOCK_MONOTONIC; how long it stood still */
	uint64_t regs[17];           /* in the order of DWARF numbers: rax rdx rcx rbx rsi rdi rbp rsp r8…r15 rip */
	uint64_t fs_base;
	long syscall_nr;             /* orig_rax when it stood in a system call, else -1 */
	bool repaired;               /* it had slipped into a call that the stop would have ended with EINTR */
	uint32_t stack_size;
	unsigned char stack[HOLD_STACK_MAX]; /* from rsp upwards */
	uint32_t extra_size;         /* bytes that EXTRA wrote */
	unsigned char extra[HOLD_EXTRA_MAX];
};

struct holder;

/* Called in the small process while TID stands still: may read the target's memory and write at most SIZE bytes to OUT; returns how many. It must not
 * allocate, lock or wait; it has its own copy of whatever CONTEXT points to, as it was at holder_open(). */
typedef uint32_t (*hold_extra)(void *context, pid_t tid, void *out, uint32_t size);

/* Starts the small process. TARGET must outlive the holder. EXTRA may be NULL. */
int holder_open(const struct target *target, hold_extra extra, void *context, struct holder **out, struct error *err);
void holder_close(struct holder *holder); /* also when its process has died; accepts NULL */
/* Looks at TID now. FORCE: also when it is blocked (never in a call that a stop would disturb). The copy is the holder's, valid until the next call. */
enum hold_result holder_copy(struct holder *holder, pid_t tid, bool force, const struct hold_copy **out);
/* Sum, longest and number of all holds so far. */
void holder_totals(const struct holder *holder, uint64_t *total_ns, uint64_t *longest_ns, uint64_t *count);

#endif
