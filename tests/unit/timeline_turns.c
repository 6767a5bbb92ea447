/* Turns with collection and turns without: what the program got done in both. */
#include "timeline_help.h"

#include <criterion/criterion.h>
#include <math.h>

#include "base/text.h"
#include "timeline/ratio.h"

enum { TURN_NS = 100000000, READ_NS = 10000000 };

static double uniform(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (double)(*state >> 11) / 9007199254740992.0;
}

/* About normal: its mean is 0, its deviation 1. */
static double normal(uint64_t *state)
{
	double sum = -6;

	for (int i = 0; i < 12; i++)
		sum += uniform(state);
	return sum;
}

struct program {
	int pairs;
	double cpu_share;              /* of each second */
	uint64_t item_on_ns, item_off_ns; /* CPU time of one; 0 = it tells none */
	double idle_extra;             /* what collection adds to its CPU time per second */
	double run_wait_share;         /* of each second */
};

/* Turns begin with one that is not told, as in a session; 0.1 s of it. */
static struct timeline *timeline_of(const struct program *program)
{
	uint64_t end = (uint64_t)(2 * program->pairs + 1) * TURN_NS, at, cpu = 0, id = 1;
	struct timeline *timeline;
	struct text text;

	text_init(&text);
	text_add_string(&text, META NAMES ON(0));
	for (at = TURN_NS; at < end; at += TURN_NS)
		text_printf(&text, "%lu throttle what=%d load_permille=0\n", (unsigned long)at, at / TURN_NS % 2 ? 4 : 3);
	text_printf(&text, "%lu window_off reason=1\n" SESSION, (unsigned long)end);
	for (at = 0; at <= end; at += READ_NS) {
		text_printf(&text, "%lu counter name=\"process_cpu_ns\" value=%lu\n", (unsigned long)at, (unsigned long)cpu);
		cpu += (uint64_t)(program->cpu_share * READ_NS * (at / TURN_NS % 2 ? 1 : 1 + program->idle_extra));
	}
	text_printf(&text, "0 thread ref=7 start_ticks=0 name=\"main\"\n0 thread_time ref=7 cpu_ns=0 run_wait_ns=0 state=82\n%lu thread_time ref=7 cpu_ns=%lu run_wait_ns=%lu state=82\n", (unsigned long)end,
		    (unsigned long)cpu, (unsigned long)(program->run_wait_share * (double)end));
	text_printf(&text, "%lu counter name=\"overhead_ppm\" value=20000\n" THREAD(3, 7) "0 enter ref=1\n", (unsigned long)end);
	for (at = 0; program->item_on_ns && at < end; id++) {
		text_printf(&text, "%lu scope_enter scope=%lu name=\"predict\" metadata=\"\"\n", (unsigned long)at, (unsigned long)id);
		at += (uint64_t)((double)(at / TURN_NS % 2 ? program->item_off_ns : program->item_on_ns) / program->cpu_share);
		text_printf(&text, "%lu scope_exit scope=%lu\n", (unsigned long)at, (unsigned long)id);
	}
	cr_assert_not(text.failed);
	timeline = timeline_from_text(text.data);
	text_done(&text);
	return timeline;
}

Test(timeline_turns, compare_scopes_that_ended_per_cpu_time)
{
	struct timeline *t = timeline_of(&(struct program){ .pairs = 60, .cpu_share = 1, .item_on_ns = 2200000, .item_off_ns = 2000000 });

	cr_assert_eq(t->turns.work, WORK_ITEMS);
	cr_assert_str_eq(t->turns.item, "predict");
	cr_assert_eq(t->turns.pairs, 59, "%zu", t->turns.pairs); /* the first turn is not told, the last one has no end */
	cr_assert_float_eq(t->turns.ratio, 2.0 / 2.2, 0.01, "%f", t->turns.ratio);
	cr_assert(t->turns.ratio_low <= t->turns.ratio && t->turns.ratio <= t->turns.ratio_high && t->turns.ratio_high < 0.95);
	/* All of the 2 % of the whole lie in the turns with collection. */
	cr_assert_float_eq(t->turns.ledger_pct, 4, 0.1, "%f", t->turns.ledger_pct);
}

Test(timeline_turns, compare_cpu_time_of_a_program_that_waits_for_work)
{
	struct timeline *t = timeline_of(&(struct program){ .pairs = 60, .cpu_share = 0.3, .idle_extra = 0.05 });

	cr_assert_eq(t->turns.work, WORK_SECONDS);
	cr_assert_float_eq(t->turns.ratio, 1 / 1.05, 0.002, "%f", t->turns.ratio);
	cr_assert_float_eq(t->turns.ledger_pct, 3.87, 0.1, "%f", t->turns.ledger_pct);
}

Test(timeline_turns, take_a_program_that_gets_no_cpu_for_a_busy_one)
{
	struct timeline *t = timeline_of(&(struct program){ .pairs = 60, .cpu_share = 0.3, .idle_extra = 0.05, .run_wait_share = 0.6 });

	cr_assert_eq(t->turns.work, WORK_UNKNOWN);
	cr_assert_not_null(t->turns.why);
}

Test(timeline_turns, say_nothing_of_a_busy_program_that_tells_nothing)
{
	struct timeline *t = timeline_of(&(struct program){ .pairs = 60, .cpu_share = 1 });

	cr_assert_eq(t->turns.work, WORK_UNKNOWN);
	cr_assert_not_null(t->turns.why);
}

Test(timeline_turns, say_nothing_of_too_few_turns)
{
	struct timeline *t = timeline_of(&(struct program){ .pairs = 10, .cpu_share = 1, .item_on_ns = 2000000, .item_off_ns = 2000000 });

	cr_assert_eq(t->turns.work, WORK_UNKNOWN);
	cr_assert_not_null(t->turns.why);
}

Test(timeline_turns, are_not_there_in_a_trace_without_any)
{
	struct timeline *t = timeline_from_text(META NAMES ON(0) OFF(1000) THREAD(3, 7) "0 enter ref=1\n1000 leave ref=1\n");

	cr_assert_eq(t->turns.work, WORK_UNKNOWN);
	cr_assert_null(t->turns.why);
}

Test(timeline_turns, have_an_interval_that_holds_the_truth_in_95_of_100_trials)
{
	enum { TRIALS = 400, PAIRS = 60 };
	struct ratio_pair pairs[PAIRS];
	uint64_t state = 7;
	int held = 0;

	for (int trial = 0; trial < TRIALS; trial++) {
		struct ratio ratio;

		/* The machine is faster and slower for a while, in both turns of a pair alike, and each turn has noise of its own. */
		for (int i = 0; i < PAIRS; i++) {
			double speed = 1 + 0.2 * normal(&state);

			speed = speed < 0.3 ? 0.3 : speed;
			pairs[i] = (struct ratio_pair){ 0.96 * speed * 100 * (1 + 0.05 * normal(&state)), 80, speed * 100 * (1 + 0.05 * normal(&state)), 80 };
		}
		cr_assert(ratio_of_pairs(pairs, PAIRS, &ratio));
		held += ratio.low <= 0.96 && 0.96 <= ratio.high;
		cr_assert_lt(ratio.high - ratio.low, 0.08);
	}
	cr_assert(held >= TRIALS * 91 / 100 && held <= TRIALS * 985 / 1000, "%d of %d", held, TRIALS);
}

Test(timeline_turns, have_no_interval_where_nothing_was_done)
{
	struct ratio_pair pairs[RATIO_PAIRS_LEAST] = { { 0 } };
	struct ratio ratio = { 0 };

	cr_assert_not(ratio_of_pairs(pairs, RATIO_PAIRS_LEAST, &ratio));
	for (int i = 0; i < RATIO_PAIRS_LEAST; i++)
		pairs[i] = (struct ratio_pair){ 1, 1, 1, 1 };
	cr_assert_not(ratio_of_pairs(pairs, RATIO_PAIRS_LEAST - 1, &ratio));
	cr_assert(ratio_of_pairs(pairs, RATIO_PAIRS_LEAST, &ratio));
	cr_assert_float_eq(ratio.low, 1, 1e-9);
	cr_assert_float_eq(ratio.high, 1, 1e-9);
}
