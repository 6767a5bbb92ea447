/*
 * System calls of a process's threads, each one, by the kernel's tracepoints raw_syscalls:sys_enter and sys_exit: nothing is stopped, but every call costs its thread
 * about a microsecond more, and every switch of it another, which is measured and held against a budget. Needs root, or CAP_PERFMON and a tracefs that may be read.
 */
#ifndef INFERSCOPE_SESSION_SYSTRACE_H
#define INFERSCOPE_SESSION_SYSTRACE_H

#include "base/error.h"
#include "session/block.h"

struct systrace;

struct systrace_call {
	pid_t tid;
	uint64_t start_ns, duration_ns; /* CLOCK_MONOTONIC */
	uint64_t number, first;         /* first argument */
	int64_t result;
};
typedef void systrace_each(void *context, const struct systrace_call *call);

struct systrace_totals {
	uint64_t calls, lost;   /* lost: events for which there was no room, as the kernel counted, or that made no sense; each spoils a call */
	uint64_t covered_ns;    /* for so long calls were seen; less than the time since it was opened where the budget did not hold */
	uint64_t open_ns;       /* since it was opened */
	uint64_t cost_ns;       /* of one call, as measured on ourselves; 0: could not be */
	uint64_t switch_ns;     /* of one switch of a thread, likewise */
	uint64_t spent_ns;      /* all together */
	uint32_t threads, refused;
	char why[160];          /* of the last refusal */
};

/*
 * TRACEFS: NULL = where it is usually mounted. MAX_OVERHEAD_PPM: of the process's CPU time, that all calls together may cost; 0 = any. ERR_PERMISSION with the
 * reason (no tracefs, not permitted), ERR_MEMORY.
 */
int systrace_open(const char *tracefs, uint32_t max_overhead_ppm, struct systrace **out, struct error *err);
void systrace_close(struct systrace *systrace); /* accepts NULL */
/* Is TID, which was not, watched from now on? */
bool systrace_add(struct systrace *systrace, pid_t tid);
/* Lets go of threads that do not live any longer. What was not read of them is lost. */
void systrace_prune(struct systrace *systrace, bool (*lives)(const void *context, pid_t tid), const void *context);
/* Hands over every call that has returned since; those of one thread in order. At least every 10 ms, or busy threads lose some. CPU_NS, SWITCHES: of the process's threads since it was opened. */
void systrace_read(struct systrace *systrace, uint64_t cpu_ns, uint64_t switches, systrace_each *each, void *context);
struct systrace_totals systrace_totals(const struct systrace *systrace);

/* What reads a ring: records between TAIL and HEAD, of SIZE bytes (a power of two). */
struct systrace_ids { uint16_t enter, leave; };
struct systrace_open_call { bool open; uint64_t start_ns, number, first; };
struct systrace_counts { uint64_t calls, lost, damaged; };
uint64_t systrace_parse(const unsigned char *ring, uint64_t size, uint64_t tail, uint64_t head, struct systrace_ids ids, struct systrace_open_call *open, systrace_each *each, void *context,
                        struct systrace_counts *counts);

#endif
