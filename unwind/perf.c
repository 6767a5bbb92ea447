/* An event per thread, with a ring each: threads of one process cannot share one without an event per thread and CPU. */
#include "unwind/perf.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/list.h"
#include "unwind/perf_event.h"

enum {
	RATE_MAX = 10000,
	STACK_STEP = 8192,  /* each time that a thread needs more, its samples bring a multiple of this */
	THREADS_MAX = 1 << 16,
	SAMPLES_PER_PERIOD = 8, PERIODS_PER_SECOND = 10, /* of both the one that is longer */
	SOONEST_NS = 10000, /* Linux 6.18 allows no less */
	TOLD = 16,
	DESCRIPTORS_SPARE = 32, /* for all else that the attacher opens: /proc, libraries */
};

struct perf {
	struct perf_settings settings;
	uint32_t stack_bytes; /* that threads begin with: as much as any has needed */
	uint64_t copied_bytes;
	int epoll;
	uint64_t random;
	struct perf_counts counts;
	uint32_t refused;
	char why[160];
	bool given_up;
	LIST(struct perf_event) threads;
	LIST(pid_t) refusals;
	struct thread_copy copy;
};

/* The software clock has a fixed period, which would march in step with a program that has the same: it is varied. */
static uint64_t vary(struct perf *perf)
{
	uint64_t period = PERF_NS_PER_SECOND / perf->settings.rate_hz;

	perf->random = perf->random * 6364136223846793005ull + 1442695040888963407ull;
	return period - period / 5 + (perf->random >> 33) % (period * 2 / 5);
}

int perf_descriptors_end(void)
{
	struct rlimit limit;

	limit_raise(RLIMIT_NOFILE);
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur > INT_MAX)
		return INT_MAX;
	return (int)limit.rlim_cur - (limit.rlim_cur / 2 < DESCRIPTORS_SPARE ? (int)limit.rlim_cur / 2 : DESCRIPTORS_SPARE);
}

int perf_open(uint32_t rate_hz, uint32_t stack_bytes, bool wakes, struct perf **out, struct error *err)
{
	struct perf *perf;

	if (rate_hz == 0 || rate_hz > RATE_MAX || stack_bytes == 0 || stack_bytes > PERF_STACK_MAX || stack_bytes % 8)
		return fail(err, ERR_USAGE, "cannot sample at %u Hz with %u bytes of stack", rate_hz, stack_bytes);
	perf = calloc(1, sizeof *perf);
	if (!perf)
		return fail(err, ERR_MEMORY, "preparing to sample");
	perf->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (perf->epoll < 0) {
		free(perf);
		return fail(err, ERR_MEMORY, "preparing to sample: %s", strerror(errno));
	}
	perf->settings.rate_hz = rate_hz;
	perf->stack_bytes = stack_bytes;
	perf->settings.wakes = wakes;
	perf->random = (uint64_t)getpid();
	limit_raise(RLIMIT_MEMLOCK);
	perf->settings.descriptors_end = perf_descriptors_end();
	*out = perf;
	return 0;
}

void perf_count(struct perf *perf)
{
	perf->settings.counted = true;
}

static struct perf_event *find(const struct perf *perf, pid_t tid)
{
	for (size_t i = 0; i < perf->threads.count; i++)
		if (perf->threads.items[i].tid == tid)
			return &perf->threads.items[i];
	return NULL;
}

/* Each thread counts once, however often it is tried. */
static void refuse_for_ever(struct perf *perf, pid_t tid)
{
	pid_t *refusal;

	for (size_t i = 0; i < perf->refusals.count; i++)
		if (perf->refusals.items[i] == tid)
			return;
	refusal = list_add(&perf->refusals, THREADS_MAX);
	if (refusal)
		*refusal = tid;
	perf->refused++;
}

static int refuse(struct perf *perf, pid_t tid, const char *what, int error)
{
	snprintf(perf->why, sizeof perf->why, "%s after %zu threads: %s", what, perf->threads.count, strerror(error));
	refuse_for_ever(perf, tid);
	return -1;
}

int perf_descriptor(const struct perf *perf)
{
	return perf->epoll;
}

/*
 * The caller closes it. OWED_NS of CPU time were not told by the event before: its first sample comes so much sooner, or a thread that runs little between two rests would never have
 * one. It comes alone, as others would follow at the same distance until the period is changed.
 */
static enum perf_event_result watch(struct perf *perf, pid_t tid, uint32_t stack_bytes, uint64_t owed_ns, struct perf_event *out)
{
	struct epoll_event wanted = { .events = EPOLLIN | EPOLLET };
	uint64_t period = vary(perf);
	enum perf_event_result result = perf_event_start(&perf->settings, tid, stack_bytes, period > owed_ns + SOONEST_NS ? period - owed_ns : SOONEST_NS, owed_ns > 0, out);

	out->owed_ns = owed_ns;
	out->once = owed_ns > 0;
	if (result != PERF_EVENT_OPEN || epoll_ctl(perf->epoll, EPOLL_CTL_ADD, out->fd, &wanted) == 0)
		return result;
	perf_event_end(out);
	errno = ENOMEM;
	return PERF_EVENT_NO_RING;
}

void perf_remove(struct perf *perf, pid_t tid)
{
	struct perf_event *event = find(perf, tid);

	if (!event)
		return;
	perf_event_end(event);
	*event = perf->threads.items[--perf->threads.count];
}

int perf_add(struct perf *perf, pid_t tid)
{
	static const char *const lacks[] = { [PERF_EVENT_NONE] = "no event", [PERF_EVENT_NO_DESCRIPTOR] = "no descriptor left", [PERF_EVENT_NO_RING] = "no ring", [PERF_EVENT_NO_LOCKED_MEMORY] = "no memory that may be locked left" };
	struct perf_event event, *place = find(perf, tid);
	enum perf_event_result result;

	if (place && place->fd >= 0)
		return 0;
	if (perf->given_up) {
		refuse_for_ever(perf, tid);
		return -1;
	}
	result = watch(perf, tid, place ? place->stack_bytes : perf->stack_bytes, place ? place->owed_ns : 0, &event);
	if (result != PERF_EVENT_OPEN) {
		int error = errno;

		perf_remove(perf, tid);
		return result == PERF_EVENT_GONE ? -1 : refuse(perf, tid, lacks[result], error);
	}
	if (!place)
		place = list_add(&perf->threads, THREADS_MAX);
	if (!place) {
		perf_event_end(&event);
		return refuse(perf, tid, "no memory", ENOMEM);
	}
	*place = event;
	return 0;
}

/* How much stack comes with a sample is fixed when an event is opened. */
void perf_widen(struct perf *perf, pid_t tid, uint32_t stack_bytes)
{
	struct perf_event *event = find(perf, tid), wider;

	stack_bytes = stack_bytes < PERF_STACK_MAX - STACK_STEP ? (stack_bytes + STACK_STEP - 1) / STACK_STEP * STACK_STEP : PERF_STACK_MAX;
	if (!event || event->fd < 0 || event->widest || stack_bytes <= event->stack_bytes)
		return;
	event->widest = watch(perf, tid, stack_bytes, perf_event_owed(&perf->settings, event), &wider) != PERF_EVENT_OPEN;
	if (event->widest)
		return;
	perf_event_end(event);
	*event = wider;
	if (stack_bytes > perf->stack_bytes)
		perf->stack_bytes = stack_bytes;
}

void perf_rest(struct perf *perf)
{
	for (size_t i = 0; i < perf->threads.count; i++) {
		struct perf_event *event = &perf->threads.items[i];

		event->owed_ns = perf_event_owed(&perf->settings, event);
		perf_event_end(event);
	}
}

void perf_give_up(struct perf *perf, const char *why)
{
	perf->given_up = true;
	snprintf(perf->why, sizeof perf->why, "%s", why);
	while (perf->threads.count) {
		pid_t tid = perf->threads.items[0].tid;

		perf_remove(perf, tid);
		refuse_for_ever(perf, tid);
	}
}

static void set_period(struct perf *perf, struct perf_event *event)
{
	uint64_t period = vary(perf);

	event->period_samples = 0;
	ioctl(event->fd, PERF_EVENT_IOC_PERIOD, &period);
	if (event->once)
		ioctl(event->fd, PERF_EVENT_IOC_ENABLE, 0);
	event->once = false;
}

/* Not at every sample: a new period interrupts the thread's CPU and begins anew, and what was left of the old one is not counted. */
static void vary_period(struct perf *perf, struct perf_event *event, uint64_t samples)
{
	event->period_samples += samples;
	if (event->once || (event->period_samples >= SAMPLES_PER_PERIOD && event->period_samples * PERIODS_PER_SECOND >= perf->settings.rate_hz))
		set_period(perf, event);
}

void perf_rate(struct perf *perf, uint32_t rate_hz)
{
	perf->settings.rate_hz = rate_hz;
	for (size_t i = 0; i < perf->threads.count; i++)
		set_period(perf, &perf->threads.items[i]);
}

void perf_pause(struct perf *perf, bool paused)
{
	for (size_t i = 0; i < perf->threads.count; i++)
		ioctl(perf->threads.items[i].fd, paused ? PERF_EVENT_IOC_DISABLE : PERF_EVENT_IOC_ENABLE, 0);
}

struct gaining { struct perf *perf; struct perf_event *event; perf_each *each; void *context; };

/*
 * CPU time since the sample before. More than two periods come of samples that were lost, and of time in the kernel where that may not be sampled: who knows where it went. Linux 6.18 says of
 * each sample that it stands for the period that its event was opened with, whatever it was changed to.
 */
static uint64_t stands_for(const struct perf *perf, struct perf_event *event, uint64_t clock_ns)
{
	uint64_t cpu_ns = clock_ns - event->told_ns + event->owed_ns, most_ns = 2 * PERF_NS_PER_SECOND / perf->settings.rate_hz;

	event->told_ns = clock_ns;
	event->owed_ns = 0;
	return cpu_ns < most_ns ? cpu_ns : most_ns;
}

/* From what counters stand at to what they gained. */
static void gain(void *context, const struct thread_copy *copy, uint64_t clock_ns)
{
	const struct gaining *gaining = context;
	struct thread_copy *own = &gaining->perf->copy;

	for (uint32_t i = 0; i < copy->gained_count; i++) {
		uint64_t now = copy->gained[i], before = gaining->event->counted[i];

		own->gained[i] = now > before ? now - before : 0;
		gaining->event->counted[i] = now;
	}
	gaining->each(gaining->context, own, stands_for(gaining->perf, gaining->event, clock_ns));
}

int perf_read(struct perf *perf, perf_each *each, void *context)
{
	uint64_t before_all = perf->counts.samples;
	struct epoll_event told[TOLD];

	while (epoll_wait(perf->epoll, told, TOLD, 0) == TOLD)
		;

	for (size_t i = 0; i < perf->threads.count; i++) {
		struct perf_event *event = &perf->threads.items[i];
		uint64_t before = perf->counts.samples, head, tail;

		if (event->fd < 0)
			continue;
		head = __atomic_load_n(&event->page->data_head, __ATOMIC_ACQUIRE);
		tail = event->page->data_tail;
		if (head == tail)
			continue;
		tail = perf_parse(perf_event_ring(event), event->ring_size, tail, head, perf->settings.counted, &perf->copy, gain, &(struct gaining){ perf, event, each, context }, &perf->counts);
		__atomic_store_n(&event->page->data_tail, tail, __ATOMIC_RELEASE);
		perf->copied_bytes += (perf->counts.samples - before) * event->stack_bytes;
		vary_period(perf, event, perf->counts.samples - before);
	}
	return (int)(perf->counts.samples - before_all);
}

uint64_t perf_waiting(const struct perf *perf)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < perf->threads.count; i++)
		bytes += perf->threads.items[i].fd < 0 ? 0 : __atomic_load_n(&perf->threads.items[i].page->data_head, __ATOMIC_ACQUIRE) - perf->threads.items[i].page->data_tail;
	return bytes;
}

struct perf_totals perf_totals(const struct perf *perf)
{
	struct perf_totals totals = {
		.samples = perf->counts.samples, .lost = perf->counts.lost, .throttled = perf->counts.throttled, .without_stack = perf->counts.without_stack,
		.stack_bytes = perf->stack_bytes, .copied_bytes = perf->copied_bytes,
		.threads = (uint32_t)perf->threads.count, .refused = perf->refused, .kernel = !perf->settings.user_only,
	};

	memcpy(totals.why, perf->why, sizeof totals.why);
	return totals;
}

void perf_close(struct perf *perf)
{
	if (!perf)
		return;
	for (size_t i = 0; i < perf->threads.count; i++)
		perf_event_end(&perf->threads.items[i]);
	close(perf->epoll);
	list_done(&perf->threads);
	list_done(&perf->refusals);
	free(perf);
}
