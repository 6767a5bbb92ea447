/* What the trace says of its own samples: the way each kind of thread was looked at, and how that went. */
#include "session/capture.h"
#include "session/state.h"

#include <stdio.h>

static void counter(struct session *session, uint64_t ticks, const char *name, uint64_t value)
{
	event_add(&session->events, ticks, EVENT_COUNTER, 0, 0, name, (int64_t)(value > INT64_MAX ? INT64_MAX : value));
}

void sampled_counters(struct session *session, uint64_t ticks)
{
	struct sampler_totals totals = sampler_totals(session->sampler);
	const struct natives_totals *natives = &totals.natives;
	const struct { const char *name; uint64_t value; } rows[] = {
		{ "sampler_holds", natives->holds.count }, { "sampler_stolen_ns", natives->stolen_ns }, { "sampler_hold_total_ns", natives->holds.total_ns }, { "sampler_hold_max_ns", natives->holds.longest_ns },
		{ "sampler_hold_repaired", natives->holds.repaired }, { "sampler_hold_restarts", natives->holds.restarts }, { "sampler_not_now", natives->not_now },
		{ "sampler_refused", natives->refused }, { "sampler_prone", natives->prone }, { "sampler_moved", natives->moved },
		{ "sampler_join_whole", natives->joins[JOIN_WHOLE] }, { "sampler_join_partial", natives->joins[JOIN_PARTIAL] }, { "sampler_join_failed", natives->joins[JOIN_FAILED] },
		{ "sampler_join_native", natives->joins[JOIN_NATIVE] }, { "sampler_walk_complete", natives->ends[WALK_COMPLETE] },
		{ "sampler_walk_cut_depth", natives->ends[WALK_CUT_DEPTH] }, { "sampler_walk_cut_stack", natives->ends[WALK_CUT_STACK] }, { "sampler_walk_cut_jit", natives->ends[WALK_CUT_JIT] },
		{ "sampler_walk_cut_register", natives->ends[WALK_CUT_REGISTER] }, { "sampler_walk_cut_tables", natives->ends[WALK_CUT_TABLES] }, { "sampler_naming_ns", natives->naming_ns },
		{ "sampler_cost_ns", totals.cost_ns },
	};

	counter(session, ticks, "samples", totals.samples);
	counter(session, ticks, "torn_samples", totals.torn);
	for (size_t i = 0; totals.ways.native && i < sizeof rows / sizeof *rows; i++)
		counter(session, ticks, rows[i].name, rows[i].value);
}

static void native_rows(struct session *session, uint64_t ticks, const struct sampler_totals *totals)
{
	const struct sampler_ways *ways = &totals->ways;
	struct event_builder *events = &session->events;
	const char *lost = totals->natives.holder_lost ? " (until the process that holds them failed)" : "";
	const char *refused = totals->natives.refused ? " (some are traced by another program, or not permitted)" : "";

	capture_add(events, ticks, "sampler", "Python and native frames");
	if (ways->holds) {
		capture_add(events, ticks, "sampler.python", "held for a copy of registers, stack and Python frames%s%s", refused, lost);
		capture_add(events, ticks, "sampler.native", "held for a copy of registers and stack%s%s", refused, lost);
	} else {
		capture_add(events, ticks, "sampler.python", "Python frames only, read while the thread runs: %s", ways->why_not_held);
		capture_add(events, ticks, "sampler.native", "not looked at: %s", ways->why_not_held);
	}
	capture_add(events, ticks, "sampler.blocked", "once in each block: where it stands by /proc, its memory as it is%s", ways->holds ? "; held where that is not enough" : "");
}

void sampled_rows(struct session *session, uint64_t ticks)
{
	struct sampler_totals totals = sampler_totals(session->sampler);

	if (totals.ways.native)
		native_rows(session, ticks, &totals);
	else if (!session->options->native)
		capture_add(&session->events, ticks, "sampler", "Python frames only, read while the threads run; native ones with --native");
	else
		capture_add(&session->events, ticks, "sampler", "Python frames only, read while the threads run: %s", totals.ways.why_not_native);
	capture_add(&session->events, ticks, "rate_hz", "%.0f", 1e9 / (double)totals.every_ns);
}
