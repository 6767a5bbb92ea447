/* For tests/bench/holds: a thread that looks at the clock all the time and notes for how long it did not get to. */
#include <stdint.h>
#include <time.h>

uint64_t gaps_watch(double seconds, uint64_t least_ns, uint64_t *longest_ns);

static uint64_t now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* The sum of all gaps of LEAST_NS and more; *LONGEST_NS the longest of them. */
uint64_t gaps_watch(double seconds, uint64_t least_ns, uint64_t *longest_ns)
{
	uint64_t last_ns = now_ns(), end_ns = last_ns + (uint64_t)(seconds * 1e9), sum_ns = 0;

	*longest_ns = 0;
	while (last_ns < end_ns) {
		uint64_t at_ns = now_ns(), gap_ns = at_ns - last_ns;

		if (gap_ns >= least_ns) {
			sum_ns += gap_ns;
			if (gap_ns > *longest_ns)
				*longest_ns = gap_ns;
		}
		last_ns = at_ns;
	}
	return sum_ns;
}
