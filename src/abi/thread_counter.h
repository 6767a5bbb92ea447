/* Counters of threads, as rows of thread_counter.def tell them. */
#ifndef INFERSCOPE_ABI_THREAD_COUNTER_H
#define INFERSCOPE_ABI_THREAD_COUNTER_H

#include <stdint.h>
#include <string.h>

enum thread_counter {
#define THREAD_COUNTER(identifier, ...) COUNTER_##identifier,
#include "abi/thread_counter.def"
#undef THREAD_COUNTER
	THREAD_COUNTERS
};

/* The kernel's come first, the rest is a processor's. Those from COUNTERS_SAMPLED on are told with samples, too. */
enum { COUNTERS_SOFTWARE = COUNTER_CYCLES, COUNTERS_SAMPLED = COUNTER_MINOR_FAULTS, SAMPLED_COUNTERS = THREAD_COUNTERS - COUNTERS_SAMPLED };

struct thread_counter_row { const char *name, *over_time; double unit; };

static inline const struct thread_counter_row *thread_counter_row(enum thread_counter which)
{
	static const struct thread_counter_row rows[THREAD_COUNTERS] = {
#define THREAD_COUNTER(identifier, name, type, config, way, over_time, unit, meaning) [COUNTER_##identifier] = { name, over_time, unit },
#include "abi/thread_counter.def"
#undef THREAD_COUNTER
	};

	return &rows[which];
}

/* THREAD_COUNTERS: of no such name. */
static inline enum thread_counter thread_counter_named(const char *name)
{
	int which = 0;

	while (which < THREAD_COUNTERS && strcmp(name, thread_counter_row((enum thread_counter)which)->name) != 0)
		which++;
	return (enum thread_counter)which;
}

#endif
