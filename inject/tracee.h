/*
 * One thread under ptrace for a moment: stopped, looked at, let go as it was. For the small processes that do nothing else (critical.c, holder.c):
 * raw system calls only, so that nothing is resolved, locked or paged in late, and that it works in the child of a process with threads.
 */
#ifndef INFERSCOPE_INJECT_TRACEE_H
#define INFERSCOPE_INJECT_TRACEE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "inject/machine.h"

#define ALARM_MS 1000 /* the last resort */

struct alarm {
	long kill, resume; /* timers, -1 = the interval timer, none */
};

/* How long to wait for a stop. A thread that was woken by us and waits for a CPU may find EINTR there if it is let go before it has stopped. */
struct patience {
	const struct alarm *alarm; /* pushed ahead all the time */
	uint32_t ms, runnable_ms;  /* whatever it does; while it could run */
	const char *stat_path;     /* /proc/PID/task/TID/stat */
};

/* The kernel's own results: -errno. */
long raw_call(long nr, long a, long b, long c, long d, long e, long f);
long raw_ptrace(long request, pid_t tid, long addr, const volatile void *data);
uint64_t raw_now_ns(void); /* CLOCK_MONOTONIC */

/* Makes this process one of those: signals blocked (but SIGALRM, and KEEP, a mask), the SIZE bytes at SHARED, its stack and the code
 * at and before CODE and of tracee.c and the machine's locked in memory, a process group of its own, and before others for the CPU where that is permitted. Returns its alarm. */
struct alarm raw_process(void *shared, size_t size, uintptr_t code, uint64_t keep);
/* Ends this process after MS (0: never); whatever it holds is free again by its death. Stopped meanwhile, it is continued after 20 ms, so that it
 * need not be ended with a thread in its hands whose call would say EINTR. */
void raw_alarm(const struct alarm *alarm, uint32_t ms);

enum tracee_stop {
	TRACEE_STOPPED, /* as PTRACE_INTERRUPT asked for */
	TRACEE_SIGNAL,  /* a signal is being delivered to it */
	TRACEE_JOB,     /* stopped by job control */
	TRACEE_GONE,
	TRACEE_NOT_YET, /* it did not stop: only our death lets go of it */
};

/* Is the thread that was seized of the process in STAT_PATH (/proc/PID/task/TID/stat)? Its number may have gone to another process's thread since it was chosen, and cannot any more once it is seized: a thread
 * that ends now stays until we have taken notice. */
bool tracee_is_of(const char *stat_path);
/* Waits for a thread that was seized and interrupted; polls before it sleeps. *SIGNAL: what to detach with.
 * *MOVING_NS: when it was last seen not to have stopped yet (raw_now_ns()): it waited for a CPU till then, or ran, whether we came or not. */
enum tracee_stop tracee_wait(pid_t tid, const struct patience *patience, int *signal, uint64_t *moving_ns);
/* All SIZE bytes, or -1. */
int tracee_read(pid_t tid, uint64_t addr, void *out, size_t size);

/* The system call that it is in, -1 = none, or none that can be told. */
long tracee_call(const struct thread_registers *registers);
/* Goes on by restart_syscall(). */
bool tracee_needs_restart_call(const struct thread_registers *registers);
/* Was waiting in a system call that our stop has ended. */
bool tracee_was_waiting(const struct thread_registers *registers);
/* The call has the result EINTR because of our stop alone: it would have none without us. */
bool tracee_disturbed(pid_t tid, const struct thread_registers *registers);
/* One register write, after which the kernel makes a call that was stopped again, unless a signal's handler runs first: then it says EINTR, as it would
 * have. Death before or after this changes nothing but whether that one call says EINTR. */
void tracee_repeat_call(pid_t tid);
/* Lets go of a thread in a signal-delivery stop: it gets its signal, and a call that our stop has ended goes on if the signal is ignored. */
void tracee_pass_signal(pid_t tid, int signal);
void tracee_detach(pid_t tid, int signal);

#endif
