/* What one sample costs the thread that it is taken of: seen from within, by a loop that only looks at the clock. */
#include "unwind/perf.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/sort.h"

enum { RATE_HZ = 4000, SAMPLES = 41, LONGEST_MS = 60, STEP_NS = 400 /* a gap: what the clock alone never takes */ };

static void ignore(void *context, const struct thread_copy *copy, uint64_t cpu_ns)
{
}

/* The gaps in which samples were taken. */
static size_t gaps_find(struct perf *perf, uint64_t *gaps)
{
	uint64_t end_ns = clock_monotonic_ns() + LONGEST_MS * 1000000ull, last_ns = clock_monotonic_ns(), seen = 0;
	size_t count = 0;

	while (count < SAMPLES && last_ns < end_ns) {
		uint64_t now_ns = clock_monotonic_ns(), gap_ns = now_ns - last_ns;

		if (gap_ns > STEP_NS && perf_waiting(perf) > seen) {
			gaps[count++] = gap_ns;
			perf_read(perf, ignore, NULL);
			seen = perf_waiting(perf);
			now_ns = clock_monotonic_ns();
		}
		last_ns = now_ns;
	}
	return count;
}

uint64_t perf_cost_ns(uint32_t stack_bytes, bool wakes, bool counts)
{
	unsigned char *deep = __builtin_alloca(stack_bytes); /* so that there is as much stack to copy */
	uint64_t gaps[SAMPLES], cost_ns = 0;
	struct perf *perf;
	struct error err;
	size_t count;

	memset(deep, 1, stack_bytes);
	__asm__ volatile("" : : "r"(deep) : "memory");
	if (perf_open(RATE_HZ, stack_bytes, wakes, &perf, &err) < 0)
		return 0;
	if (counts)
		perf_count(perf);
	if (perf_add(perf, gettid()) == 0) {
		count = gaps_find(perf, gaps);
		qsort(gaps, count, sizeof *gaps, sort_compare_u64);
		cost_ns = count > SAMPLES / 4 ? gaps[count / 2] : 0;
	}
	perf_close(perf);
	return cost_ns;
}
