/*
 * A look at single threads: held for some 30 us, registers and stack copied, let go again exactly as it was; signals never wait, no
 * system call sees an EINTR. The holding is done by a small process of its own (signals blocked, memory locked, a watchdog
 * that ends it after 50 ms), so that nothing that happens to the attacher can keep a thread stopped. docs/SAFETY.md.
 */
#ifndef INFERSCOPE_INJECT_HOLD_H
#define INFERSCOPE_INJECT_HOLD_H

#include "inject/inject.h"
#include "inject/machine.h"

enum { HOLD_STACK_MAX = 1 << 16, HOLD_EXTRA_MAX = 1 << 16 };

enum hold_result {
	HOLD_COPIED,
	HOLD_GONE,      /* the thread ended */
	HOLD_REFUSED,   /* error: errno of PTRACE_SEIZE (EPERM: traced by somebody else, or not permitted), ENOEXEC: it runs 32-bit code */
	HOLD_NOT_NOW,   /* did not stop in time, is stopped by job control, or gets a signal: look again later */
	HOLD_BLOCKED,   /* blocked, and FORCE was not given: not touched. syscall_nr, the stack pointer and the instruction's address are known all the same, if that is not 0 */
	HOLD_PRONE,     /* the same, in a call that a stop would disturb: not touched with FORCE either */
	HOLD_FAILED,    /* error: errno; the holder is of no use any longer */
};

struct hold_copy {
	int error;
	uint64_t at_ns;              /* CLOCK_MONOTONIC: it stands still */
	uint64_t hold_ns, extra_ns;  /* from the last moment at which it had not stopped yet until it was let go; of these for EXTRA */
	uint64_t stood_ns;           /* from at_ns until it was let go: until then it may have waited for a CPU anyway */
	uint64_t regs[MACHINE_REGISTERS]; /* in the order of DWARF numbers, the instruction's address last: rax rdx rcx rbx rsi rdi rbp rsp r8…r15 rip; x0…x30 sp pc */
	uint64_t thread_pointer;
	long syscall_nr;             /* of the system call it stood in, else -1 */
	bool repaired;               /* it had slipped into a call that the stop would have ended with EINTR */
	uint32_t stack_size;
	unsigned char stack[HOLD_STACK_MAX]; /* from rsp upwards, as much as there is */
	uint32_t extra_size;         /* bytes that EXTRA wrote */
	unsigned char extra[HOLD_EXTRA_MAX];
};

struct holder;

/* Called in the small process while TID stands still: may read the target's memory (tracee_read() or memory_read(), TID will do for its pid) and write at most SIZE
 * bytes to OUT; returns how many. It must not allocate, lock or wait, and has no descriptors. What CONTEXT points to is a copy, as it was when the
 * process was last started: at the latest at holder_open(), anew whenever it had to be ended. */
typedef uint32_t (*hold_extra)(void *context, pid_t tid, void *out, uint32_t size);

/* Are threads held on this machine at all? */
bool holder_possible(void);

/* Starts the small process by fork(): cheapest while the attacher is small. It ends with the thread that called this. TARGET and CONTEXT must outlive
 * the holder. EXTRA may be NULL. ERR_MEMORY, ERR_INJECT (no process could be started), ERR_ARCHITECTURE (not on this machine). */
int holder_open(const struct target *target, hold_extra extra, void *context, struct holder **out, struct error *err);
void holder_close(struct holder *holder); /* also when its process has died; accepts NULL */
/* Looks at TID now. FORCE: also when it is blocked (never in a call that a stop would disturb). *OUT is the holder's, valid until the next call, and filled
 * beyond `error` only for HOLD_COPIED, and as said for HOLD_BLOCKED and HOLD_PRONE. Returns within a quarter of a second. */
enum hold_result holder_copy(struct holder *holder, pid_t tid, bool force, const struct hold_copy **out);

struct hold_totals {
	uint64_t count, total_ns, longest_ns; /* holds, also those that brought no copy */
	uint64_t repaired;
	uint64_t restarts;                    /* the small process had to be ended, or was, and was started again */
};
struct hold_totals holder_totals(const struct holder *holder);

#endif
