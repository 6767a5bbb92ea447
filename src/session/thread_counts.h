/*
 * Counters of a process's threads, by perf_event: what the kernel counts, and what the processor does where it lets us. Nothing is sampled or stopped; a switch of a
 * counted thread takes the kernel some microseconds longer (docs/SAFETY.md), which is measured on ourselves and held against a budget. What perf_event may not tell, or
 * costs more than it may, is read from /proc, as far as that knows it.
 */
#ifndef INFERSCOPE_SESSION_THREAD_COUNTS_H
#define INFERSCOPE_SESSION_THREAD_COUNTS_H

#include "abi/thread_counter.h"
#include "base/error.h"
#include "base/procfs.h"

struct thread_counts;

/* SCALED: the processor counted for a part of the time only, and this is what it would be for all of it. */
typedef void thread_counts_each(void *context, pid_t tid, enum thread_counter which, uint64_t value, bool scaled);

struct thread_counts_totals {
	uint32_t threads, refused;           /* refused: of which perf_event tells nothing */
	bool perf;                           /* software counters are perf_event's, else those of /proc */
	bool given_up;                       /* they were perf_event's until these cost more than they might */
	uint64_t cost_ns, spent_ns;          /* so much longer a switch takes, and all together; 0: it could not be measured */
	char why_not_perf[160];              /* "" when they are */
	char why_not_processor[160];         /* "" when it is counted, too */
	char why[160];                       /* of the last thread that was refused */
	uint64_t sums[THREAD_COUNTERS];      /* over all threads, also those that ended */
	bool told[THREAD_COUNTERS];          /* of one thread at least */
};

/*
 * MAX_OVERHEAD_PPM: of the process's CPU time, that all its switches together may take longer; 0 = any. Takes some ten milliseconds. ERR_MEMORY. That perf_event is
 * refused is no failure.
 */
int thread_counts_open(const struct procfs *procfs, pid_t pid, uint32_t max_overhead_ppm, struct thread_counts **out, struct error *err);
void thread_counts_close(struct thread_counts *counts); /* accepts NULL */
/* TID, which was not, is counted from now on; what a BORN one did since it began counts, too, as far as /proc knows, unless that was before all this was opened. */
void thread_counts_add(struct thread_counts *counts, pid_t tid, bool born);
/* Where perf_event tells nothing of a thread, what /proc says is gone once it has ended: so it is looked at now and then. */
void thread_counts_look(struct thread_counts *counts);
/* Calls EACH for every counter of every thread; those that do not live any longer are let go of after that. LIVES may be NULL: all do. */
void thread_counts_read(struct thread_counts *counts, bool (*lives)(const void *context, pid_t tid), const void *living, thread_counts_each *each, void *context);
/* After a reading. CPU_NS: of the process since it was opened. Over budget, no thread is counted by perf_event any more. */
void thread_counts_hold_budget(struct thread_counts *counts, uint64_t cpu_ns);
struct thread_counts_totals thread_counts_totals(const struct thread_counts *counts);

#endif
