/* What the sampler's two threads do: when to look, and telling of what was seen. What a look does is watch.c's, what it means digest.c's. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "session/sampler_state.h"
#include "session/switching.h"

#define MS 1000000ull
#define CENSUS_NS (50 * MS)
#define LOAD_NS (250 * MS) /* how often it is asked whether telling keeps up */
enum { SAMPLER_PRIORITY = -10, LOAD_HIGH = 50 };

static void end_worker(struct sampler *sampler, struct worker *worker)
{
	pthread_mutex_lock(&sampler->lock);
	worker->ended = true;
	pthread_cond_broadcast(&sampler->changed);
	pthread_mutex_unlock(&sampler->lock);
}

/* ---- looking ---- */

/* What samples that bring BYTES of stack together cost. */
static uint64_t perf_ns(const struct sampler *sampler, uint64_t samples, uint64_t bytes)
{
	uint64_t more_ns = sampler->perf_most_ns > sampler->perf_least_ns ? sampler->perf_most_ns - sampler->perf_least_ns : 0;
	double parts = ((double)bytes - (double)samples * PERF_STACK_LEAST) / (PERF_STACK_MAX - PERF_STACK_LEAST);

	return samples * sampler->perf_least_ns + (uint64_t)(parts > 0 ? parts * (double)more_ns : 0);
}

static void tell_perf(struct sampler *sampler)
{
	const struct perf_totals perf = perf_totals(sampler->perf);

	sampler->totals.perf = perf;
	sampler->totals.perf_rate_hz = sampler->pace.perf_rate_hz;
	sampler->totals.perf_cost_ns = perf_ns(sampler, 1, perf.stack_bytes);
	sampler->totals.perf_ns = perf_ns(sampler, perf.samples + perf.without_stack, perf.copied_bytes);
}

static void tell_totals(struct sampler *sampler)
{
	pthread_mutex_lock(&sampler->lock);
	sampler->totals.looks++;
	sampler->totals.failed += sampler->failed;
	sampler->totals.watch = sampler->watch.totals;
	sampler->totals.holds = looker_hold_totals(sampler->looker);
	sampler->totals.torn = looker_torn(sampler->looker);
	sampler->totals.every_ns = pace_every_ns(&sampler->pace);
	sampler->totals.cost_ns = clock_thread_ns();
	sampler->totals.sights_lost = sampler->lost_seen;
	if (sampler->perf)
		tell_perf(sampler);
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
	if (sampler->perf && (load > LOAD_HIGH || lost > sampler->lost_seen) && pace_perf_overrun(&sampler->pace))
		perf_rate(sampler->perf, sampler->pace.perf_rate_hz);
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

/*
 * A thread's event has a timer, which is stopped and started at each switch; and where it is the CPU's next one, so is the processor's own, which takes far longer (5 to
 * 8 µs in a virtual machine, Linux 6.18). How often that is depends on how much of a period is left: the middles of its quarters stand for all.
 */
enum { QUARTERS = PACE_PARTS, PRICED_HZ_MOST = 4000 /* a slow machine shall not do nothing else */ };
struct quarters { const struct sampler *sampler; struct perf *perf; };

static bool quarter_add(void *context, const pid_t tids[2], int round)
{
	struct quarters *quarters = context;
	const struct sampler *sampler = quarters->sampler;
	uint32_t rate_hz = pace_part_hz(&sampler->pace, (uint32_t)round);
	struct error err;

	if (perf_open(rate_hz < PRICED_HZ_MOST ? rate_hz : PRICED_HZ_MOST, PERF_STACK_LEAST, !pace_is_fast(&sampler->pace), &quarters->perf, &err) < 0)
		return false;
	if (sampler->settings.counters)
		perf_count(quarters->perf);
	if (perf_add(quarters->perf, tids[0]) == 0 && perf_add(quarters->perf, tids[1]) == 0)
		return true;
	perf_close(quarters->perf);
	return false;
}

static void quarter_remove(void *context)
{
	struct quarters *quarters = context;

	perf_close(quarters->perf);
}

/* It takes some: where others had the CPU while it went without, so that nothing was seen, it is measured again. */
static uint64_t switch_ns(const struct sampler *sampler)
{
	struct quarters quarters = { .sampler = sampler };
	struct switching_load load = { quarter_add, quarter_remove, &quarters, QUARTERS };
	uint64_t extra_ns = 0;

	for (int tries = 0; tries < 3 && !extra_ns; tries++)
		extra_ns = switching_extra_ns(&load);
	return extra_ns;
}

static bool come_and_go(void *context, const pid_t tids[2], int round)
{
	if (!quarter_add(context, tids, round))
		return false;
	quarter_remove(context);
	return true;
}

static void leave(void *context)
{
	(void)context;
}

/* While perf_event rests: its events are closed, but the kernel goes on looking for a while. */
static uint64_t resting_switch_ns(const struct sampler *sampler)
{
	struct quarters quarters = { .sampler = sampler };
	struct switching_load load = { come_and_go, leave, &quarters, 1 };

	return switching_extra_ns(&load);
}

/* What a sample takes of a thread's time is measured on ourselves. */
static void begin_perf(struct sampler *sampler)
{
	if (!sampler->perf)
		return;
	sampler->perf_least_ns = perf_cost_ns(PERF_STACK_LEAST, !pace_is_fast(&sampler->pace), sampler->settings.counters);
	sampler->perf_most_ns = perf_cost_ns(PERF_STACK_MAX, !pace_is_fast(&sampler->pace), sampler->settings.counters);
	if (!sampler->perf_least_ns)
		sampler->perf_least_ns = sampler->perf_most_ns; /* it could not be measured */
}

/* After the first look: samples are taken meanwhile. */
static void price_switches(struct sampler *sampler)
{
	uint64_t on_ns = sampler->perf ? switch_ns(sampler) : 0, resting_ns = sampler->perf ? resting_switch_ns(sampler) : 0;

	pthread_mutex_lock(&sampler->lock);
	sampler->totals.switch_ns = sampler->turns.switch_ns = on_ns;
	sampler->turns.resting_ns = resting_ns < on_ns ? resting_ns : on_ns;
	pthread_mutex_unlock(&sampler->lock);
	sampler->switches_priced = true;
}

static void give_up_perf(struct sampler *sampler)
{
	char why[160];

	snprintf(why, sizeof why, "given up, as each switch of a thread took %llu ns longer, all together more than a hundred times what --max-overhead leaves for it", (unsigned long long)sampler->totals.switch_ns);
	watch_give_up_perf(&sampler->watch, why);
}

/* Where switches of threads cost more than they may perf_event is on by turns. After a look: what follows begins where that has ended. */
static void take_turns(struct sampler *sampler, uint64_t now_ns)
{
	struct watch *watch = &sampler->watch;
	uint64_t ns = sampler->perf_told_ns ? now_ns - sampler->perf_told_ns : 0;
	bool rests, useless;

	if (!sampler->perf)
		return;
	pthread_mutex_lock(&sampler->lock);
	sampler->totals.perf_open_ns += ns;
	sampler->totals.perf_on_ns += sampler->perf_on ? ns : 0;
	rests = sampler->turns.rests;
	useless = sampler->turns.useless;
	pthread_mutex_unlock(&sampler->lock);
	sampler->perf_told_ns = now_ns;
	if (useless && !watch->perf_given_up)
		give_up_perf(sampler);
	else if (!watch->perf_given_up && rests != watch->perf_rests)
		watch_rest_perf(watch, rests);
	pthread_mutex_lock(&sampler->lock);
	sampler->perf_on = !watch->perf_given_up && !watch->perf_rests;
	pthread_mutex_unlock(&sampler->lock);
}

/* Samples with more stack than before cost more. */
static void price_perf(struct sampler *sampler)
{
	uint32_t stack_bytes = sampler->perf ? perf_totals(sampler->perf).stack_bytes : 0;

	if (stack_bytes <= sampler->priced_bytes)
		return;
	sampler->priced_bytes = stack_bytes;
	if (pace_perf_costs(&sampler->pace, perf_ns(sampler, 1, stack_bytes)))
		perf_rate(sampler->perf, sampler->pace.perf_rate_hz);
}

/* One look at all that is due, and what it cost. */
static void look_once(struct sampler *sampler, uint64_t now_ns, uint64_t begin_ns)
{
	uint64_t holds = looker_hold_totals(sampler->looker).count, stolen_ns = sampler->watch.totals.stolen_ns;

	sampler->watch.weight_max_ns = pace_every_ns(&sampler->pace) * WEIGHT_LOOKS;
	sampler->watch.stand_most_ns = pace_stand_most_ns(&sampler->pace);
	watch_once(&sampler->watch);
	price_perf(sampler);
	take_turns(sampler, now_ns);
	check_load(sampler, now_ns);
	tell_totals(sampler);
	pace_looked(&sampler->pace, clock_thread_ns() - begin_ns, looker_hold_totals(sampler->looker).count - holds, sampler->watch.totals.stolen_ns - stolen_ns);
}

void *sampler_look_again(void *context)
{
	struct sampler *sampler = context;
	uint64_t now_ns, census_ns = 0;

	setpriority(PRIO_PROCESS, 0, SAMPLER_PRIORITY); /* of this thread, where it is permitted: a sampler that waits for a CPU sees what runs when it has one */
	begin_holding(sampler);
	begin_perf(sampler);
	do {
		uint64_t begin_ns = clock_thread_ns();

		now_ns = clock_monotonic_ns();
		if (now_ns >= census_ns) {
			if (!take_census(sampler))
				break;
			census_ns = now_ns + CENSUS_NS;
		}
		look_once(sampler, now_ns, begin_ns);
		if (!sampler->switches_priced)
			price_switches(sampler);
	} while (wait_until(sampler, now_ns + pace_next_ns(&sampler->pace)));
	tell_totals(sampler);
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
	sampler->totals.telling_ns = clock_thread_ns();
	pthread_mutex_unlock(&sampler->lock);
}

void *sampler_tell_again(void *context)
{
	struct sampler *sampler = context;
	struct sight_wish wish;
	struct sight *sight;

	while ((sight = sights_pop(&sampler->sights))) {
		if (sampler->joiner)
			joiner_refresh(sampler->joiner);
		digest_tell(sampler->digest, sight);
		if (digest_wants(sampler->digest, sight, &wish))
			sights_ask(&sampler->sights, wish);
		free(sight);
		hand_over(sampler);
	}
	digest_end(sampler->digest);
	hand_over(sampler);
	end_worker(sampler, &sampler->telling);
	return NULL;
}
