/* Hooks that were on for a part of the time only: what was seen is scaled, by what was seen nearest. */
#include "timeline_help.h"

#include <criterion/criterion.h>
#include <stdio.h>

Test(timeline_windows, scale_calls_and_times_of_a_thread_seen_half_of_the_time)
{
	struct timeline *t = timeline_from_text(META NAMES
		"0 window_on reason=1\n1000000 window_off reason=2\n2000000 window_on reason=2\n3000000 window_off reason=2\n4000000 window_on reason=1\n4000000 window_off reason=1\n"
		THREAD(3, 7)
		"0 enter ref=1\n100000 enter ref=2\n500000 leave ref=2\n"
		"2000000 stack_begin omitted=0\n2000000 seed ref=1\n2100000 enter ref=2\n2500000 leave ref=2\n");
	const struct function *work = function_named(t, "work");

	cr_assert_eq(t->duration_ns, 4000000);
	cr_assert_float_eq(t->coverage, 0.5, 1e-9);
	cr_assert_eq(work->precision, PRECISION_ESTIMATED);
	cr_assert_eq(work->seen_calls, 2);
	cr_assert_eq(work->seen_self_ns, 800000);
	cr_assert_eq(work->calls, 4, "%lu", (unsigned long)work->calls);
	cr_assert_eq(work->self_ns, 1600000);
	cr_assert_eq(function_named(t, "main")->total_ns, 4000000);
}

Test(timeline_windows, let_a_short_window_stand_for_the_long_time_around_it)
{
	/* The brake makes windows short while much is called: 100 us of hot code between 1 ms stand for as much time as the quiet window. */
	struct timeline *t = timeline_from_text(META NAMES
		"0 window_on reason=1\n1000000 window_off reason=2\n5000000 window_on reason=2\n5100000 window_off reason=2\n9000000 window_on reason=2\n10000000 window_off reason=1\n"
		THREAD(3, 7)
		"0 enter ref=1\n"
		"5000000 stack_begin omitted=0\n5000000 seed ref=2\n5050000 enter ref=3\n5060000 leave ref=3\n"
		"9000000 stack_begin omitted=0\n9000000 seed ref=1\n9100000 enter ref=4\n9200000 leave ref=4\n");

	cr_assert_float_eq((double)function_named(t, "App.step")->calls, 40, 1);
	cr_assert_float_eq((double)function_named(t, "work")->total_ns, 4.0e6, 0.1e6);
	cr_assert_float_eq((double)function_named(t, "main")->total_ns, 6.0e6, 0.1e6);
}

/* Hooks are off from 1 ms to 9 ms; what ran then is told by the first millisecond after it. */
#define PLANNED "0 window_on reason=1\n1000000 window_off reason=2\n9000000 window_on reason=2\n9000000 window_plan duration_ns=1000000\n12000000 window_off reason=1\n"

Test(timeline_windows, let_a_planned_stretch_stand_for_the_time_before_it)
{
	struct timeline *t = timeline_from_text(META NAMES PLANNED THREAD(3, 7)
		"0 enter ref=1\n1000000 leave ref=1\n"
		"9000000 stack_begin omitted=0\n9000000 seed ref=2\n9250000 leave ref=2\n9250000 enter ref=3\n12000000 leave ref=3\n");

	cr_assert_eq(function_named(t, "main")->self_ns, 1000000);
	cr_assert_eq(function_named(t, "work")->self_ns, 250000 + 2000000, "%lu", (unsigned long)function_named(t, "work")->self_ns);
	cr_assert_eq(function_named(t, "App.step")->self_ns, 2750000 + 6000000, "what comes after the stretch stands for itself: %lu", (unsigned long)function_named(t, "App.step")->self_ns);
	cr_assert_eq(function_named(t, "App.step")->calls, 9, "one seen, and one for each millisecond");
}

Test(timeline_windows, take_off_what_hooks_cost_where_a_stretch_stands_for_others)
{
	/* 0.1 ms for each event, half of it in the callee. */
	struct timeline *t = timeline_from_text(META NAMES PLANNED SESSION "12000000 counter name=\"cost_ps_py\" value=100000000\n" THREAD(3, 7)
		"9000000 stack_begin omitted=0\n9000000 seed ref=1\n9200000 enter ref=2\n9600000 leave ref=2\n12000000 leave ref=1\n");

	cr_assert_eq(function_named(t, "work")->self_ns, 400000 + 8000000 * 3 / 8, "%lu", (unsigned long)function_named(t, "work")->self_ns);
	cr_assert_eq(function_named(t, "main")->self_ns, 2600000 + 8000000 * 5 / 8, "%lu", (unsigned long)function_named(t, "main")->self_ns);
	cr_assert_eq(function_named(t, "work")->calls, 1 + 10, "as many as fit without hooks");
	cr_assert_eq(t->threads[0].hooks_ns, 5 * 100000, "%lu", (unsigned long)t->threads[0].hooks_ns);
}

Test(timeline_windows, credit_a_quiet_window_to_the_stack_that_did_not_move)
{
	struct timeline *t = timeline_from_text(META NAMES
		"0 window_on reason=1\n1000000 window_off reason=2\n2000000 window_on reason=2\n3000000 window_off reason=2\n4000000 window_on reason=2\n5000000 window_off reason=1\n"
		THREAD(3, 7)
		"100000 enter ref=1\n"
		"4500000 stack_begin omitted=0\n4500000 seed ref=1\n4600000 leave ref=1\n");

	cr_assert_eq(function_named(t, "main")->seen_self_ns, 900000 + 1000000 + 600000);
}

Test(timeline_windows, leave_a_quiet_window_to_nobody_when_the_stack_moved)
{
	struct timeline *t = timeline_from_text(META NAMES
		"0 window_on reason=1\n1000000 window_off reason=2\n2000000 window_on reason=2\n3000000 window_off reason=2\n4000000 window_on reason=2\n5000000 window_off reason=1\n"
		THREAD(3, 7)
		"100000 enter ref=1\n"
		"4500000 stack_begin omitted=0\n4500000 seed ref=2\n4600000 leave ref=2\n");

	cr_assert_eq(function_named(t, "main")->seen_self_ns, 900000);
	cr_assert_eq(function_named(t, "work")->seen_self_ns, 600000);
}

Test(timeline_windows, never_scale_a_thread_with_full_coverage)
{
	/* Both threads are seen with hooks on, but 8 lost a third of its events. */
	struct timeline *t = timeline_from_text(META NAMES ON(0) OFF(3000) THREAD(3, 7) "0 enter ref=1\n3000 leave ref=1\n"
		THREAD(4, 8) "0 enter ref=2\n1000 leave ref=2\n"
		"chunk process=0 lane=4 tid=8 kind=thread sequence=3 lost=10 depth=0 refs=" CLOCK "2000 enter ref=2\n3000 leave ref=2\n");

	cr_assert_eq(function_named(t, "main")->precision, PRECISION_EXACT);
	cr_assert_eq(function_named(t, "main")->self_ns, 3000);
	cr_assert_eq(function_named(t, "work")->precision, PRECISION_ESTIMATED);
	cr_assert_eq(function_named(t, "work")->self_ns, 3000);
}

Test(timeline_windows, add_counted_calls)
{
	struct timeline *t = timeline_from_text(META NAMES ON(0) "500 count ref=2 calls=41\n" OFF(1000) THREAD(3, 7) "0 enter ref=2\n1000 leave ref=2\n");

	cr_assert_eq(function_named(t, "work")->calls, 42);
	cr_assert_eq(function_named(t, "work")->precision, PRECISION_COUNTED);
}

Test(timeline_windows, let_samples_tell_shares_when_little_was_covered)
{
	char text[16384];
	size_t at = (size_t)snprintf(text, sizeof text, "%s", META NAMES "0 window_on reason=1\n100000000 window_off reason=2\n" SESSION
		"0 stack ref=1 parent=0 frame=1 kind=0\n0 stack ref=2 parent=1 frame=2 kind=0\n0 stack ref=3 parent=1 frame=3 kind=0\n"
		"0 thread_time ref=7 cpu_ns=0 state=82\n1000000000 thread_time ref=7 cpu_ns=800000000 state=83 wait=\"read\"\n");

	for (int i = 0; i < 100; i++)
		at += (size_t)snprintf(text + at, sizeof text - at, "%d sample ref=%d tid=7 state=1 weight_ns=10000000\n", i * 10000000, i % 4 ? 2 : 3);
	snprintf(text + at, sizeof text - at, "%s", THREAD(3, 7) "0 enter ref=3\n1000 leave ref=3\n");
	struct timeline *t = timeline_from_text(text);

	cr_assert_eq(function_named(t, "work")->precision, PRECISION_SAMPLED);
	cr_assert_eq(function_named(t, "work")->samples_self, 75);
	/* 0.9 s were not covered, 80 % of them on a CPU; of the 90 samples there 68 are in work. */
	cr_assert_eq(function_named(t, "work")->self_ns, 544000000, "%lu", (unsigned long)function_named(t, "work")->self_ns);
	cr_assert_eq(function_named(t, "App.step")->self_ns, 176001000);
	cr_assert_eq(function_named(t, "main")->total_ns, 720000000);
	cr_assert_eq(function_named(t, "App.step")->calls, 10, "calls come from the window");
}

Test(timeline_windows, do_not_cover_a_thread_that_is_left_alone)
{
	struct timeline *t = timeline_from_text(META NAMES ON(0) "0 unhooked ref=7 reason=\"its hook is taken\"\n" OFF(1000000000) SESSION
		"0 stack ref=1 parent=0 frame=1 kind=0\n0 stack ref=2 parent=1 frame=2 kind=0\n"
		"0 thread_time ref=7 cpu_ns=0 state=82\n500000000 sample ref=2 tid=7 state=1 weight_ns=10000000\n1000000000 thread_time ref=7 cpu_ns=1000000000 state=82\n"
		THREAD(3, 7) "0 stack_begin omitted=0\n0 seed ref=1\n");

	cr_assert_eq(t->threads[0].covered_ns, 0);
	cr_assert_eq(function_named(t, "work")->self_ns, 1000000000);
	cr_assert_eq(function_named(t, "work")->precision, PRECISION_SAMPLED);
	cr_assert_eq(function_named(t, "main")->self_ns, 0);
}

Test(timeline_windows, count_what_is_only_counted_and_give_it_time_by_samples)
{
	/* work is traced for 1 ms, then counted; of 8 samples of main's own time after that, 4 fell into work. */
	struct timeline *t = timeline_from_text(META NAMES
		"0 window_on reason=1\n1000000 throttle ref=2 what=1 load_permille=1500\n9000000 window_off reason=1\n"
		THREAD(3, 7)
		"0 enter ref=1\n100000 enter ref=2\n200000 leave ref=2\n9000000 leave ref=1\n"
		SESSION
		"0 stack ref=1 parent=0 frame=1 kind=0\n0 stack ref=2 parent=1 frame=2 kind=0\n"
		"2000000 sample ref=1 tid=7 state=1 weight_ns=1000000\n3000000 sample ref=2 tid=7 state=1 weight_ns=1000000\n"
		"4000000 sample ref=1 tid=7 state=1 weight_ns=1000000\n5000000 sample ref=2 tid=7 state=1 weight_ns=1000000\n"
		"6000000 sample ref=1 tid=7 state=1 weight_ns=1000000\n7000000 sample ref=2 tid=7 state=1 weight_ns=1000000\n"
		"8000000 sample ref=1 tid=7 state=1 weight_ns=1000000\n8500000 sample ref=2 tid=7 state=1 weight_ns=1000000\n"
		"8600000 count ref=2 calls=41\n");
	const struct function *work = function_named(t, "work"), *outer = function_named(t, "main");

	cr_assert_eq(work->precision, PRECISION_COUNTED);
	cr_assert_eq(work->calls, 42, "%lu", (unsigned long)work->calls);
	cr_assert_eq(work->self_ns, 100000 + 4450000, "%lu", (unsigned long)work->self_ns);
	cr_assert_eq(work->self_ns + outer->self_ns, 9000000);
	cr_assert_eq(outer->precision, PRECISION_COUNTED, "its calls are exact, its times are not any more");
	cr_assert_eq(t->throttle_count, 1);
	cr_assert_eq(t->throttles[0].at_ns, 1000000);
	cr_assert_eq(&t->functions[t->throttles[0].function], work);
}

Test(timeline_windows, take_the_time_of_what_is_left_out_from_samples)
{
	/* work calls itself; when it is left out its calls are not known any more, and half of main's samples are in it. */
	struct timeline *t = timeline_from_text(META NAMES
		"0 window_on reason=1\n1000000 throttle ref=2 what=5 load_permille=9000\n9000000 window_off reason=1\n"
		THREAD(3, 7)
		"0 enter ref=1\n100000 enter ref=2\n200000 leave ref=2\n9000000 leave ref=1\n"
		SESSION
		"0 stack ref=1 parent=0 frame=1 kind=0\n0 stack ref=2 parent=1 frame=2 kind=0\n0 stack ref=3 parent=2 frame=2 kind=0\n"
		"2000000 sample ref=1 tid=7 state=1 weight_ns=1000000\n3000000 sample ref=2 tid=7 state=1 weight_ns=1000000\n"
		"4000000 sample ref=1 tid=7 state=1 weight_ns=1000000\n5000000 sample ref=3 tid=7 state=1 weight_ns=1000000\n");
	const struct function *work = function_named(t, "work"), *outer = function_named(t, "main");

	cr_assert_eq(work->precision, PRECISION_SAMPLED);
	cr_assert_eq(work->self_ns, 100000 + 4450000, "%lu", (unsigned long)work->self_ns);
	cr_assert_eq(work->self_ns + outer->self_ns, 9000000);
	cr_assert_eq(outer->seen_calls, 1);
}

Test(timeline_windows, scale_counts_of_a_function_that_was_counted_in_windows)
{
	struct timeline *t = timeline_from_text(META NAMES
		"0 window_on reason=1\n1000000 throttle ref=2 what=1 load_permille=1500\n2000000 window_off reason=2\n3000000 window_on reason=2\n4000000 window_off reason=1\n"
		"4000000 count ref=2 calls=30\n"
		THREAD(3, 7)
		"0 enter ref=1\n3000000 stack_begin omitted=0\n3000000 seed ref=1\n");
	const struct function *work = function_named(t, "work");

	cr_assert_eq(work->precision, PRECISION_ESTIMATED);
	cr_assert_eq(work->seen_calls, 30);
	cr_assert_eq(work->calls, 40, "%lu", (unsigned long)work->calls);
}

/* A thread that calls something now and then: each loss tears pieces of a few microseconds out of a second in which little happened. */
Test(timeline_windows, let_pieces_between_losses_stand_for_what_was_lost_and_no_more)
{
	struct timeline *t = timeline_from_text(META NAMES "0 window_on reason=1\n0 window_plan duration_ns=1000000000\n1000000000 window_off reason=1\n" THREAD(3, 7)
		"0 enter ref=2\n10000 leave ref=2\n"
		"chunk process=0 lane=3 tid=7 kind=thread sequence=3 lost=4 depth=0 refs=" CLOCK "500000000 enter ref=2\n500010000 leave ref=2\n"
		"chunk process=0 lane=3 tid=7 kind=thread sequence=5 lost=8 depth=0 refs=" CLOCK "999990000 enter ref=2\n1000000000 leave ref=2\n");

	cr_assert_eq(function_named(t, "work")->seen_calls, 3);
	cr_assert_eq(function_named(t, "work")->precision, PRECISION_ESTIMATED);
	cr_assert_float_eq((double)function_named(t, "work")->calls, 7, 1);
	cr_assert_leq(function_named(t, "work")->self_ns, 80000);
}

Test(timeline_windows, call_nothing_exact_where_threads_had_no_lane)
{
	struct timeline *t = timeline_from_text(META NAMES ON(0) OFF(3000) SESSION "3000 counter name=\"lane_overflow\" value=2\n" THREAD(3, 7) "0 enter ref=1\n3000 leave ref=1\n");

	cr_assert_eq(function_named(t, "main")->precision, PRECISION_ESTIMATED);
}
