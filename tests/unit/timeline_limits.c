/* What a hostile or merely large program does to the timeline, and how far estimates are from a truth that is known. */
#include "timeline_help.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "base/text.h"
#include "trace/writer.h"

enum { MAIN = 1, TINY = 2, QUIET = 3, BUSY = 4 };

struct program {
	struct event_builder meta, thread, session;
	uint64_t now, next_sample;
};

static void add_chunk(struct trace_writer *writer, uint32_t lane, uint32_t kind, const struct event_builder *events)
{
	struct chunk chunk = { .lane = lane, .lane_kind = kind, .tid = lane, .sequence = 1, .clock = { 0, 0, 1000000000 }, .events = events->bytes, .size = events->size };
	struct error err;

	cr_assert_eq(trace_writer_add(writer, &chunk, &err), 0, "%s", err.text);
}

static void name(struct program *program, uint32_t ref, const char *function)
{
	event_add(&program->meta, 0, EVENT_CODE, ref, 0, (uint64_t)ref, ref, 0u, function, function, "/srv/app.py");
}

static void program_begin(struct program *program)
{
	*program = (struct program){ 0 };
	event_builder_init(&program->meta);
	event_builder_init(&program->thread);
	event_builder_init(&program->session);
	name(program, MAIN, "main");
	name(program, TINY, "tiny");
	name(program, QUIET, "quiet");
	name(program, BUSY, "busy");
}

static struct timeline *program_end(struct program *program)
{
	static struct text text;
	struct trace_writer *writer;
	struct timeline *timeline;
	struct trace *trace;
	struct sink *sink;
	struct error err;

	cr_assert_eq(sink_open_text(&text, &sink, &err), 0);
	cr_assert_eq(trace_writer_open(sink, CODEC_RAW, 1, &writer, &err), 0);
	add_chunk(writer, 1, LANE_META, &program->meta);
	add_chunk(writer, 2, LANE_THREAD, &program->thread);
	if (program->session.size)
		add_chunk(writer, 3, LANE_SESSION, &program->session);
	trace_writer_close(writer);
	cr_assert_eq(sink_commit(sink, &err), 0);
	cr_assert_eq(trace_open_memory(text.data, text.length, &trace, &err), 0);
	cr_assert_eq(timeline_build(trace, &timeline, &err), 0, "%s", err.text);
	trace_close(trace);
	text_done(&text);
	event_builder_done(&program->meta);
	event_builder_done(&program->thread);
	event_builder_done(&program->session);
	return timeline;
}

Test(timeline_limits, count_calls_below_the_deepest_node_flat)
{
	enum { DEEP = 20000 };
	struct program program;
	struct timeline *t;

	program_begin(&program);
	event_add(&program.meta, 0, EVENT_WINDOW_ON, 0, 0, 1u);
	event_add(&program.meta, 2 * DEEP, EVENT_WINDOW_OFF, 0, 0, 1u);
	for (uint32_t i = 0; i < DEEP; i++)
		event_add(&program.thread, i, EVENT_PY_ENTER, TINY, 0);
	for (uint32_t i = 0; i < DEEP; i++)
		event_add(&program.thread, DEEP + i, EVENT_PY_LEAVE, TINY, 0);
	t = program_end(&program);
	cr_assert_eq(function_named(t, "tiny")->calls, DEEP);
	cr_assert_eq(function_named(t, "tiny")->self_ns, 2 * DEEP - 1);
	cr_assert_gt(t->quality.other_calls, 0);
	cr_assert_lt(t->node_count, 5000);
	cr_assert_eq(t->threads[0].deepest, DEEP);
	timeline_free(t);
}

Test(timeline_limits, count_what_is_beyond_them)
{
	enum { OPEN = 65536, MORE = 4 };
	struct program program;
	struct timeline *t;

	program_begin(&program);
	event_add(&program.meta, 0, EVENT_WINDOW_ON, 0, 0, 1u);
	event_add(&program.meta, 2 * OPEN, EVENT_WINDOW_OFF, 0, 0, 1u);
	for (uint64_t i = 0; i < OPEN + MORE; i++)
		event_add(&program.thread, i, EVENT_SCOPE_ENTER, 0, 0, i + 1, "open", "");
	for (uint64_t i = 0; i < OPEN + MORE; i++)
		event_add(&program.thread, OPEN + MORE + i, EVENT_SCOPE_EXIT, 0, 0, i + 1);
	t = program_end(&program);
	cr_assert_eq(t->scopes[0].count, OPEN);
	cr_assert_eq(t->quality.beyond_limits, MORE);
	timeline_free(t);
}

/* Hooks as the budget drives them: off for a while after so many events, then on again. */
struct brake { bool on; uint64_t events, off_at; };

enum { WINDOW_EVENTS = 4000, OFF_NS = 250000000 };

static void follow_brake(struct program *program, struct brake *brake, uint32_t phase)
{
	if (brake->on && brake->events >= WINDOW_EVENTS) {
		brake->on = false;
		brake->off_at = program->now;
		event_add(&program->meta, program->now, EVENT_WINDOW_OFF, 0, 0, 2u);
	} else if (!brake->on && program->now >= brake->off_at + OFF_NS) {
		brake->on = true;
		brake->events = 0;
		event_add(&program->meta, program->now, EVENT_WINDOW_ON, 0, 0, 2u);
		event_add(&program->thread, program->now, EVENT_STACK_BEGIN, 0, 0, 0u);
		event_add(&program->thread, program->now, EVENT_SEED, MAIN, 0);
		event_add(&program->thread, program->now, EVENT_SEED, phase, 0);
	}
}

static void hook(struct program *program, struct brake *brake, enum event_kind kind, uint32_t ref)
{
	if (!brake->on)
		return;
	event_add(&program->thread, program->now, kind, ref, 0);
	brake->events++;
}

/* From outside, 100 times per second; a stack has the number of its innermost function. */
static void take_sample(struct program *program, uint32_t ref)
{
	if (program->now < program->next_sample)
		return;
	program->next_sample = program->now + 10000000;
	event_add(&program->session, program->now, EVENT_SAMPLE, ref, 0, 2u, (uint32_t)THREAD_PYTHON, (uint64_t)10000000);
}

struct truth { uint64_t busy_ns, quiet_ns, calls; };

/* Bursts of calls of tiny, 100 to 500 ms long, among calm stretches. */
static void run_bursts(struct program *program, bool sampled, struct truth *truth)
{
	struct brake brake = { .on = true };
	uint64_t random = 1;

	event_add(&program->meta, 0, EVENT_WINDOW_ON, 0, 0, 1u);
	event_add(&program->thread, 0, EVENT_PY_ENTER, MAIN, 0);
	while (program->now < 120000000000) {
		uint32_t phase = (random >> 40) % 10 < 3 ? BUSY : QUIET;
		uint64_t begin = program->now, end = program->now + 100000000 + (random >> 33) % 400000000;

		random = random * 6364136223846793005u + 1442695040888963407u;
		hook(program, &brake, EVENT_PY_ENTER, phase);
		while (program->now < end) {
			follow_brake(program, &brake, phase);
			program->now += phase == BUSY ? 4000 : 2000000;
			if (sampled)
				take_sample(program, phase);
			if (phase == QUIET)
				continue;
			hook(program, &brake, EVENT_PY_ENTER, TINY);
			program->now += 1000;
			hook(program, &brake, EVENT_PY_LEAVE, TINY);
			truth->calls++;
		}
		hook(program, &brake, EVENT_PY_LEAVE, phase);
		*(phase == BUSY ? &truth->busy_ns : &truth->quiet_ns) += program->now - begin;
	}
	if (!brake.on)
		event_add(&program->meta, program->now, EVENT_WINDOW_ON, 0, 0, 1u);
	event_add(&program->meta, program->now, EVENT_WINDOW_OFF, 0, 0, 1u);
}

static double error_pct(const struct timeline *t, const char *function, uint64_t truth_ns)
{
	return 100 * ((double)function_named(t, function)->total_ns - (double)truth_ns) / (double)t->duration_ns;
}

Test(timeline_limits, estimate_bursts_well_with_samples)
{
	struct truth truth = { 0 };
	struct program program;
	struct timeline *t;

	program_begin(&program);
	event_add(&program.session, 0, EVENT_STACK, MAIN, 0, 0u, (uint32_t)MAIN, 0u);
	event_add(&program.session, 0, EVENT_STACK, BUSY, 0, (uint32_t)MAIN, (uint32_t)BUSY, 0u);
	event_add(&program.session, 0, EVENT_STACK, QUIET, 0, (uint32_t)MAIN, (uint32_t)QUIET, 0u);
	run_bursts(&program, true, &truth);
	t = program_end(&program);
	cr_assert_lt(t->coverage, 0.7);
	cr_expect_float_eq(error_pct(t, "busy", truth.busy_ns), 0, 1, "%g points off", error_pct(t, "busy", truth.busy_ns));
	cr_expect_float_eq(error_pct(t, "quiet", truth.quiet_ns), 0, 1, "%g points off", error_pct(t, "quiet", truth.quiet_ns));
	cr_expect_float_eq((double)function_named(t, "tiny")->calls / (double)truth.calls, 1, 0.05, "%g of the calls", (double)function_named(t, "tiny")->calls / (double)truth.calls);
	timeline_free(t);
}

/* Without them the time between two windows can only be guessed from both: the bursts that ended a window are underrated. */
Test(timeline_limits, estimate_bursts_roughly_without_samples)
{
	struct truth truth = { 0 };
	struct program program;
	struct timeline *t;

	program_begin(&program);
	run_bursts(&program, false, &truth);
	t = program_end(&program);
	cr_expect_float_eq(error_pct(t, "busy", truth.busy_ns), 0, 10, "%g points off", error_pct(t, "busy", truth.busy_ns));
	cr_expect_eq(function_named(t, "busy")->precision, PRECISION_ESTIMATED);
	timeline_free(t);
}
