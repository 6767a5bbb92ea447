/* A session's part that counts what its threads do: new threads, readings as events, sums over time, how it went. */
#include "session/capture.h"
#include "session/state.h"

/* They are read at every look in the beginning: where threads switch very often, perf_event's cost is not to be borne for long. */
#define EARLY_NS 1000000000ull
enum { EARLY_THREADS = 64 };

static void add_threads(struct session *session, bool born)
{
	struct observe *observe = &session->observe;

	for (size_t i = 0; i < observe->count; i++) {
		struct observe_thread *thread = &observe->threads[i];

		if (!thread->ours && !thread->counted)
			thread_counts_add(session->counting.counts, thread->tid, born);
		thread->counted = true;
	}
}

void counting_begin(struct session *session)
{
	struct error err = { 0 };

	if (!session->options->counters)
		return;
	/* Of the budget an eighth is for them. */
	if (thread_counts_open(session->procfs, session->facts->pid, (session->options->max_overhead_ppm + 7) / 8, &session->counting.counts, &err) < 0) {
		session_warn(session, "no counters of threads: %.180s", err.text);
		return;
	}
	session->counting.begun_ns = clock_monotonic_ns();
	session->counting.totals = thread_counts_totals(session->counting.counts);
	add_threads(session, false);
}

static bool lives(const void *context, pid_t tid)
{
	return observe_by_tid(context, tid) != NULL;
}

struct reading { struct event_builder *events; uint64_t ticks; };

static void tell(void *context, pid_t tid, enum thread_counter which, uint64_t value, bool scaled)
{
	const struct reading *reading = context;

	event_add(reading->events, reading->ticks, EVENT_THREAD_COUNTER, (uint32_t)tid, scaled ? EVENT_FLAG_SAMPLED : 0, value, thread_counter_row(which)->name);
}

void counting_read(struct session *session, uint64_t ticks)
{
	struct counting *counting = &session->counting;
	struct reading reading = { &session->events, ticks };

	if (!counting->counts)
		return;
	thread_counts_read(counting->counts, lives, &session->observe, tell, &reading);
	thread_counts_hold_budget(counting->counts, session->cpu_now_ns > session->cpu_start_ns ? session->cpu_now_ns - session->cpu_start_ns : 0);
	counting->totals = thread_counts_totals(counting->counts);
	session_counter(session, ticks, "counters_cost_ns", counting->totals.spent_ns);
	for (int which = 0; which < THREAD_COUNTERS; which++)
		if (counting->totals.told[which])
			session_counter(session, ticks, thread_counter_row((enum thread_counter)which)->name, counting->totals.sums[which]);
}

void counting_threads(struct session *session)
{
	if (!session->counting.counts)
		return;
	add_threads(session, true);
	thread_counts_look(session->counting.counts);
	if (clock_monotonic_ns() - session->counting.begun_ns < EARLY_NS && session->counting.totals.threads <= EARLY_THREADS)
		counting_read(session, session_ticks(session));
}

void counting_end(struct session *session)
{
	counting_read(session, session_ticks(session));
	thread_counts_close(session->counting.counts);
	session->counting.counts = NULL;
}

void counting_rows(struct session *session, uint64_t ticks)
{
	const struct thread_counts_totals *totals = &session->counting.totals;
	struct event_builder *events = &session->events;

	if (!session->options->counters) {
		capture_add(events, ticks, "counters", "not wanted");
		return;
	}
	if (totals->given_up)
		capture_add(events, ticks, "counters", "by perf_event at first, then as /proc has them, without moves to other CPUs and the processor's: each switch of a thread took %llu ns longer, all together more than --max-overhead allows",
		            (unsigned long long)totals->cost_ns);
	else if (totals->perf)
		capture_add(events, ticks, "counters", "by perf_event; a switch of a thread takes %llu ns longer", (unsigned long long)totals->cost_ns);
	else
		capture_add(events, ticks, "counters", "as /proc has them, without moves to other CPUs: perf_event is %s", totals->why_not_perf);
	capture_add(events, ticks, "counters.processor", "%s", *totals->why_not_processor ? totals->why_not_processor : "by perf_event");
	if (totals->refused)
		session_warn(session, "%u threads are counted as /proc has it: perf_event ended %s", totals->refused, totals->why);
}
