/*
 * Do lanes and drain keep up? bench_lanes [EVENTS_PER_SECOND [SECONDS [POOL_MB [FOLDER]]]], 20 000 000 for 30 s and 100 MB unless given; 0 events per second is
 * as fast as can be. One thread writes enters and leaves with the collector's own code, another drains every 10 ms as a session does and writes the
 * trace's file into FOLDER (/tmp). What was read and what was counted as lost must be all that was written: exit status 1 when they are not.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "collector/collector.h"
#include "session/drain.h"
#include "session/spool.h"

enum { BURST = 2000, FUNCTIONS = 40, DRAIN_US = 10000, PARTIAL_EVERY = 25, GROW = 64 };

struct bench {
	struct pool pool;
	struct drain *drain;
	struct spool *spool;
	double rate, seconds;
	uint64_t written, wrote_ns;
	bool done; /* atomic */
	double drain_cpu_s;
};

static void *write_events(void *context)
{
	struct bench *bench = context;
	struct lane *lane = lane_attach();
	uint64_t begin_ns = clock_monotonic_ns(), now_ns = begin_ns, end_ns = begin_ns + (uint64_t)(bench->seconds * 1e9);

	while (lane && now_ns < end_ns) {
		for (uint32_t i = 0; i < BURST / 2; i++) {
			lane_push(lane, ticks_now(), 1 + i % FUNCTIONS, EVENT_PY_ENTER);
			lane_pop(lane, ticks_now(), 1 + i % FUNCTIONS, EVENT_PY_LEAVE, 0);
		}
		bench->written += BURST;
		do
			now_ns = clock_monotonic_ns();
		while (bench->rate > 0 && (double)bench->written > bench->rate * (double)(now_ns - begin_ns) / 1e9 && now_ns < end_ns);
	}
	bench->wrote_ns = now_ns - begin_ns;
	return NULL;
}

static void keep_chunk(void *context, const struct chunk *chunk, uint64_t events)
{
	spool_add(((struct bench *)context)->spool, chunk, events);
}

static uint32_t same_tid(void *context, uint32_t tid)
{
	(void)context;
	return tid;
}

static void *drain_events(void *context)
{
	struct bench *bench = context;
	struct timespec cpu;

	for (int round = 1; !__atomic_load_n(&bench->done, __ATOMIC_ACQUIRE); round++) {
		drain_round(bench->drain, round % PARTIAL_EVERY == 0);
		if (drain_totals(bench->drain).used * 2 > bench->pool.count)
			pool_grow(&bench->pool, GROW);
		usleep(DRAIN_US);
	}
	drain_last(bench->drain);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
	bench->drain_cpu_s = (double)cpu.tv_sec + (double)cpu.tv_nsec / 1e9;
	return NULL;
}

/* As entry.c arms, with the pool that a session made. */
static bool arm(struct bench *bench)
{
	struct page *page = bench->pool.page;

	page->subbuf_count = bench->pool.limit;
	page->ticks_per_second = clock_tsc_usable() ? clock_calibrate(50000000).ticks_per_second : 1000000000;
	the.page = page;
	the.mapping_bytes = bench->pool.bytes;
	the.settings.subbuf_count = bench->pool.limit;
	the.settings.ticks_per_second = page->ticks_per_second;
	the.tsc = clock_tsc_usable();
	the.window = 1;
	if (lanes_open())
		return false;
	lanes_begin();
	the.armed = true;
	return true;
}

static int report(const struct bench *bench)
{
	struct drain_totals totals = drain_totals(bench->drain);
	double seconds = (double)bench->wrote_ns / 1e9;
	bool exact = totals.drained + totals.lost == bench->written;

	printf("%.1f M events/s for %.1f s: %llu written, %llu read, %llu counted as lost (%.3f %%): %s\n", (double)bench->written / seconds / 1e6, seconds, (unsigned long long)bench->written,
	       (unsigned long long)totals.drained, (unsigned long long)totals.lost, 100.0 * (double)totals.lost / (double)bench->written, exact ? "all told" : "NOT ALL TOLD");
	printf("draining: %.0f %% of a CPU, %.0f ns per event; %.1f MB of file kept, %.2f bytes per event\n", 100 * bench->drain_cpu_s / seconds, bench->drain_cpu_s * 1e9 / (double)bench->written,
	       (double)spool_bytes(bench->spool) / 1e6, (double)spool_bytes(bench->spool) / ((double)totals.drained - (double)spool_dropped_events(bench->spool)));
	return exact ? 0 : 1;
}

int main(int argc, char **argv)
{
	struct bench bench = { .rate = argc > 1 ? atof(argv[1]) : 20e6, .seconds = argc > 2 ? atof(argv[2]) : 30 };
	uint32_t pool_mb = argc > 3 ? (uint32_t)atoi(argv[3]) : 100;
	const struct drain_sink sink = { keep_chunk, same_tid, &bench };
	struct error err = { 0 };
	pthread_t writer, drainer;
	struct clock_map clock;

	if (pool_open_anonymous(pool_bytes(pool_mb), &bench.pool, &err) < 0 || spool_open(argc > 4 ? argv[4] : "/tmp", (uint64_t)pool_mb * 10 << 20, 0, &bench.spool, &err) < 0)
		goto failed;
	pool_grow(&bench.pool, GROW);
	if (!arm(&bench))
		return 2;
	clock = clock_tsc_usable() ? clock_calibrate(50000000) : clock_map_monotonic();
	if (drain_open(&bench.pool, &clock, 1, &sink, &bench.drain, &err) < 0)
		goto failed;
	if (pthread_create(&writer, NULL, write_events, &bench) || pthread_create(&drainer, NULL, drain_events, &bench))
		return 2;
	pthread_join(writer, NULL);
	the.armed = false;
	lanes_end();
	__atomic_store_n(&bench.done, true, __ATOMIC_RELEASE);
	pthread_join(drainer, NULL);
	return report(&bench);
failed:
	fprintf(stderr, "bench_lanes: %s\n", err.text);
	return 2;
}
