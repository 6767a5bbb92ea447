/* A sampler's beginning and end, and handing over. What its threads do is sampler_work.c's. */
#include "session/sampler.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/thread.h"
#include "session/capture.h"
#include "session/sampler_state.h"

#define MS 1000000ull
enum { STOP_WAIT_MS = 250, CLOSE_WAIT_MS = 10000 };

static void free_all(struct sampler *sampler)
{
	watch_done(&sampler->watch);
	perf_close(sampler->perf);
	digest_close(sampler->digest);
	joiner_close(sampler->joiner);
	looker_close(sampler->looker);
	census_done(&sampler->census);
	sights_done(&sampler->sights);
	event_builder_done(&sampler->building);
	event_builder_done(&sampler->ready);
	if (sampler->wake_fd >= 0)
		close(sampler->wake_fd);
	pthread_cond_destroy(&sampler->changed);
	pthread_mutex_destroy(&sampler->lock);
	free(sampler);
}

static int start(struct sampler *sampler, struct worker *worker, void *(*work)(void *), struct error *err)
{
	int result = thread_start(&worker->thread, work, sampler);

	return result ? fail(err, ERR_MEMORY, "starting the sampler: %s", strerror(result)) : 0;
}

/* Which way native frames come; where none does, Python frames alone are sampled. */
static void choose_ways(struct sampler *sampler)
{
	const struct sampler_settings *settings = &sampler->settings;
	struct sampler_ways *ways = &sampler->totals.ways;
	struct error err = { 0 };

	if (settings->native == NATIVE_NONE)
		return;
	if (settings->native != NATIVE_HOLD) {
		ways->perf = perf_possible(sampler->facts->pid, &err) == 0 && perf_open(settings->rate_hz, PERF_STACK_LEAST, !pace_is_fast(&sampler->pace), &sampler->perf, &err) == 0;
		if (!ways->perf)
			snprintf(ways->why_not_perf, sizeof ways->why_not_perf, "%.200s", err.text);
	}
	if (ways->perf && settings->counters)
		perf_count(sampler->perf);
	if (!ways->perf && settings->native == NATIVE_AUTO) {
		memcpy(ways->why_not_native, ways->why_not_perf, sizeof ways->why_not_native);
		return;
	}
	ways->native = joiner_open(settings->target, settings->procfs, settings->debuginfod, &sampler->joiner, &err) == 0;
	if (ways->native) {
		snprintf(ways->why_not_debuginfod, sizeof ways->why_not_debuginfod, "%s", joiner_debuginfod_problem(sampler->joiner));
		return;
	}
	snprintf(ways->why_not_native, sizeof ways->why_not_native, "%.200s", err.text);
	ways->perf = false;
	perf_close(sampler->perf);
	sampler->perf = NULL;
}

static void init(struct sampler *sampler, const struct sampler_settings *settings)
{
	pthread_condattr_t monotonic;

	sampler->settings = *settings;
	sampler->facts = target_facts(settings->target);
	pace_init(&sampler->pace, settings->rate_hz, settings->max_overhead_ppm, clock_monotonic_ns());
	perf_turns_init(&sampler->turns, settings->max_overhead_ppm, clock_monotonic_ns(), clock_monotonic_ns());
	pace_share(&sampler->pace, settings->share ? settings->share : 1);
	pace_cpus(&sampler->pace, (uint32_t)capture_affinity(sampler->facts->pid));
	pthread_mutex_init(&sampler->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&sampler->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	sights_init(&sampler->sights);
	census_init(&sampler->census, settings->procfs, sampler->facts->pid, sampler->facts->pid != sampler->facts->inner_pid, settings->runtime);
	sampler->wake_fd = eventfd(0, EFD_CLOEXEC);
	sampler->busy = true;
}

int sampler_open(const struct sampler_settings *settings, struct sampler **out, struct error *err)
{
	struct sampler *sampler = calloc(1, sizeof *sampler);
	struct digest_settings digest = { .target = settings->target, .runtime = settings->runtime.start, .clock = settings->clock, .tsc = settings->tsc,
		.syscalls = settings->syscalls, .procfs = settings->procfs };

	if (!sampler)
		return fail(err, ERR_MEMORY, "sampling");
	init(sampler, settings);
	if (sampler->wake_fd < 0) {
		fail(err, error_of(errno, ERR_MEMORY), "sampling: %s", strerror(errno));
		goto out;
	}
	choose_ways(sampler);
	digest.builder = &sampler->building;
	digest.joiner = sampler->joiner;
	if (looker_open(settings->target, settings->procfs, settings->runtime.start, &sampler->looker, err) < 0 || digest_open(&digest, &sampler->digest, err) < 0)
		goto out;
	sampler->watch = (struct watch){ .census = &sampler->census, .looker = sampler->looker, .sights = &sampler->sights, .perf = sampler->perf, .native = sampler->joiner != NULL,
		.clock_ahead_ns = sampler->facts->own_clock_ahead_ns };
	sampler->totals.every_ns = pace_every_ns(&sampler->pace);
	if (start(sampler, &sampler->telling, sampler_tell_again, err) < 0)
		goto out;
	if (start(sampler, &sampler->looking, sampler_look_again, err) < 0) {
		sights_close(&sampler->sights);
		pthread_join(sampler->telling.thread, NULL);
		goto out;
	}
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

uint64_t sampler_stolen_ns(struct sampler *sampler)
{
	struct sampler_totals totals = sampler_totals(sampler);

	return totals.watch.stolen_ns + totals.perf_ns + totals.switches_ns;
}

void sampler_switched(struct sampler *sampler, uint64_t more, uint64_t cpu_ns)
{
	uint64_t now_ns = clock_monotonic_ns();

	pthread_mutex_lock(&sampler->lock);
	if (!sampler->paused && (sampler->totals.perf.threads || sampler->turns.rests)) /* those that come in a rest are not watched yet */
		perf_turns_switched(&sampler->turns, more, sampler->perf_on, cpu_ns, now_ns);
	sampler->totals.switches_ns = perf_turns_spent_ns(&sampler->turns);
	pthread_mutex_unlock(&sampler->lock);
}

static struct timespec time_after(uint64_t wait_ms)
{
	uint64_t due_ns = clock_monotonic_ns() + wait_ms * MS;

	return (struct timespec){ (time_t)(due_ns / 1000000000), (long)(due_ns % 1000000000) };
}

/* Under the lock, after a flag has changed. */
static void wake(struct sampler *sampler)
{
	uint64_t one = 1;
	ssize_t written = write(sampler->wake_fd, &one, sizeof one);

	(void)written; /* can only fail when it was woken very often before */
	pthread_cond_broadcast(&sampler->changed);
}

void sampler_pause(struct sampler *sampler, bool paused)
{
	struct timespec due = time_after(STOP_WAIT_MS);

	pthread_mutex_lock(&sampler->lock);
	sampler->paused = paused;
	wake(sampler);
	while (paused && sampler->busy && !sampler->looking.ended && pthread_cond_timedwait(&sampler->changed, &sampler->lock, &due) == 0)
		;
	pthread_mutex_unlock(&sampler->lock);
}

static bool end_within(struct sampler *sampler, struct worker *worker, uint64_t wait_ms)
{
	struct timespec due = time_after(wait_ms);
	bool ended;

	if (worker->joined)
		return true;
	pthread_mutex_lock(&sampler->lock);
	while (!worker->ended && pthread_cond_timedwait(&sampler->changed, &sampler->lock, &due) == 0)
		;
	ended = worker->ended;
	pthread_mutex_unlock(&sampler->lock);
	if (ended) {
		pthread_join(worker->thread, NULL);
		worker->joined = true;
	}
	return ended;
}

static void tell_to_stop(struct sampler *sampler)
{
	pthread_mutex_lock(&sampler->lock);
	sampler->stop = true;
	wake(sampler);
	pthread_mutex_unlock(&sampler->lock);
}

bool sampler_stop(struct sampler *sampler)
{
	if (!sampler)
		return true;
	tell_to_stop(sampler);
	return end_within(sampler, &sampler->looking, STOP_WAIT_MS);
}

bool sampler_finish(struct sampler *sampler)
{
	return !sampler || end_within(sampler, &sampler->telling, CLOSE_WAIT_MS);
}

void sampler_close(struct sampler *sampler)
{
	if (!sampler)
		return;
	tell_to_stop(sampler);
	if (end_within(sampler, &sampler->looking, CLOSE_WAIT_MS) && end_within(sampler, &sampler->telling, CLOSE_WAIT_MS)) {
		free_all(sampler);
		return;
	}
	if (!sampler->looking.joined)
		pthread_detach(sampler->looking.thread);
	if (!sampler->telling.joined)
		pthread_detach(sampler->telling.thread);
}
