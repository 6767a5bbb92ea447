/*
 * Samples of running threads by perf_event: software clock, user registers, user stack; nothing is stopped. One event per thread; where
 * descriptors or locked memory end, the other threads are named so that they can be looked at otherwise.
 */
#ifndef INFERSCOPE_UNWIND_PERF_H
#define INFERSCOPE_UNWIND_PERF_H

#include "unwind/perf_record.h"

enum { PERF_STACK_MAX = 65528 /* bytes; a record ends at 64 KiB */ };

struct perf;

struct perf_totals {
	uint64_t samples, lost, throttled; /* lost: as the kernel counted */
	uint64_t without_stack;            /* samples of a moment without 64-bit user code, skipped */
	uint64_t copied_bytes;             /* of stack, by all samples */
	uint32_t stack_bytes;              /* with each sample of a thread that is added now: as much as any has needed */
	uint32_t threads, refused;         /* watched now; not watched because a limit was reached */
	bool kernel;                       /* time in system calls is seen, too */
	char why[160];                     /* of the last refusal, "" = none */
};

/* May samples be had from PID at all? 0, or ERR_PERMISSION with the reason (perf_event_paranoid, seccomp, no such kernel) in err; ERR_EXITED. */
int perf_possible(pid_t pid, struct error *err);
/* RATE_HZ samples per second of CPU time of each thread, their distance varied by a fifth; STACK_BYTES (<= PERF_STACK_MAX, multiple of 8) of stack with
 * each, at first. Raises this process's soft limits of descriptors and locked memory to the hard ones. ERR_MEMORY, ERR_USAGE (numbers out of range). */
int perf_open(uint32_t rate_hz, uint32_t stack_bytes, bool wakes, struct perf **out, struct error *err);
/* Samples of threads that are added after this tell what page faults and the processor's counters gained: a descriptor more for each of them that the machine has. */
void perf_count(struct perf *perf);
void perf_close(struct perf *perf);
/* Readable when a sample came, if perf_open() was told so: that costs the thread some 5 us more for each. */
int perf_descriptor(const struct perf *perf);
/* 0 when TID is watched from now on (or was), -1 when it is not (perf_totals() says why, unless the thread has ended). Needs a call of perf_read() at least every 50 ms of its CPU time. */
int perf_add(struct perf *perf, pid_t tid);
/* The thread's samples are to bring STACK_BYTES of stack and more from now on, and those of threads that are added. Where that cannot be had, or it rests, it stays as it is. What was not read is lost. */
void perf_widen(struct perf *perf, pid_t tid, uint32_t stack_bytes);
/* No thread's event is open from now on, until perf_add() opens it again: what it knows of the thread stays, and its next sample stands for the CPU time since the last one in which it
 * was open. What was not read is lost. */
void perf_rest(struct perf *perf);
/* No thread is watched any more, nor will be: each is refused because of WHY. What was not read is lost. */
void perf_give_up(struct perf *perf, const char *why);
/* While PAUSED no samples are taken. */
void perf_pause(struct perf *perf, bool paused);
/* Another rate from now on, also for the threads that are watched. */
void perf_rate(struct perf *perf, uint32_t rate_hz);
/* The thread has ended. What it left was read, or is lost. */
void perf_remove(struct perf *perf, pid_t tid);
/* Calls EACH for every sample not yet read, oldest first per thread; CPU_NS: the CPU time that it stands for, since the one before, at most twice the usual. COPY is valid during the call. Returns how many. */
int perf_read(struct perf *perf, perf_each *each, void *context);
/* Bytes of samples not yet read. */
uint64_t perf_waiting(const struct perf *perf);
/* What one sample costs the thread that it is taken of, as measured on the calling one within some 10 ms; 0: could not be measured. */
uint64_t perf_cost_ns(uint32_t stack_bytes, bool wakes, bool counts);
/* Events of whatever kind do not take this descriptor, nor those above: they are for all else that is opened. Raises the soft limit to the hard one. */
int perf_descriptors_end(void);
struct perf_totals perf_totals(const struct perf *perf);

#endif
