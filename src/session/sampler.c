/* The sampler's two threads: when to look, and handing over. What a look does is watch.c's, what it means digest.c's. */
#include "session/sampler.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define MS 1000000ull
#define CENSUS_NS (50 * MS)
#define SLOWEST_NS (1000 * MS)
#define LOAD_NS (250 * MS) /* how often it is asked whether telling keeps up */
enum {
	STOP_WAIT_MS = 250, CLOSE_WAIT_MS = 10000,
	COST_PART_MOST = 20 /* a look may take a twentieth of the time between two */, COST_PART_FAST = 4, FAST_HZ = 500,
	SAMPLER_PRIORITY = -10,
	PERF_STACK_BYTES = 32768, /* numpy's calls take more than 16 KiB; what lies further out is read later, when it may have changed */
	PERF_RATE_LEAST = 10, LOAD_HIGH = 50,
};

struct worker {
	pthread_t thread;
	bool joined, ended; /* ended: under the lock */
};

struct sampler {
	struct sampler_settings settings;
	const struct target_facts *facts;
	struct census census;
	struct looker *looker;
	struct joiner *joiner;
	struct digest *digest;
	struct perf *perf;
	struct sights sights;
	struct watch watch;
	struct event_builder building; /* of the sight at hand */
	uint64_t random, cost_ns;      /* cost: CPU time of a look, smoothed */
	uint64_t load_ns, lost_seen;   /* when the load is looked at again; what was lost until then */
	uint32_t perf_rate_hz;
	bool failed;                   /* the interpreter could not be read at the last census */
	int wake_fd; /* to be read when one of the flags below has changed */

	struct worker looking, telling;
	pthread_mutex_t lock;          /* of all below */
	pthread_cond_t changed;
	bool stop, paused, busy;       /* busy: a look is in progress */
	struct event_builder ready;
	struct sampler_totals totals;
};

static uint64_t own_cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void end_worker(struct sampler *sampler, struct worker *worker)
{
	pthread_mutex_lock(&sampler->lock);
	worker->ended = true;
	pthread_cond_broadcast(&sampler->changed);
	pthread_mutex_unlock(&sampler->lock);
}

/* ---- looking ---- */

/* Even steps of the clock could beat with the target's own; so each interval is drawn from half to one and a half of it. */
static uint64_t jitter(struct sampler *sampler, uint64_t interval_ns)
{
	sampler->random ^= sampler->random << 13;
	sampler->random ^= sampler->random >> 7;
	sampler->random ^= sampler->random << 17;
	return interval_ns / 2 + sampler->random % (interval_ns + 1);
}

/* Then looks come so soon after each other that perf_event need not wake us for each sample, which costs the target a third of the sample. */
static bool is_fast(const struct sampler *sampler)
{
	return sampler->settings.rate_hz >= FAST_HZ;
}

/* Who asks for many looks wants to pay for them. */
static uint64_t interval(const struct sampler *sampler)
{
	uint64_t asked_ns = 1000 * MS / sampler->settings.rate_hz, least_ns = sampler->cost_ns * (is_fast(sampler) ? COST_PART_FAST : COST_PART_MOST);

	if (least_ns > SLOWEST_NS)
		return SLOWEST_NS;
	return least_ns > asked_ns ? least_ns : asked_ns;
}

static void tell_totals(struct sampler *sampler, uint64_t every_ns)
{
	pthread_mutex_lock(&sampler->lock);
	sampler->totals.looks++;
	sampler->totals.failed += sampler->failed;
	sampler->totals.watch = sampler->watch.totals;
	sampler->totals.holds = looker_hold_totals(sampler->looker);
	sampler->totals.torn = looker_torn(sampler->looker);
	sampler->totals.every_ns = every_ns;
	sampler->totals.cost_ns = own_cpu_ns();
	sampler->totals.sights_lost = sampler->lost_seen;
	if (sampler->perf) {
		sampler->totals.perf = perf_totals(sampler->perf);
		sampler->totals.perf_rate_hz = sampler->perf_rate_hz;
	}
	pthread_mutex_unlock(&sampler->lock);
}

/* Stands still while it is paused. False: told to stop. */
static bool may_go_on(struct sampler *sampler)
{
	bool paused = false, stop;

	pthread_mutex_lock(&sampler->lock);
	while (sampler->paused && !sampler->stop) {
		if (!paused && sampler->perf)
			perf_pause(sampler->perf, true);
		paused = true;
		pthread_cond_wait(&sampler->changed, &sampler->lock);
	}
	stop = sampler->stop;
	pthread_mutex_unlock(&sampler->lock);
	if (paused && sampler->perf)
		perf_pause(sampler->perf, false);
	/* What happened meanwhile nobody knows. */
	for (size_t i = 0; paused && i < sampler->census.count; i++)
		sampler->census.threads[i].looked_ns = 0;
	return !stop;
}

static void set_busy(struct sampler *sampler, bool busy)
{
	pthread_mutex_lock(&sampler->lock);
	sampler->busy = busy;
	pthread_cond_broadcast(&sampler->changed);
	pthread_mutex_unlock(&sampler->lock);
}

/* Waits until DUE, and takes samples of perf_event as they come. False: told to stop. */
static bool wait_until(struct sampler *sampler, uint64_t due_ns)
{
	struct pollfd waits[] = { { .fd = sampler->wake_fd, .events = POLLIN }, { .fd = sampler->perf ? perf_descriptor(sampler->perf) : -1, .events = POLLIN } };
	uint64_t now_ns, count;
	bool go_on;

	set_busy(sampler, false);
	while ((go_on = may_go_on(sampler)) && (now_ns = clock_monotonic_ns()) < due_ns) {
		struct timespec pause = { (time_t)((due_ns - now_ns) / 1000000000), (long)((due_ns - now_ns) % 1000000000) };

		if (ppoll(waits, 2, &pause, NULL) < 0 && errno != EINTR)
			return false;
		if (waits[0].revents && read(sampler->wake_fd, &count, sizeof count) < 0)
			return false;
		if (waits[1].revents)
			watch_perf(&sampler->watch);
	}
	set_busy(sampler, go_on);
	watch_perf(&sampler->watch);
	return go_on;
}

/* Samples that come faster than they can be told are fewer from now on. */
static void check_load(struct sampler *sampler, uint64_t now_ns)
{
	uint64_t lost;
	unsigned load;

	if (now_ns < sampler->load_ns)
		return;
	sampler->load_ns = now_ns + LOAD_NS;
	load = sights_load(&sampler->sights, &lost);
	if (sampler->perf && sampler->perf_rate_hz > PERF_RATE_LEAST && (load > LOAD_HIGH || lost > sampler->lost_seen)) {
		sampler->perf_rate_hz = sampler->perf_rate_hz / 2 > PERF_RATE_LEAST ? sampler->perf_rate_hz / 2 : PERF_RATE_LEAST;
		perf_rate(sampler->perf, sampler->perf_rate_hz);
	}
	sampler->lost_seen = lost;
}

static pid_t outer_tid(void *context, pid_t tid)
{
	const struct seen_thread *thread = census_by_inner(context, tid);

	return thread ? thread->tid : 0;
}

static void thread_gone(void *context, pid_t tid)
{
	const struct sampler *sampler = context;

	if (!sampler->perf)
		return;
	perf_remove(sampler->perf, tid);
}

static bool take_census(struct sampler *sampler)
{
	watch_perf(&sampler->watch); /* of threads that have just ended */
	if (!census_read(&sampler->census, thread_gone, sampler))
		return false;
	sampler->failed = !looker_threads(sampler->looker, sampler->census.namespaced ? outer_tid : NULL, &sampler->census);
	watch_threads(&sampler->watch);
	return true;
}

/* In the thread that looks: what holds threads ends with the one that started it. */
static void begin_holding(struct sampler *sampler)
{
	struct error refused = { 0 };
	bool wanted = sampler->joiner && (sampler->settings.native == NATIVE_HOLD || sampler->settings.native == NATIVE_BOTH);
	int result = wanted ? looker_hold(sampler->looker, &refused) : -1;

	pthread_mutex_lock(&sampler->lock);
	sampler->totals.ways.holds = result == 0;
	if (wanted && result < 0)
		snprintf(sampler->totals.ways.why_not_held, sizeof sampler->totals.ways.why_not_held, "%.200s", refused.text);
	pthread_mutex_unlock(&sampler->lock);
}

/* How much of a thread's time samples may take, and what one takes. */
static void begin_perf(struct sampler *sampler)
{
	uint64_t cost_ns = sampler->perf ? perf_cost_ns(PERF_STACK_BYTES, !is_fast(sampler)) : 0, most_hz;

	pthread_mutex_lock(&sampler->lock);
	sampler->totals.perf_cost_ns = cost_ns;
	pthread_mutex_unlock(&sampler->lock);
	if (!cost_ns || !sampler->settings.max_overhead_ppm)
		return;
	most_hz = sampler->settings.max_overhead_ppm * 1000ull / cost_ns;
	if (most_hz < PERF_RATE_LEAST)
		most_hz = PERF_RATE_LEAST;
	if (most_hz < sampler->perf_rate_hz) {
		sampler->perf_rate_hz = (uint32_t)most_hz;
		perf_rate(sampler->perf, sampler->perf_rate_hz);
	}
}

static void *look_again(void *context)
{
	struct sampler *sampler = context;
	uint64_t now_ns = clock_monotonic_ns(), census_ns = 0, every_ns = interval(sampler);

	sampler->random = now_ns | 1;
	setpriority(PRIO_PROCESS, 0, SAMPLER_PRIORITY); /* of this thread, where it is permitted: a sampler that waits for a CPU sees what runs when it has one */
	begin_holding(sampler);
	begin_perf(sampler);
	do {
		uint64_t begin_ns = own_cpu_ns();

		now_ns = clock_monotonic_ns();
		if (now_ns >= census_ns) {
			if (!take_census(sampler))
				break;
			census_ns = now_ns + CENSUS_NS;
		}
		sampler->watch.weight_max_ns = every_ns * WEIGHT_LOOKS;
		watch_once(&sampler->watch);
		check_load(sampler, now_ns);
		tell_totals(sampler, every_ns);
		sampler->cost_ns = (sampler->cost_ns * 15 + (own_cpu_ns() - begin_ns)) / 16;
		every_ns = interval(sampler);
	} while (wait_until(sampler, now_ns + jitter(sampler, every_ns)));
	tell_totals(sampler, every_ns);
	sights_close(&sampler->sights);
	end_worker(sampler, &sampler->looking);
	return NULL;
}

/* ---- telling ---- */

static void hand_over(struct sampler *sampler)
{
	struct digest_totals totals = digest_totals(sampler->digest);

	pthread_mutex_lock(&sampler->lock);
	event_builder_move(&sampler->ready, &sampler->building);
	sampler->totals.digest = totals;
	sampler->totals.telling_ns = own_cpu_ns();
	pthread_mutex_unlock(&sampler->lock);
}

static void *tell_again(void *context)
{
	struct sampler *sampler = context;
	struct sight *sight;

	while ((sight = sights_pop(&sampler->sights))) {
		if (sampler->joiner)
			joiner_refresh(sampler->joiner);
		digest_tell(sampler->digest, sight);
		if (!sight->running && !sight->again && digest_wants_hold(sampler->digest))
			sights_ask(&sampler->sights, sight->tid);
		free(sight);
		hand_over(sampler);
	}
	end_worker(sampler, &sampler->telling);
	return NULL;
}

/* ---- beginning and end ---- */

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
	sigset_t all, before;
	int result;

	/* Signals are for the session's thread. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	result = pthread_create(&worker->thread, NULL, work, sampler);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (result)
		return fail(err, ERR_MEMORY, "starting the sampler: %s", strerror(result));
	return 0;
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
		ways->perf = perf_possible(sampler->facts->pid, &err) == 0 && perf_open(settings->rate_hz, PERF_STACK_BYTES, !is_fast(sampler), &sampler->perf, &err) == 0;
		if (!ways->perf)
			snprintf(ways->why_not_perf, sizeof ways->why_not_perf, "%.200s", err.text);
	}
	if (!ways->perf && settings->native == NATIVE_AUTO) {
		memcpy(ways->why_not_native, ways->why_not_perf, sizeof ways->why_not_native);
		return;
	}
	ways->native = joiner_open(settings->target, settings->procfs, settings->debuginfod, &sampler->joiner, &err) == 0;
	if (ways->native)
		return;
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
	sampler->perf_rate_hz = settings->rate_hz;
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
	struct digest_settings digest = { .target = settings->target, .runtime = settings->runtime.start, .clock = settings->clock, .tsc = settings->tsc };

	if (!sampler)
		return fail(err, ERR_MEMORY, "sampling");
	init(sampler, settings);
	if (sampler->wake_fd < 0) {
		fail(err, ERR_MEMORY, "sampling: %s", strerror(errno));
		goto out;
	}
	choose_ways(sampler);
	digest.builder = &sampler->building;
	digest.joiner = sampler->joiner;
	if (looker_open(settings->target, settings->procfs, settings->runtime.start, &sampler->looker, err) < 0 || digest_open(&digest, &sampler->digest, err) < 0)
		goto out;
	sampler->watch = (struct watch){ .census = &sampler->census, .looker = sampler->looker, .sights = &sampler->sights, .perf = sampler->perf, .native = sampler->joiner != NULL };
	sampler->totals.every_ns = interval(sampler);
	if (start(sampler, &sampler->telling, tell_again, err) < 0)
		goto out;
	if (start(sampler, &sampler->looking, look_again, err) < 0) {
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

	return totals.watch.stolen_ns + (totals.perf.samples + totals.perf.without_stack) * totals.perf_cost_ns;
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
