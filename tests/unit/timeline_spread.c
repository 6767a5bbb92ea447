/* Confidence intervals of estimated times: how often they hold the truth, on programs whose truth is made here. */
#include "timeline_help.h"

#include <criterion/criterion.h>
#include <math.h>

#include "base/text.h"
#include "timeline/spread.h"

enum { FUNCTIONS = 3, TRIALS = 100, MS = 1000000, CAPTURE_MS = 4000 };

static const double MEAN_MS[FUNCTIONS] = { 6, 2.5, 0.8 };
static const char *const FUNCTION_NAMES[FUNCTIONS] = { "main", "work", "App.step" };

struct truth { uint64_t ns[FUNCTIONS]; };

/* The calls of a program: functions in random turn, each for a random time. */
struct script { uint64_t state, at_ns, until_ns; int function; };

static double uniform(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return ((double)(*state >> 11) + 0.5) / 9007199254740992.0;
}

static void next_call(struct script *script, struct truth *truth)
{
	script->at_ns = script->until_ns;
	script->function = (int)(uniform(&script->state) * FUNCTIONS);
	script->until_ns += 1000 + (uint64_t)(-log(uniform(&script->state)) * MEAN_MS[script->function] * MS);
	if (script->until_ns > (uint64_t)CAPTURE_MS * MS)
		script->until_ns = (uint64_t)CAPTURE_MS * MS;
	truth->ns[script->function] += script->until_ns - script->at_ns;
}

/* How many of the intervals hold what was true. */
static int held(const struct timeline *timeline, const struct truth *truth)
{
	int count = 0;

	for (int i = 0; i < FUNCTIONS; i++) {
		const struct function *function = function_named(timeline, FUNCTION_NAMES[i]);

		cr_assert(function->self_low_ns <= function->self_ns && function->self_ns <= function->self_high_ns && function->self_high_ns, "%s", function->name);
		count += function->self_low_ns <= truth->ns[i] && truth->ns[i] <= function->self_high_ns;
	}
	return count;
}

/* Every 10 ms or so what runs then. */
static void add_sampled(struct text *text, uint64_t seed, struct truth *truth)
{
	struct script script = { .state = seed };
	uint64_t at = (uint64_t)(uniform(&script.state) * 10 * MS);

	text_add_string(text, META NAMES SESSION "0 thread ref=7 start_ticks=0 name=\"main\"\n0 thread_time ref=7 cpu_ns=0 run_wait_ns=0 voluntary=0 involuntary=0 state=82 wait=\"\"\n"
			"0 stack ref=1 parent=0 frame=1 kind=0\n0 stack ref=2 parent=0 frame=2 kind=0\n0 stack ref=3 parent=0 frame=3 kind=0\n");
	while (at < (uint64_t)CAPTURE_MS * MS) {
		while (script.until_ns <= at)
			next_call(&script, truth);
		text_printf(text, "%lu sample ref=%d tid=7 state=1 weight_ns=10000000\n", (unsigned long)at, script.function + 1);
		at += (uint64_t)((8 + 4 * uniform(&script.state)) * MS);
	}
	while (script.until_ns < (uint64_t)CAPTURE_MS * MS)
		next_call(&script, truth);
	text_printf(text, "%lu thread_time ref=7 cpu_ns=%lu run_wait_ns=0 voluntary=0 involuntary=0 state=82 wait=\"\"\n", (unsigned long)CAPTURE_MS * MS, (unsigned long)CAPTURE_MS * MS);
}

/* Hooks are on for 20 ms of each 100; PLANNED: which is said beforehand. */
static void add_windows(struct text *text, uint64_t seed, struct truth *truth, bool planned)
{
	struct script script = { .state = seed };

	text_add_string(text, META NAMES);
	for (unsigned long at = 0; at < CAPTURE_MS; at += 100)
		text_printf(text, "%lu window_on reason=2\n%lu window_plan duration_ns=%d\n%lu window_off reason=2\n", at * MS, at * MS, planned ? 20 * MS : 0, (at + 20) * MS);
	text_printf(text, "%lu window_on reason=1\n%lu window_off reason=1\n" THREAD(3, 7), (unsigned long)CAPTURE_MS * MS, (unsigned long)CAPTURE_MS * MS);
	for (unsigned long at = 0; at < CAPTURE_MS; at += 100) {
		uint64_t on = at * MS, off = on + 20 * MS;

		while (script.until_ns <= on)
			next_call(&script, truth);
		text_printf(text, "%lu stack_begin omitted=0\n%lu seed ref=%d\n", (unsigned long)on, (unsigned long)on, script.function + 1);
		while (script.until_ns < off) {
			text_printf(text, "%lu leave ref=%d\n", (unsigned long)script.until_ns, script.function + 1);
			next_call(&script, truth);
			text_printf(text, "%lu enter ref=%d\n", (unsigned long)script.at_ns, script.function + 1);
		}
	}
	while (script.until_ns < (uint64_t)CAPTURE_MS * MS)
		next_call(&script, truth);
}

static void add_windowed(struct text *text, uint64_t seed, struct truth *truth)
{
	add_windows(text, seed, truth, false);
}

static void add_planned(struct text *text, uint64_t seed, struct truth *truth)
{
	add_windows(text, seed, truth, true);
}

/* Of all intervals of all trials: about 95 of 100, and not all, as an interval that holds everything says nothing. */
static double share_held(void (*add)(struct text *, uint64_t, struct truth *))
{
	int sum = 0;

	for (uint64_t trial = 1; trial <= TRIALS; trial++) {
		struct truth truth = { { 0 } };
		struct timeline *timeline;
		struct text text;

		text_init(&text);
		add(&text, trial * 7919, &truth);
		timeline = timeline_from_text(text.data);
		text_done(&text);
		sum += held(timeline, &truth);
	}
	return (double)sum / (TRIALS * FUNCTIONS);
}

Test(timeline_spread, of_samples_holds_the_truth_in_about_95_of_100)
{
	double share = share_held(add_sampled);

	cr_assert(share >= 0.92 && share <= 0.995, "%.3f", share);
}

Test(timeline_spread, of_windows_holds_the_truth_in_about_95_of_100)
{
	double share = share_held(add_windowed);

	cr_assert(share >= 0.92 && share <= 0.995, "%.3f", share);
}

Test(timeline_spread, of_planned_windows_holds_the_truth_in_about_95_of_100)
{
	double share = share_held(add_planned);

	cr_assert(share >= 0.92 && share <= 0.995, "%.3f", share);
}

Test(timeline_spread, is_not_told_of_what_was_seen_whole)
{
	struct timeline *t = timeline_from_text(META NAMES ON(0) OFF(3000) THREAD(3, 7) "0 enter ref=1\n1000 enter ref=2\n2000 leave ref=2\n3000 leave ref=1\n");

	cr_assert_eq(function_named(t, "work")->self_low_ns, 0);
	cr_assert_eq(function_named(t, "work")->self_high_ns, 0);
}

Test(timeline_spread, of_a_share_is_wilsons)
{
	double low, high;

	spread_share(0, 100, &low, &high);
	cr_assert_float_eq(low, 0, 1e-9);
	cr_assert_float_eq(high, 0.037, 0.001, "%f", high);
	spread_share(50, 100, &low, &high);
	cr_assert_float_eq(low, 0.404, 0.001, "%f", low);
	cr_assert_float_eq(high, 0.596, 0.001, "%f", high);
	spread_share(100, 100, &low, &high);
	cr_assert_float_eq(high, 1, 1e-9);
}
