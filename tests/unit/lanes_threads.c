/*
 * Lanes, the budget's windows and the drain at work at the same time, for ThreadSanitizer (lanes_threads.test): writers that take turns with the GIL and end, the device's lane
 * without it, the switch thread, the drain of a session. Each row of cases[] once: lanes_threads NAME. What was read and what is counted as lost must be all that was written.
 * The interpreter is played: its GIL is a mutex.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "collector/collector.h"
#include "collector/greenlets.h"
#include "session/drain.h"

enum { WRITERS = 3, BURST = 64, BURSTS = 200, DEVICE_BURST = 32, MINOR = 11, PAUSE_US = 200, TURN_MS = 10, WINDOWS_LEAST = 4 };
#define NS_PER_S 1000000000ull

struct test_case {
	const char *name;
	uint32_t subbufs;
	uint32_t generations;  /* of writers, one after another, at least */
	uint32_t overhead_ppm; /* 0: everything is recorded */
	bool peeks;            /* sub-buffers that are being filled are read, too */
	bool steals;           /* so small a pool that full ones are given up: what was read of these already counts as lost, too */
};

static const struct test_case cases[] = {
	{ "roomy", 256, 4, 0, true, false },
	{ "tight", 5, 4, 0, false, true }, /* one for each lane */
	{ "tight-peeks", 5, 4, 0, true, true },
	{ "windows", 64, 12, 200000, true, false },
};

struct world {
	struct pool pool;
	struct drain *drain;
	bool peeks;
	bool done;             /* atomic */
	bool device_done;      /* atomic */
	struct lane *device;
	uint64_t read;         /* events of threads and the device; the drain's thread's */
	uint64_t written;      /* atomic */
};

/* ---- the interpreter, and what of the collector has no part in this ---- */

struct collector the;
static pthread_mutex_t gil = PTHREAD_MUTEX_INITIALIZER;

static bool hooks_open(void) { return true; }
static void hooks_close(void) {}
static const struct hooks hooks_played = { .kind = BACKEND_EVALUATOR, .open = hooks_open, .close = hooks_close, .cost_factor = { [MINOR] = 100 } };
const struct hooks hooks_evaluator, hooks_setprofile;

bool gil_ensure(int *unused) { return !pthread_mutex_lock(&gil); }
void gil_release(int unused) { pthread_mutex_unlock(&gil); }
bool python_ends(const struct python *python) { return false; }
void memory_pause(void) {}
void memory_resume(void) {}
bool memory_rested(uint64_t now) { return false; }
void memory_take_off(void) {}
void heap_pause(void) {}
void heap_resume(void) {}
void heap_tend(void) {}
void seed_all(uint64_t now) {}
struct code *code_of_ref(uint32_t ref) { return NULL; }
bool greenlets_imported(void) { return false; }
void device_follow(void) {}

/* ---- the process ---- */

static void *write_calls(void *context)
{
	struct world *world = context;
	uint64_t written = 0;

	for (int burst = 0; burst < BURSTS; burst++) {
		struct lane *lane;

		pthread_mutex_lock(&gil);
		lane = lane_attach();
		for (uint32_t i = 0; lane && i < BURST; i++) {
			if (!hook_may_record(ticks_now()))
				continue;
			lane_push(lane, ticks_now(), 1 + i, EVENT_PY_ENTER);
			lane_pop(lane, ticks_now(), 1 + i, EVENT_PY_LEAVE, 0);
			written += 2;
		}
		pthread_mutex_unlock(&gil);
	}
	__atomic_fetch_add(&world->written, written, __ATOMIC_RELAXED);
	return NULL;
}

static void *write_device(void *context)
{
	struct world *world = context;
	uint64_t written = 0;

	while (!__atomic_load_n(&world->device_done, __ATOMIC_ACQUIRE)) {
		for (uint32_t i = 0; i < DEVICE_BURST; i++)
			lane_put(world->device, ticks_now(), i, EVENT_PY_ENTER, 0);
		written += DEVICE_BURST;
		usleep(PAUSE_US);
	}
	__atomic_fetch_add(&world->written, written, __ATOMIC_RELAXED);
	return NULL;
}

/* ---- the session ---- */

static void chunk_read(void *context, const struct chunk *chunk, uint64_t events)
{
	if (chunk->lane_kind != LANE_META)
		((struct world *)context)->read += events;
}

static uint32_t tid_same(void *context, uint32_t tid)
{
	return tid;
}

static void *drain_lanes(void *context)
{
	struct world *world = context;

	while (!__atomic_load_n(&world->done, __ATOMIC_ACQUIRE)) {
		__atomic_store_n(&world->pool.page->deadline_ticks, ticks_now() + 2 * NS_PER_S, __ATOMIC_RELEASE);
		drain_round(world->drain, world->peeks);
		drain_totals(world->drain);
		usleep(PAUSE_US);
	}
	drain_last(world->drain);
	return NULL;
}

/* ---- arm, disarm: as entry.c does it ---- */

static bool begin(struct world *world, const struct test_case *row)
{
	const struct drain_sink sink = { chunk_read, tid_same, world };
	struct clock_map clock = clock_map_monotonic();
	struct lane *names;

	world->peeks = row->peeks;
	if (pool_open_anonymous(PAGE_BYTES + (size_t)row->subbufs * SUBBUF_BYTES, &world->pool, NULL) < 0 || drain_open(&world->pool, &clock, 1, &sink, &world->drain, NULL) < 0)
		return false;
	pool_grow(&world->pool, row->subbufs);
	the.page = world->pool.page;
	the.page->deadline_ticks = ticks_now() + 60 * NS_PER_S;
	the.settings.subbuf_count = row->subbufs;
	the.settings.ticks_per_second = NS_PER_S;
	the.settings.max_overhead_ppm = row->overhead_ppm;
	the.settings.may_start_thread = 1;
	the.settings.alternate_ms = row->overhead_ppm ? TURN_MS : 0;
	the.hooks = &hooks_played;
	the.python.minor = MINOR;
	if (lanes_open())
		return false;
	pthread_mutex_lock(&gil);
	lanes_begin();
	if (!lanes_take_gpu(&names, &world->device))
		return false;
	budget_init();
	the.armed = true;
	window_open(ticks_now(), WINDOW_ARM, 0);
	switcher_start(false);
	pthread_mutex_unlock(&gil);
	return the.switcher_made;
}

static void disarm(void)
{
	pthread_mutex_lock(&gil);
	window_close(ticks_now(), WINDOW_ARM);
	pthread_mutex_unlock(&gil);
	switcher_stop();
	pthread_mutex_lock(&gil);
	__atomic_store_n(&the.armed, false, __ATOMIC_SEQ_CST);
	lanes_end();
	pthread_mutex_unlock(&gil);
}

static bool is_enough(const struct test_case *row, uint32_t generations)
{
	return generations >= row->generations && (!row->overhead_ppm || __atomic_load_n(&the.page->window_count, __ATOMIC_RELAXED) >= WINDOWS_LEAST);
}

static void write_all(struct world *world, const struct test_case *row)
{
	pthread_t device, writers[WRITERS];

	pthread_create(&device, NULL, write_device, world);
	for (uint32_t i = 0; !is_enough(row, i); i++) {
		for (int j = 0; j < WRITERS; j++)
			pthread_create(&writers[j], NULL, write_calls, world);
		for (int j = 0; j < WRITERS; j++)
			pthread_join(writers[j], NULL);
	}
	__atomic_store_n(&world->device_done, true, __ATOMIC_RELEASE);
	pthread_join(device, NULL);
}

static int run(const struct test_case *row)
{
	struct world world = { .done = false };
	struct drain_totals totals;
	uint64_t lost, told;
	pthread_t drainer;
	bool right;

	if (!begin(&world, row) || pthread_create(&drainer, NULL, drain_lanes, &world))
		return 2;
	write_all(&world, row);
	disarm();
	__atomic_store_n(&world.done, true, __ATOMIC_RELEASE);
	pthread_join(drainer, NULL);
	totals = drain_totals(world.drain);
	lost = totals.lost - the.page->lanes[LANE_META_SLOT].lost;
	told = world.read + lost;
	right = world.written > 0 && !totals.damaged && (row->peeks && row->steals ? told >= world.written && world.read <= world.written : told == world.written);
	right = right && (row->steals ? lost > 0 : lost == 0);
	printf("%s: %llu written, %llu read, %llu lost, %llu damaged, %llu windows\n", row->name, (unsigned long long)world.written, (unsigned long long)world.read, (unsigned long long)lost,
	       (unsigned long long)totals.damaged, (unsigned long long)the.page->window_count);
	drain_close(world.drain);
	pool_close(&world.pool);
	return right ? 0 : 1;
}

int main(int count, char **words)
{
	for (size_t i = 0; count == 2 && i < sizeof cases / sizeof *cases; i++)
		if (strcmp(words[1], cases[i].name) == 0)
			return run(&cases[i]);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		printf("%s\n", cases[i].name);
	return 2;
}
