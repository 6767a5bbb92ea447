/*
 * The window: from PTRACE_SEIZE to PTRACE_DETACH, in a small forked process that can be killed at any instruction without harm to
 * the target. Everything it needs is in one page range that it shares with the attacher, locked in memory beforehand.
 */
#ifndef INFERSCOPE_INJECT_CRITICAL_H
#define INFERSCOPE_INJECT_CRITICAL_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "inject/resume.h"
#include "inject/stub_layout.h"
#include "inject/tracee.h"

#define WINDOW_FILTER_MAX 4096 /* BPF_MAXINSNS */
#define WINDOW_TCB_BYTES 0x100

enum window_result {
	WINDOW_NOT_RUN,
	WINDOW_ENTERED,       /* the stub has the thread now */
	WINDOW_GONE,          /* the thread ended */
	WINDOW_NO_SEIZE,      /* error: errno */
	WINDOW_NO_STOP,       /* not within the time limit */
	WINDOW_STOPPED,       /* group stop: job control */
	WINDOW_NO_MOMENT,     /* never at a good moment: see `reason` */
	WINDOW_ODD_THREAD,    /* not a 64-bit thread of this glibc */
	WINDOW_SECCOMP_KILLS, /* error: the system call */
	WINDOW_SECCOMP_FORBIDS,
	WINDOW_SECCOMP_UNREADABLE,
	WINDOW_FAILED,        /* error: errno of a call that should not fail; nothing changed */
};

enum window_reason {
	REASON_NONE,
	REASON_SIGNAL,  /* a signal was being delivered */
	REASON_PENDING, /* … or waited for it */
	REASON_RSEQ,    /* inside a restartable sequence */
	REASON_RUNNING, /* in no system call, or in another one, where that matters on this machine */
	REASON_LIBC,    /* single-threaded and inside libc or ld.so */
	REASON_COUNT
};

struct window {
	/* What to do: the attacher's. */
	pid_t tid;
	pid_t inner_tid;
	uint32_t tid_offset, block_below; /* in its control block; how much of that lies below the thread pointer */
	int memory_fd;  /* /proc/PID/mem */
	char fd_folder[64]; /* /proc/PID/fd/ */
	char stat_path[96]; /* /proc/PID/task/TID/stat */
	int status_fd;  /* /proc/PID/task/TID/status, or -1: nothing is known of how long it waits */
	uint64_t slot_entry, slot_saved;
	uint64_t single_thread_flag;
	uint64_t libc_text[4][2];
	uint64_t signals_caught;
	bool seccomp;
	uint64_t clone_flags;
	bool memory_locked; /* by mlock or mlockall, some of it */
	int call_fd;    /* /proc/PID/task/TID/syscall, or -1: it is not looked at again */
	enum thread_kind kind; /* as it was judged, for this call: */
	struct waiting judged;
	struct waiting seen; /* the call that it was seen in last: the window's */
	uint64_t watched_since_ns; /* in the same block since then, 0 = not watched */
	uint64_t switches;
	uint32_t max_tries;
	uint32_t stop_timeout_ms; /* to come to a stop; it is not held before */
	uint32_t runnable_timeout_ms; /* … if it only lacks a CPU */
	uint32_t hold_timeout_ms; /* once it has stopped */
	void (*step)(void *context, int step);
	void *step_context;

	/* What came of it: the window's. */
	struct alarm alarm;
	volatile int result; /* enum window_result */
	volatile int error;
	volatile uint32_t tries;
	volatile bool held; /* it has stopped, and was not yet let go */
	volatile bool entering; /* the slot's registers are written: whoever dies now may have entered */
	uint32_t reasons[REASON_COUNT];
	uint64_t hold_ns, hold_total_ns; /* longest and sum over the tries */
	uint64_t interrupted_ns, moving_ns; /* CLOCK_MONOTONIC, for the last try: asked to stop; last seen not to have stopped yet */
	struct thread_registers registers;
	long call; /* that it was in, -1 = none */
	bool repaired;
	bool part; /* the stub makes the rest of its call */
	int64_t watched_ms;
	uint64_t rseq_offset; /* of its rseq area from the thread pointer; valid if rseq_known */
	bool rseq_known;
	unsigned char tcb[WINDOW_TCB_BYTES];
	struct sock_filter filter[WINDOW_FILTER_MAX];
};

/* Shared with a forked child; NULL = out of memory. */
struct window *window_new(void);
void window_free(struct window *window);
/* What the forked child does. Never returns. */
void window_process(struct window *window);
/* Forks, runs, watches, and ends the child if need be. The result is in WINDOW. */
void window_run(struct window *window);

#endif
