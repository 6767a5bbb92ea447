/*
 * What samples cost a process: bench_sampling PID COUNTER RATE PAIRS [auto|hold|none]. COUNTER is the file of tests/live/programs/work.py (items, CPU time).
 * The sampler is on and off by turns, 200 ms each, in an order that changes; one pair is one of both. What counts is CPU time per item, so that neighbours who take the
 * CPU away do not. The row `null` are pairs of which both halves were off: what this machine's noise looks like.
 */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "session/sampler.h"

enum { WINDOW_MS = 200, SETTLE_MS = 10, PAIRS_MAX = 4096 };

static const volatile uint64_t *counter;

static void sleep_ms(long ms)
{
	nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000 }, NULL);
}

/* CPU time per item, over one window. */
static double window(struct sampler *sampler, bool on)
{
	uint64_t items, cpu_ns;

	sampler_pause(sampler, !on);
	sleep_ms(SETTLE_MS);
	items = counter[0];
	cpu_ns = counter[1];
	sleep_ms(WINDOW_MS);
	items = counter[0] - items;
	return items ? (double)(counter[1] - cpu_ns) / (double)items : NAN;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* Median, and the bounds between which it lies with a confidence of 95 % (order statistics). */
static void print_row(const char *name, double *ratios, size_t count)
{
	double spread = 0.98 * sqrt((double)count);
	size_t low = count / 2 > (size_t)spread ? count / 2 - (size_t)spread : 0, high = count / 2 + (size_t)spread < count ? count / 2 + (size_t)spread : count - 1;

	if (!count)
		return;
	qsort(ratios, count, sizeof *ratios, compare);
	printf("%s: %+.2f %% [%+.2f, %+.2f], %zu pairs\n", name, 100 * (ratios[count / 2] - 1), 100 * (ratios[low] - 1), 100 * (ratios[high] - 1), count);
}

static void measure(struct sampler *sampler, size_t pairs)
{
	static double ratios[PAIRS_MAX], null[PAIRS_MAX];
	size_t count = 0, null_count = 0;

	for (size_t i = 0; i < pairs && i < PAIRS_MAX; i++) {
		bool first_on = i % 2;
		double first = window(sampler, first_on), second = window(sampler, !first_on), a = window(sampler, false), b = window(sampler, false);

		if (!isnan(first) && !isnan(second))
			ratios[count++] = first_on ? first / second : second / first;
		if (!isnan(a) && !isnan(b))
			null[null_count++] = a / b;
	}
	print_row("sampling", ratios, count);
	print_row("null", null, null_count);
}

static void *map_counter(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *page = fd >= 0 ? mmap(NULL, 16, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;

	return page == MAP_FAILED ? NULL : page;
}

int main(int argc, char **argv)
{
	const char *way = argc > 5 ? argv[5] : "auto";
	const struct inject_options inject = { .look_only = true };
	uint64_t runtime, size = 0;
	struct sampler_settings settings = { .procfs = &procfs_real, .clock = clock_map_monotonic(), .max_overhead_ppm = 0 };
	struct sampler_totals totals;
	struct target *target = NULL;
	struct sampler *sampler = NULL;
	struct error err = { 0 };

	if (argc < 5 || !(counter = map_counter(argv[2])) || target_open((pid_t)atoi(argv[1]), &inject, &target, &err) < 0) {
		fprintf(stderr, "bench_sampling: %s\n", argc < 5 ? "PID COUNTER RATE PAIRS [auto|hold|none]" : err.code ? err.text : "no counter");
		return 2;
	}
	settings.target = target;
	settings.rate_hz = (uint32_t)atoi(argv[3]);
	settings.native = strcmp(way, "hold") == 0 ? NATIVE_HOLD : strcmp(way, "none") == 0 ? NATIVE_NONE : NATIVE_AUTO;
	runtime = target_symbol(target, "_PyRuntime", &size);
	settings.runtime = block_runtime_at(runtime, size, target_facts(target)->python_hex);
	if (sampler_open(&settings, &sampler, &err) < 0) {
		fprintf(stderr, "bench_sampling: %s\n", err.text);
		return 2;
	}
	sleep_ms(2000); /* names are loaded */
	measure(sampler, (size_t)atoi(argv[4]));
	totals = sampler_totals(sampler);
	printf("%s, %.0f looks/s, %llu samples by perf_event (%llu lost), %llu holds, one sample costs %llu ns; joins: %llu whole, %llu recalled, %llu later, %llu partial, %llu failed\n",
	       totals.ways.perf ? "perf_event" : totals.ways.holds ? "held" : "Python frames only", 1e9 / (double)totals.every_ns, (unsigned long long)totals.perf.samples,
	       (unsigned long long)totals.perf.lost, (unsigned long long)totals.holds.count, (unsigned long long)totals.perf_cost_ns, (unsigned long long)totals.digest.joins[JOIN_WHOLE],
	       (unsigned long long)totals.digest.joins[JOIN_RECALLED],	       (unsigned long long)totals.digest.joins[JOIN_LATER], (unsigned long long)totals.digest.joins[JOIN_PARTIAL], (unsigned long long)totals.digest.joins[JOIN_FAILED]);
	sampler_close(sampler);
	target_close(target);
	return 0;
}
