/* The numbers of a session, as COUNTER events and for its progress. */
#include "session/state.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

uint64_t session_ticks(const struct session *session)
{
	return session->clock_kind == CLOCK_TSC ? clock_tsc() : clock_monotonic_ns();
}

void session_warn(struct session *session, const char *format, ...)
{
	va_list list;

	if (session->warning_count == SESSION_WARNINGS)
		return;
	va_start(list, format);
	vsnprintf(session->warnings[session->warning_count++], sizeof session->warnings[0], format, list);
	va_end(list);
}

void session_hold(struct session *session, const struct receipt *receipt)
{
	if (receipt->hold_ns > session->hold_max_ns)
		session->hold_max_ns = receipt->hold_ns;
	session->hold_total_ns += receipt->hold_total_ns;
}

void session_flush(struct session *session)
{
	struct chunk chunk = { .lane = SESSION_LANE, .lane_kind = LANE_SESSION, .clock = session->clock, .events = session->events.bytes, .size = session->events.size };

	if (!session->events.size)
		return;
	chunk.sequence = ++session->chunk_sequence;
	spool_add(session->spool, &chunk, 0);
	event_builder_clear(&session->events);
}

void session_push_deadline(struct session *session, uint64_t ahead_ns)
{
	uint64_t ahead = (uint64_t)((unsigned __int128)ahead_ns * session->clock.ticks_per_second / 1000000000), now_ns = clock_monotonic_ns();

	if (now_ns > session->lapses_ns && !session->fell_silent && !__atomic_load_n(&session->pool.page->hooks_on, __ATOMIC_RELAXED)) {
		session_warn(session, "inferscope was held up for %.1f s; the hooks took themselves off after 2 s, and calls are missing from then on", (double)(now_ns - session->pushed_ns) / 1e9);
		session->fell_silent = true;
	}
	session->pushed_ns = now_ns;
	session->lapses_ns = now_ns + ahead_ns;
	__atomic_store_n(&session->pool.page->deadline_ticks, session_ticks(session) + ahead, __ATOMIC_RELEASE);
}

void session_hooks_keep(struct session *session)
{
	if (session->armed)
		session_push_deadline(session, DEADLINE_AHEAD_MS * 1000000ull);
}

uint64_t session_ticks_ns(const struct session *session, uint64_t ticks)
{
	return (uint64_t)((unsigned __int128)ticks * 1000000000 / session->clock.ticks_per_second);
}

uint64_t session_after_ns(const struct session *session, uint64_t ticks)
{
	uint64_t now = session_ticks(session), ago_ns = ticks < now ? session_ticks_ns(session, now - ticks) : 0, all_ns = clock_monotonic_ns() - session->start_ns;

	return !ticks ? 0 : all_ns > ago_ns ? all_ns - ago_ns : 1;
}

void session_read_cpu(struct session *session)
{
	struct proc_times times;

	if (!clock_process_ns(session->facts->pid, &session->cpu_now_ns) && procfs_times(session->procfs, session->facts->pid, 0, &times) == 0)
		session->cpu_now_ns = times.user_ns + times.system_ns;
}

uint64_t session_overhead_ppm(const struct session *session, uint64_t cost_ticks)
{
	uint64_t cpu_ns = session->cpu_now_ns > session->cpu_start_ns ? session->cpu_now_ns - session->cpu_start_ns : 0;
	uint64_t ppm;

	if (cpu_ns < 1000000)
		return 0;
	ppm = (uint64_t)((unsigned __int128)(session_ticks_ns(session, cost_ticks) + session->sampler_stolen_ns + kernel_calls_cost_ns(session) + session->counting.totals.spent_ns + device_cost_ns(session)) * 1000000 / cpu_ns);
	return ppm > 1000000 ? 1000000 : ppm;
}

uint64_t session_startstack(const struct session *session)
{
	char text[2048], *at;

	if (procfs_read(session->procfs, session->facts->pid, "stat", text, sizeof text) <= 0 || !(at = strrchr(text, ')')))
		return 0;
	/* " S 1 …": the state is field 3 */
	for (int field = 2; field < 28 && at; field++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at, NULL, 10) : 0;
}

void session_counter(struct session *session, uint64_t ticks, const char *name, uint64_t value)
{
	event_add(&session->events, ticks, EVENT_COUNTER, 0, 0, name, (int64_t)(value > INT64_MAX ? INT64_MAX : value));
}

void session_counter_rows(struct session *session, uint64_t ticks, const struct counter_row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++)
		session_counter(session, ticks, rows[i].name, rows[i].value);
}

void session_cpu_reading(struct session *session)
{
	uint64_t cpu_ns;

	if (clock_process_ns(session->facts->pid, &cpu_ns))
		session_counter(session, session_ticks(session), "process_cpu_ns", cpu_ns);
}

/* What was counted since it was told last. The rows are the target's: a number that went back tells nothing. */
static void count_rows(struct session *session, uint64_t ticks)
{
	const struct page *page = session->pool.page;
	uint32_t count = __atomic_load_n(&page->counted_count, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < count && i < COUNTED_MAX; i++) {
		uint64_t calls = __atomic_load_n(&page->counted[i].calls, __ATOMIC_RELAXED);

		if (calls <= session->counted_told[i])
			continue;
		event_add(&session->events, ticks, EVENT_COUNT, page->counted[i].ref, 0, calls - session->counted_told[i]);
		session->counted_told[i] = calls;
	}
}

static void page_counters(struct session *session, uint64_t ticks)
{
	const struct page *page = session->pool.page;
	struct drain_totals totals = drain_totals(session->drain);
	const struct counter_row rows[] = {
		{ "events", totals.events }, { "lost_events", totals.lost }, { "skipped_calls", totals.skipped }, { "counted_calls", totals.counted }, { "damaged_subbufs", totals.damaged },
		{ "cost_ns", session_ticks_ns(session, totals.cost_ticks) }, { "overhead_ppm", session_overhead_ppm(session, totals.cost_ticks) },
		{ "unmatched", page->unmatched }, { "code_overflow", page->code_overflow }, { "lane_overflow", page->lane_overflow },
		{ "cost_ps_py", page->cost_ps_py }, { "cost_ps_c", page->cost_ps_c },
		{ "brake_count", page->brake_count }, { "arm_ns", page->arm_ns }, { "gil_hold_max_ns", page->holder_ns_max },
		{ "unhooked_threads", page->unhooked_threads }, { "fork_children", page->fork_children }, { "functions", page->code_count },
		{ "pool_bytes", (uint64_t)session->pool.count * SUBBUF_BYTES },
	};

	session_counter_rows(session, ticks, rows, sizeof rows / sizeof *rows);
}

void session_samples_cost(struct session *session)
{
	if (session->sampler) {
		sampler_switched(session->sampler, session->observe.switches - session->switches_told, session->cpu_now_ns > session->cpu_start_ns ? session->cpu_now_ns - session->cpu_start_ns : 0);
		session->switches_told = session->observe.switches;
		session->sampler_stolen_ns = sampler_stolen_ns(session->sampler);
	}
	if (session->drain)
		__atomic_store_n(&session->pool.page->samples_ppm, (uint32_t)session_overhead_ppm(session, 0), __ATOMIC_RELAXED);
}

void session_counters(struct session *session, uint64_t ticks)
{
	session_wall(session);
	session_read_cpu(session);
	session_samples_cost(session);
	if (session->drain) {
		drain_round(session->drain, true); /* the names of what is counted come first */
		count_rows(session, ticks);
		page_counters(session, ticks);
	} else {
		session_counter(session, ticks, "overhead_ppm", session_overhead_ppm(session, 0));
	}
	session_counter(session, ticks, "hold_max_ns", session->hold_max_ns);
	session_counter(session, ticks, "hold_total_ns", session->hold_total_ns);
	session_counter(session, ticks, "dropped_events", spool_dropped_events(session->spool));
	if (session->sampler)
		sampled_counters(session, ticks);
	kernel_calls_counters(session, ticks);
	counting_read(session, ticks);
}
