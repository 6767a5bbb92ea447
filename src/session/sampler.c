/* The sampler's thread: when to look, and handing over. What a look does is watch.c's. */
#include "session/sampler.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "session/watch.h"

#define MS 1000000ull
#define CENSUS_NS (50 * MS)
#define SLOWEST_NS (1000 * MS)
enum { STOP_WAIT_MS = 250, CLOSE_WAIT_MS = 10000, COST_PART_MOST = 20 /* a look may take a twentieth of the time between two */, COST_PART_FAST = 4, FAST_HZ = 500, SAMPLER_PRIORITY = -10 };

struct sampler {
	struct sampler_settings settings;
	struct remote_memory memory;
	struct pyreader *reader;
	struct census census;
	struct stacks *stacks;
	struct natives *natives;
	struct watch watch;
	struct event_builder building; /* of the look in progress */
	struct sampler_ways ways;
	uint64_t random, cost_ns;      /* cost: CPU time of a look, smoothed */

	pthread_t thread;
	bool joined;
	pthread_mutex_t lock;          /* of all below */
	pthread_cond_t changed;
	bool stop, ended, paused, looking;
	struct event_builder ready;
	struct sampler_totals totals;
};

static int memory_read(void *context, uint64_t addr, void *buffer, size_t size)
{
	return target_read(context, addr, buffer, size);
}

static uint64_t own_cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Even steps of the clock could beat with the target's own; so each interval is drawn from half to one and a half of it. */
static uint64_t jitter(struct sampler *sampler, uint64_t interval_ns)
{
	sampler->random ^= sampler->random << 13;
	sampler->random ^= sampler->random >> 7;
	sampler->random ^= sampler->random << 17;
	return interval_ns / 2 + sampler->random % (interval_ns + 1);
}

/* Who asks for many looks wants to pay for them. */
static uint64_t interval(const struct sampler *sampler)
{
	uint64_t asked_ns = 1000 * MS / sampler->settings.rate_hz, least_ns = sampler->cost_ns * (sampler->settings.rate_hz >= FAST_HZ ? COST_PART_FAST : COST_PART_MOST);

	if (least_ns > SLOWEST_NS)
		return SLOWEST_NS;
	return least_ns > asked_ns ? least_ns : asked_ns;
}

static void hand_over(struct sampler *sampler, uint64_t every_ns)
{
	pthread_mutex_lock(&sampler->lock);
	sampler->totals.ways = sampler->ways;
	event_builder_move(&sampler->ready, &sampler->building);
	sampler->totals.looks++;
	sampler->totals.failed = sampler->watch.failed;
	sampler->totals.samples = sampler->watch.samples;
	sampler->totals.torn = pyreader_torn(sampler->reader);
	sampler->totals.every_ns = every_ns;
	sampler->totals.cost_ns = own_cpu_ns();
	if (sampler->natives)
		sampler->totals.natives = natives_totals(sampler->natives);
	pthread_mutex_unlock(&sampler->lock);
}

/* Sleeps until DUE, or as long as it is paused. False: told to stop. */
static bool sleep_until(struct sampler *sampler, uint64_t due_ns)
{
	struct timespec due = { (time_t)(due_ns / 1000000000), (long)(due_ns % 1000000000) };
	bool stop, paused = false;

	pthread_mutex_lock(&sampler->lock);
	sampler->looking = false;
	pthread_cond_broadcast(&sampler->changed);
	while (!sampler->stop && (sampler->paused ? pthread_cond_wait(&sampler->changed, &sampler->lock) : pthread_cond_timedwait(&sampler->changed, &sampler->lock, &due)) == 0)
		paused = paused || sampler->paused;
	stop = sampler->stop;
	sampler->looking = !stop;
	pthread_mutex_unlock(&sampler->lock);
	/* What happened meanwhile nobody knows. */
	for (size_t i = 0; paused && i < sampler->census.count; i++)
		sampler->census.threads[i].looked_ns = 0;
	return !stop;
}

/* In the sampler's thread: what holds threads ends with the one that started it. */
static void natives_begin(struct sampler *sampler)
{
	const struct sampler_settings *settings = &sampler->settings;
	const struct natives_settings natives = {
		.target = settings->target, .procfs = settings->procfs, .reader = sampler->reader, .stacks = sampler->stacks, .pid = settings->facts->pid,
		.python_minor = settings->facts->python_minor, .debuginfod = settings->debuginfod,
	};
	struct error err = { 0 };
	bool holds;

	if (!settings->native)
		return;
	if (natives_open(&natives, &sampler->natives, &holds, sampler->ways.why_not_held, sizeof sampler->ways.why_not_held, &err) < 0)
		snprintf(sampler->ways.why_not_native, sizeof sampler->ways.why_not_native, "%.200s", err.text);
	sampler->watch.natives = sampler->natives;
	sampler->ways.native = sampler->natives != NULL;
	sampler->ways.holds = sampler->natives && holds;
}

static void *sample(void *context)
{
	struct sampler *sampler = context;
	uint64_t now_ns = clock_monotonic_ns(), census_ns = 0, every_ns = interval(sampler);

	sampler->random = now_ns | 1;
	setpriority(PRIO_PROCESS, 0, SAMPLER_PRIORITY); /* of this thread, where it is permitted: a sampler that waits for a CPU sees what runs when it has one */
	natives_begin(sampler);
	do {
		uint64_t begin_ns = own_cpu_ns(), named_ns = sampler->totals.natives.naming_ns, cost_ns;

		now_ns = clock_monotonic_ns();
		if (now_ns >= census_ns) {
			if (!census_read(&sampler->census))
				break;
			if (sampler->natives)
				natives_refresh(sampler->natives, &sampler->census);
			census_ns = now_ns + CENSUS_NS;
		}
		sampler->watch.weight_max_ns = every_ns * WEIGHT_LOOKS;
		watch_once(&sampler->watch);
		hand_over(sampler, every_ns);
		/* Names are looked up once; they say nothing of the looks to come. */
		cost_ns = own_cpu_ns() - begin_ns;
		named_ns = sampler->totals.natives.naming_ns - named_ns;
		sampler->cost_ns = (sampler->cost_ns * 15 + (cost_ns > named_ns ? cost_ns - named_ns : 0)) / 16;
		every_ns = interval(sampler);
	} while (sleep_until(sampler, now_ns + jitter(sampler, every_ns)));
	natives_close(sampler->natives);
	pthread_mutex_lock(&sampler->lock);
	sampler->ended = true;
	pthread_cond_broadcast(&sampler->changed);
	pthread_mutex_unlock(&sampler->lock);
	return NULL;
}

static void free_all(struct sampler *sampler)
{
	watch_done(&sampler->watch);
	stacks_close(sampler->stacks);
	pyreader_close(sampler->reader);
	census_done(&sampler->census);
	event_builder_done(&sampler->building);
	event_builder_done(&sampler->ready);
	pthread_cond_destroy(&sampler->changed);
	pthread_mutex_destroy(&sampler->lock);
	free(sampler);
}

static int start(struct sampler *sampler, struct error *err)
{
	sigset_t all, before;
	int result;

	/* Signals are for the session's thread. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	result = pthread_create(&sampler->thread, NULL, sample, sampler);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (result)
		return fail(err, ERR_MEMORY, "starting the sampler: %s", strerror(result));
	return 0;
}

int sampler_open(const struct sampler_settings *settings, struct sampler **out, struct error *err)
{
	const struct target_facts *facts = settings->facts;
	struct sampler *sampler = calloc(1, sizeof *sampler);
	pthread_condattr_t monotonic;

	if (!sampler)
		return fail(err, ERR_MEMORY, "sampling");
	sampler->settings = *settings;
	sampler->memory = (struct remote_memory){ memory_read, (void *)settings->target };
	pthread_mutex_init(&sampler->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&sampler->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	census_init(&sampler->census, settings->procfs, facts->pid, facts->pid != facts->inner_pid, settings->runtime, settings->runtime_end);
	if (pyreader_open(&sampler->memory, settings->runtime, facts->python_hex, facts->tid_offset, &sampler->reader, err) < 0
	    || stacks_open(sampler->reader, &sampler->building, &sampler->stacks, err) < 0)
		goto out;
	sampler->watch = (struct watch){ .census = &sampler->census, .reader = sampler->reader, .stacks = sampler->stacks, .builder = &sampler->building, .clock = settings->clock, .tsc = settings->tsc };
	sampler->totals.every_ns = interval(sampler);
	sampler->looking = true;
	if (start(sampler, err) < 0)
		goto out;
	*out = sampler;
	return 0;
out:
	free_all(sampler);
	return -1;
}

void sampler_take(struct sampler *sampler, struct event_builder *builder)
{
	struct event_builder taken;

	pthread_mutex_lock(&sampler->lock);
	taken = sampler->ready;
	event_builder_init(&sampler->ready);
	pthread_mutex_unlock(&sampler->lock);
	event_builder_move(builder, &taken);
	event_builder_done(&taken);
}

struct sampler_totals sampler_totals(struct sampler *sampler)
{
	struct sampler_totals totals;

	pthread_mutex_lock(&sampler->lock);
	totals = sampler->totals;
	pthread_mutex_unlock(&sampler->lock);
	return totals;
}

static struct timespec time_after(uint64_t wait_ms)
{
	uint64_t due_ns = clock_monotonic_ns() + wait_ms * MS;

	return (struct timespec){ (time_t)(due_ns / 1000000000), (long)(due_ns % 1000000000) };
}

void sampler_pause(struct sampler *sampler, bool paused)
{
	struct timespec due = time_after(STOP_WAIT_MS);

	pthread_mutex_lock(&sampler->lock);
	sampler->paused = paused;
	pthread_cond_broadcast(&sampler->changed);
	while (paused && sampler->looking && !sampler->ended && pthread_cond_timedwait(&sampler->changed, &sampler->lock, &due) == 0)
		;
	pthread_mutex_unlock(&sampler->lock);
}

static bool end_within(struct sampler *sampler, uint64_t wait_ms)
{
	struct timespec due = time_after(wait_ms);
	bool ended;

	if (sampler->joined)
		return true;
	pthread_mutex_lock(&sampler->lock);
	sampler->stop = true;
	pthread_cond_broadcast(&sampler->changed);
	while (!sampler->ended && pthread_cond_timedwait(&sampler->changed, &sampler->lock, &due) == 0)
		;
	ended = sampler->ended;
	pthread_mutex_unlock(&sampler->lock);
	if (ended) {
		pthread_join(sampler->thread, NULL);
		sampler->joined = true;
	}
	return ended;
}

bool sampler_stop(struct sampler *sampler)
{
	return !sampler || end_within(sampler, STOP_WAIT_MS);
}

void sampler_close(struct sampler *sampler)
{
	if (!sampler)
		return;
	if (end_within(sampler, CLOSE_WAIT_MS))
		free_all(sampler);
	else
		pthread_detach(sampler->thread);
}
