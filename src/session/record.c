/* The loop of a session: everything that happens again and again while the target runs, each at its own pace. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "session/capture.h"
#include "session/state.h"

#define MS 1000000ull
#define DRAIN_NS (10 * MS)
#define PARTIAL_NS (250 * MS)
#define OBSERVE_NS (100 * MS)
#define COUNTERS_NS (1000 * MS)
#define RECLAIM_NS (1000 * MS)
#define PROGRESS_NS (100 * MS)
#define AHEAD_NS (DEADLINE_AHEAD_MS * MS)
enum { RECORD_PRIORITY = -10, GROW_LEAST = 32, GROW_MOST = 128, EVENTS_FLUSH_BYTES = 32768, REARM_TIMEOUT_MS = 1000, ENDED_PART = 20 };

struct loop {
	uint64_t drain_ns, calls_ns, partial_ns, observe_ns, counters_ns, reclaim_ns, progress_ns; /* when next */
	uint64_t observe_every_ns, end_ns;
	bool gone; /* the target */
};

/* Our number of a thread: that it has ended is only said where all threads were asked, which takes a twentieth of a CPU at most. 0: it has, -1: nobody can tell now. */
static pid_t tid_outer(struct session *session, pid_t inner_tid)
{
	pid_t tid = observe_outer(&session->observe, inner_tid);
	uint64_t begin_ns = tid ? 0 : clock_monotonic_ns();

	if (tid)
		return tid;
	if (begin_ns < session->ended_due_ns)
		return -1;
	tid = target_outer_tid(session->target, inner_tid);
	session->ended_due_ns = clock_monotonic_ns() + (clock_monotonic_ns() - begin_ns) * ENDED_PART;
	return tid;
}

/* Whom nobody can tell of now, lives: the lane is not to be taken away. */
static bool tid_alive(void *context, uint32_t inner_tid)
{
	struct session *session = context;
	pid_t tid = (pid_t)inner_tid;
	char path[128];

	if (tid > 0 && session->observe.namespaced)
		tid = tid_outer(session, tid);
	if (tid <= 0)
		return (pid_t)inner_tid > 0 && tid < 0;
	snprintf(path, sizeof path, "%s/%d/task/%d", session->procfs->root, (int)session->facts->pid, (int)tid);
	return access(path, F_OK) == 0 || errno != ENOENT;
}

/* By half, so that a flood is met soon; not more than takes a few milliseconds to touch. */
static uint32_t grow_step(uint32_t count)
{
	return count / 2 < GROW_LEAST ? GROW_LEAST : count / 2 > GROW_MOST ? GROW_MOST : count / 2;
}

/* --alternate switches all collection: a turn without hooks has no samples either. The process's clock is read as often, so that turns can be compared. */
static void alternate_step(struct session *session)
{
	bool off = __atomic_load_n(&session->pool.page->alternate_off, __ATOMIC_ACQUIRE) != 0;

	if (!session->options->alternate_ms)
		return;
	session_cpu_reading(session);
	if (!session->sampler || off == session->samples_off)
		return;
	session->samples_off = off;
	sampler_pause(session->sampler, off);
}

static void drain_step(struct session *session, struct loop *loop, uint64_t now_ns)
{
	bool partial = now_ns >= loop->partial_ns;

	session_hooks_keep(session);
	alternate_step(session);
	drain_round(session->drain, partial);
	if (partial)
		loop->partial_ns = now_ns + PARTIAL_NS;
	if (drain_totals(session->drain).used * 2 > session->pool.count)
		pool_grow(&session->pool, grow_step(session->pool.count));
	session->hooks_seen++;
	session->hooks_on_seen += __atomic_load_n(&session->pool.page->hooks_on, __ATOMIC_RELAXED) == 1;
	if (now_ns >= loop->reclaim_ns) {
		drain_reclaim(session->drain, tid_alive, session);
		loop->reclaim_ns = now_ns + RECLAIM_NS;
	}
}

/* CPU time, not time of the day: on a full machine we wait like everybody else. */
/* Threads by the thousand take long to read; then they are read more rarely, so that we never take more than a twentieth of a CPU for it. */
static void observe_step(struct session *session, struct loop *loop, uint64_t now_ns)
{
	uint64_t cost_ns, begin_ns = clock_thread_ns();

	if (session->drain)
		session->observe.own_inner_tid = (pid_t)__atomic_load_n(&session->pool.page->switch_tid, __ATOMIC_RELAXED);
	if (!observe_read(&session->observe, session_ticks(session), &session->events)) {
		loop->gone = true;
		return;
	}
	session_read_cpu(session);
	kernel_calls_threads(session);
	counting_threads(session);
	session_samples_cost(session);
	cost_ns = clock_thread_ns() - begin_ns;
	cost_ns *= 20 * (session->options->share ? session->options->share : 1);
	loop->observe_every_ns = cost_ns > OBSERVE_NS ? cost_ns : OBSERVE_NS;
	loop->observe_ns = now_ns + loop->observe_every_ns;
}

bool session_execed(const struct session *session)
{
	uint64_t magic = 0, startstack = session_startstack(session);

	if (session->startstack && startstack && startstack != session->startstack)
		return true;
	return session->armed && session->handshake.page_addr && target_read(session->target, session->handshake.page_addr, &magic, sizeof magic) < 0 && errno == EFAULT;
}

/* A single-threaded 3.12+ target that is throttled has no thread of ours to turn hooks on again. Once it has other threads, it gets one. */
static void rearm_step(struct session *session, uint64_t now_ns)
{
	struct proc_times times;
	struct error err = { 0 };

	if (!rearm_due(&session->rearm, __atomic_load_n(&session->pool.page->rearm_wanted, __ATOMIC_RELAXED) != 0, now_ns))
		return;
	if (procfs_times(session->procfs, session->facts->pid, 0, &times) == 0)
		__atomic_store_n(&session->pool.page->may_start_thread, session_may_start(session->facts, times.threads), __ATOMIC_RELEASE);
	session_push_deadline(session, 2 * AHEAD_NS); /* longer than the three waits below */
	if (handshake_try(&session->handshake, HANDOVER_REARM, REARM_TIMEOUT_MS, &err) < 0 && err.code != ERR_EXITED) {
		if (!session->rearm_failed)
			session_warn(session, "hooks could not be turned on again at each try: %.180s", err.text);
		session->rearm_failed = true;
	}
	session_hold(session, &session->handshake.receipt);
}

static void progress_tell(struct session *session, uint64_t now_ns, void (*progress)(void *, const struct session_progress *), void *context)
{
	struct session_progress now = { .elapsed_ns = now_ns - session->start_ns, .duration_ns = session->options->duration_ns };

	if (session->drain) {
		struct drain_totals totals = drain_totals(session->drain);

		now.events = totals.events;
		now.lost = totals.lost;
		now.overhead_pct = (double)session_overhead_ppm(session, totals.cost_ticks) / 10000;
		now.coverage = session->hooks_seen ? (double)session->hooks_on_seen / (double)session->hooks_seen : 0;
		now.collector = (enum collector_state)__atomic_load_n(&session->pool.page->state, __ATOMIC_RELAXED);
	}
	now.samples = session->sampler ? sampler_totals(session->sampler).digest.samples : 0;
	progress(context, &now);
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Sleeps until something is due, or the target ends. */
static void loop_wait(const struct session *session, struct loop *loop)
{
	uint64_t due_ns = loop->observe_ns, now_ns = clock_monotonic_ns();
	struct pollfd end = { .fd = session->pidfd, .events = POLLIN };
	struct timespec pause;

	if (session->drain)
		due_ns = least(due_ns, loop->drain_ns);
	if (session->calls)
		due_ns = least(due_ns, loop->calls_ns);
	due_ns = least(due_ns, loop->progress_ns);
	if (loop->end_ns)
		due_ns = least(due_ns, loop->end_ns);
	due_ns = due_ns > now_ns ? due_ns - now_ns : 0;
	pause = (struct timespec){ (time_t)(due_ns / 1000000000), (long)(due_ns % 1000000000) };
	/* A signal ends the wait early: that is how *stop is noticed at once. */
	if (ppoll(&end, session->pidfd >= 0, &pause, NULL) > 0)
		loop->gone = true;
}

static void loop_begin(const struct session *session, struct loop *loop)
{
	uint64_t now_ns = clock_monotonic_ns();

	*loop = (struct loop){ .drain_ns = now_ns, .calls_ns = now_ns, .partial_ns = now_ns, .observe_ns = now_ns, .counters_ns = now_ns + COUNTERS_NS, .reclaim_ns = now_ns + RECLAIM_NS,
		.progress_ns = now_ns, .observe_every_ns = OBSERVE_NS };
	if (session->options->duration_ns && !session->options->until_ns)
		loop->end_ns = session->start_ns + session->options->duration_ns;
}

/* What is due at NOW. */
static void loop_step(struct session *session, struct loop *loop, uint64_t now_ns)
{
	if (session->drain && now_ns >= loop->drain_ns) {
		drain_step(session, loop, now_ns);
		loop->drain_ns = now_ns + DRAIN_NS;
	}
	if (session->calls && now_ns >= loop->calls_ns) {
		kernel_calls_read(session);
		loop->calls_ns = now_ns + DRAIN_NS;
	}
	if (session->sampler)
		sampler_take(session->sampler, &session->events);
	if (now_ns >= loop->observe_ns) {
		observe_step(session, loop, now_ns);
		if (!loop->gone && session->drain) {
			rearm_step(session, now_ns);
			device_step(session, now_ns);
		}
	}
	if (now_ns >= loop->counters_ns) {
		session_counters(session, session_ticks(session));
		around_read(&session->around, &session->observe, session_ticks(session), &session->events);
		loop->counters_ns = now_ns + COUNTERS_NS;
		session_flush(session);
	}
	if (session->events.size > EVENTS_FLUSH_BYTES)
		session_flush(session);
}

static bool ended(struct session *session, struct loop *loop, const volatile int *stop, bool observed)
{
	if (stop && *stop >= 2)
		session->end = END_ABANDONED;
	else if (stop && *stop == 1)
		session->end = END_STOPPED;
	else if (loop->gone || (session->pidfd < 0 && !target_alive(session->target)))
		session->end = END_TARGET_EXITED;
	else if (observed && session_execed(session))
		session->end = END_TARGET_EXECED;
	else if (loop->end_ns && clock_monotonic_ns() >= loop->end_ns)
		session->end = END_DURATION;
	else
		return false;
	return true;
}

static void record_loop(struct session *session, struct loop *loop, const volatile int *stop, void (*progress)(void *context, const struct session_progress *), void *context)
{
	for (;;) {
		uint64_t now_ns = clock_monotonic_ns();
		bool observe = now_ns >= loop->observe_ns;

		if (session->options->until_ns)
			loop->end_ns = *session->options->until_ns;
		if (!loop->gone)
			loop_step(session, loop, now_ns);
		if (ended(session, loop, stop, observe))
			return;
		if (now_ns >= loop->progress_ns) {
			if (progress)
				progress_tell(session, now_ns, progress, context);
			loop->progress_ns = now_ns + PROGRESS_NS;
		}
		if (spool_failed(session->spool))
			return; /* no room for the trace: what was recorded is told by spool_finish() */
		loop_wait(session, loop);
	}
}

void session_record(struct session *session, const volatile int *stop, void (*progress)(void *context, const struct session_progress *), void *context)
{
	struct loop loop;
	int priority = getpriority(PRIO_PROCESS, 0);

	/* Where it is permitted: a drain that has to wait for a CPU behind the target's threads is what loses events. */
	setpriority(PRIO_PROCESS, 0, RECORD_PRIORITY);
	loop_begin(session, &loop);
	record_loop(session, &loop, stop, progress, context);
	setpriority(PRIO_PROCESS, 0, priority);
}
