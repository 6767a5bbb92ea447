/* What the trace says of its own samples: the way each kind of thread was looked at, and how that went. */
#include "session/capture.h"
#include "session/state.h"

#include <stdio.h>

#include "inject/hold.h"

enum { LOST_PART = 100 /* one in so many is no news */ };

void sampled_counters(struct session *session, uint64_t ticks)
{
	struct sampler_totals totals = sampler_totals(session->sampler);
	const struct digest_totals *digest = &totals.digest;
	const struct counter_row always[] = {
		{ "samples", digest->samples }, { "torn_samples", totals.torn + digest->torn }, { "sampler_sights_lost", totals.sights_lost }, { "sampler_frames_left_out", digest->frames_left_out },
		{ "sampler_cost_ns", totals.cost_ns }, { "sampler_telling_ns", totals.telling_ns },
	};
	const struct counter_row natives[] = {
		{ "sampler_stolen_ns", sampler_stolen_ns(session->sampler) }, { "sampler_moved", totals.watch.moved },
		{ "sampler_join_whole", digest->joins[JOIN_WHOLE] }, { "sampler_join_partial", digest->joins[JOIN_PARTIAL] }, { "sampler_join_failed", digest->joins[JOIN_FAILED] },
		{ "sampler_join_later", digest->joins[JOIN_LATER] }, { "sampler_join_recalled", digest->joins[JOIN_RECALLED] }, { "sampler_join_native", digest->joins[JOIN_NATIVE] }, { "sampler_walk_complete", digest->ends[WALK_COMPLETE] },
		{ "sampler_walk_cut_depth", digest->ends[WALK_CUT_DEPTH] }, { "sampler_walk_cut_stack", digest->ends[WALK_CUT_STACK] }, { "sampler_walk_cut_jit", digest->ends[WALK_CUT_JIT] },
		{ "sampler_walk_cut_register", digest->ends[WALK_CUT_REGISTER] }, { "sampler_walk_cut_tables", digest->ends[WALK_CUT_TABLES] }, { "sampler_walk_searched", digest->searched }, { "sampler_naming_ns", digest->naming_ns },
	};
	const struct counter_row perf[] = {
		{ "sampler_perf_samples", totals.perf.samples }, { "sampler_perf_lost", totals.perf.lost }, { "sampler_perf_throttled", totals.perf.throttled },
		{ "sampler_perf_without_stack", totals.perf.without_stack }, { "sampler_perf_threads", totals.perf.threads }, { "sampler_perf_refused", totals.perf.refused },
		{ "sampler_perf_cost_ns", totals.perf_cost_ns }, { "sampler_perf_stack_bytes", totals.perf.stack_bytes },
		{ "sampler_switch_cost_ns", totals.switch_ns }, { "sampler_switches_ns", totals.switches_ns },
		{ "sampler_perf_on_ns", totals.perf_on_ns }, { "sampler_perf_open_ns", totals.perf_open_ns },
	};
	const struct counter_row holds[] = {
		{ "sampler_holds", totals.holds.count }, { "sampler_hold_total_ns", totals.holds.total_ns }, { "sampler_hold_max_ns", totals.holds.longest_ns },
		{ "sampler_hold_repaired", totals.holds.repaired }, { "sampler_hold_restarts", totals.holds.restarts }, { "sampler_not_now", totals.watch.not_now },
		{ "sampler_refused", totals.watch.refused }, { "sampler_prone", totals.watch.prone }, { "sampler_spared", totals.watch.spared },
	};

	session_counter_rows(session, ticks, always, sizeof always / sizeof *always);
	if (totals.ways.native)
		session_counter_rows(session, ticks, natives, sizeof natives / sizeof *natives);
	if (totals.ways.perf)
		session_counter_rows(session, ticks, perf, sizeof perf / sizeof *perf);
	if (totals.ways.holds)
		session_counter_rows(session, ticks, holds, sizeof holds / sizeof *holds);
}

static void held_rows(struct session *session, uint64_t ticks, const struct sampler_totals *totals)
{
	const char *lost = totals->watch.holder_lost ? " (until the process that holds them failed)" : "";
	const char *refused = totals->watch.refused ? " (some are traced by another program, or not permitted)" : "";

	if (totals->ways.holds)
		capture_add(&session->events, ticks, "sampler.running", "held for a copy of registers, stack and Python frames%s%s", refused, lost);
	else
		capture_add(&session->events, ticks, "sampler.running", "Python frames only, read while the thread runs: %s", totals->ways.why_not_held);
}

static double on_pct(const struct sampler_totals *totals)
{
	return 100 * (double)totals->perf_on_ns / (double)totals->perf_open_ns;
}

static void perf_rows(struct session *session, uint64_t ticks, const struct sampler_totals *totals)
{
	struct event_builder *events = &session->events;

	capture_add(events, ticks, "sampler.running", "perf_event: registers and stack as they were, nothing stopped; Python frames read right after; %s",
	            totals->perf.kernel ? "system calls included" : "time in system calls is not seen (kernel.perf_event_paranoid)");
	if (totals->perf_on_ns < totals->perf_open_ns)
		capture_add(events, ticks, "sampler.running.turns", "by perf_event for %.0f %% of the time, else %s: a switch of a thread takes %llu ns longer with it, and all together may take half of --max-overhead",
		            on_pct(totals), totals->ways.holds ? "held" : "Python frames only", (unsigned long long)totals->switch_ns);
	if (totals->perf.refused)
		capture_add(events, ticks, "sampler.running.others", "%u threads: %s; %s", totals->perf.refused, totals->ways.holds ? "held" : "Python frames only", totals->perf.why);
}

static void native_rows(struct session *session, uint64_t ticks, const struct sampler_totals *totals)
{
	const struct sampler_ways *ways = &totals->ways;
	struct event_builder *events = &session->events;

	capture_add(events, ticks, "sampler", "Python and native frames");
	if (ways->perf)
		perf_rows(session, ticks, totals);
	else
		held_rows(session, ticks, totals);
	if (*ways->why_not_perf)
		capture_add(events, ticks, "sampler.why_not_perf", "%s", ways->why_not_perf);
	capture_add(events, ticks, "sampler.blocked", "once in each block: where it stands by /proc, its memory as it is%s", ways->holds ? "; held where that is not enough" : "");
}

void sampled_rows(struct session *session, uint64_t ticks)
{
	struct sampler_totals totals = sampler_totals(session->sampler);

	if (totals.ways.native)
		native_rows(session, ticks, &totals);
	else if (session->options->native == NATIVE_NONE)
		capture_add(&session->events, ticks, "sampler", "Python frames only, read while the threads run; native ones were not wanted");
	else
		capture_add(&session->events, ticks, "sampler", "Python frames only, read while the threads run: %s%s", totals.ways.why_not_native,
		            session->options->native == NATIVE_AUTO && holder_possible() ? "; --native hold holds each running thread for some tens of microseconds per sample" : "");
	capture_add(&session->events, ticks, "rate_hz", "%.0f", totals.ways.perf ? (double)totals.perf_rate_hz : 1e9 / (double)totals.every_ns);
	if (totals.ways.perf)
		capture_add(&session->events, ticks, "rate_hz.blocked", "%.0f", 1e9 / (double)totals.every_ns);
}

void sampled_warnings(struct session *session)
{
	struct sampler_totals totals = sampler_totals(session->sampler);
	unsigned long long perf_lost = totals.perf.lost;

	if (*totals.ways.why_not_debuginfod)
		session_warn(session, "--debuginfod: no server is asked for names: %s", totals.ways.why_not_debuginfod);
	if (*totals.ways.why_not_held)
		session_warn(session, "--native %s: %s", session->options->native == NATIVE_HOLD ? "hold" : "both", totals.ways.why_not_held);
	if (1200000000ull / session->options->rate_hz < totals.every_ns)
		session_warn(session, "looks at all threads were lowered to %.0f per second: more would take too long, or hold threads for more than --max-overhead allows", 1e9 / (double)totals.every_ns);
	if (totals.ways.perf && totals.perf_rate_hz < session->options->rate_hz)
		session_warn(session, "samples of running threads were lowered to %u per second: more would cost more than --max-overhead allows, or come faster than they can be named", totals.perf_rate_hz);
	if (perf_lost * LOST_PART > totals.perf.samples)
		session_warn(session, "%llu samples by perf_event were lost: inferscope got no CPU in time", perf_lost);
	if (totals.perf_on_ns < totals.perf_open_ns)
		session_warn(session, "%s for %.0f %% of the time%s: threads are switched so often that more would cost more than --max-overhead allows",
		             totals.ways.holds ? "running threads were sampled by perf_event, and not held," : "native frames of running threads were seen", on_pct(&totals), totals.ways.holds ? "" : ", and else told as the time of the Python functions around them");
	if (totals.sights_lost)
		session_warn(session, "%llu samples were lost: naming them took too long", (unsigned long long)totals.sights_lost);
	if (totals.digest.frames_left_out)
		session_warn(session, "%llu frames of samples are missing, and their time is told as their callers': there were more different stacks or functions than are kept apart", (unsigned long long)totals.digest.frames_left_out);
	if (totals.perf.refused)
		session_warn(session, "%u threads were not sampled by perf_event, but by the next way: %s", totals.perf.refused, totals.perf.why);
}
