/*
 * Holds the threads of a process in turn and says what it cost. usage: hold_driver PID HZ SECONDS [force]
 * HZ 0: as fast as it goes. Prints one line NAME=NUMBER…; exit status 0 when the holder lived to the end.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "inject/hold.h"
#include "inject/target.h"

enum { HOLDS_MAX = 1 << 20, THREADS_MAX = 1024 };

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static double us(const uint64_t *holds, size_t count, double share)
{
	return count ? (double)holds[(size_t)((double)(count - 1) * share)] / 1e3 : 0;
}

int main(int argc, char **argv)
{
	static struct target target;
	static uint64_t holds[HOLDS_MAX], rounds[HOLDS_MAX];
	pid_t tids[THREADS_MAX];
	uint64_t results[HOLD_FAILED + 1] = { 0 }, stack = 0, begun_ns, end_ns, next_ns, gap_ns;
	size_t count = 0, turn = 0;
	struct holder *holder;
	struct hold_totals totals;
	bool force = argc > 4 && strcmp(argv[4], "force") == 0;

	if (argc < 4)
		return 2;
	target.procfs = procfs_real;
	target.pid = atoi(argv[1]);
	gap_ns = atoi(argv[2]) > 0 ? 1000000000ull / (uint64_t)atoi(argv[2]) : 0;
	if (holder_open(&target, NULL, NULL, &holder, NULL) < 0)
		return 1;
	begun_ns = next_ns = clock_monotonic_ns();
	end_ns = begun_ns + (uint64_t)(atof(argv[3]) * 1e9);
	while (clock_monotonic_ns() < end_ns) {
		ssize_t threads = procfs_threads(&procfs_real, target.pid, tids, THREADS_MAX);
		const struct hold_copy *copy;
		enum hold_result result;
		uint64_t since_ns;

		if (threads <= 0)
			break;
		since_ns = clock_monotonic_ns();
		result = holder_copy(holder, tids[turn++ % (size_t)(threads < THREADS_MAX ? threads : THREADS_MAX)], force, &copy);
		results[result]++;
		if (result == HOLD_FAILED)
			break;
		if (result == HOLD_COPIED && count < HOLDS_MAX) {
			rounds[count] = clock_monotonic_ns() - since_ns;
			holds[count++] = copy->hold_ns;
			stack += copy->stack_size;
		}
		next_ns += gap_ns;
		if (gap_ns && next_ns > clock_monotonic_ns())
			clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &(struct timespec){ (time_t)(next_ns / 1000000000), (long)(next_ns % 1000000000) }, NULL);
		else
			next_ns = clock_monotonic_ns();
	}
	totals = holder_totals(holder);
	holder_close(holder);
	qsort(holds, count, sizeof *holds, by_size);
	qsort(rounds, count, sizeof *rounds, by_size);
	printf("copied=%zu gone=%llu refused=%llu later=%llu blocked=%llu prone=%llu failed=%llu repaired=%llu restarts=%llu stack=%llu hold_us p50=%.1f p95=%.1f max=%.1f "
	       "round_us p50=%.1f p95=%.1f\n", count, (unsigned long long)results[HOLD_GONE], (unsigned long long)results[HOLD_REFUSED],
	       (unsigned long long)results[HOLD_NOT_NOW], (unsigned long long)results[HOLD_BLOCKED], (unsigned long long)results[HOLD_PRONE],
	       (unsigned long long)results[HOLD_FAILED], (unsigned long long)totals.repaired, (unsigned long long)totals.restarts,
	       (unsigned long long)(count ? stack / count : 0), us(holds, count, 0.5), us(holds, count, 0.95), us(holds, count, 1), us(rounds, count, 0.5), us(rounds, count, 0.95));
	return results[HOLD_FAILED] != 0;
}
