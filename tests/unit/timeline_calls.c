/* Calls matched: who called whom, how often, for how long. */
#include "timeline_help.h"

#include <criterion/criterion.h>

Test(timeline_calls, charge_a_call_to_callee_and_total_to_caller)
{
	struct timeline *t = timeline_from_text(META NAMES ON(0) OFF(1000) THREAD(3, 7)
		"0 enter ref=1\n100 enter ref=2\n400 leave ref=2\n1000 leave ref=1\n");

	cr_assert_eq(t->duration_ns, 1000);
	cr_assert_eq(function_named(t, "main")->self_ns, 700);
	cr_assert_eq(function_named(t, "main")->total_ns, 1000);
	cr_assert_eq(function_named(t, "work")->self_ns, 300);
	cr_assert_eq(function_named(t, "work")->calls, 1);
	cr_assert_eq(function_named(t, "work")->precision, PRECISION_EXACT);
	cr_assert_eq(node_at(t, "main;work")->total_ns, 300);
	cr_assert_eq(t->nodes[0].total_ns, 1000);
}

Test(timeline_calls, count_recursion_once_in_totals)
{
	struct timeline *t = timeline_from_text(META NAMES ON(0) OFF(1000) THREAD(3, 7)
		"0 enter ref=2\n100 enter ref=2\n200 enter ref=3\n300 enter ref=2\n400 leave ref=2\n500 leave ref=3\n600 leave ref=2\n1000 leave ref=2\n");
	const struct function *work = function_named(t, "work");

	cr_assert_eq(work->calls, 3);
	cr_assert_eq(work->self_ns, 800);
	cr_assert_eq(work->total_ns, 1000);
	cr_assert_eq(work->longest_ns, 1000);
	cr_assert_eq(node_at(t, "work;work;App.step;work")->calls, 1);
}

Test(timeline_calls, give_suspended_time_to_nobody)
{
	/* work is a generator: made and first run by main, then resumed by step. */
	struct timeline *t = timeline_from_text(META NAMES ON(0) OFF(1000) THREAD(3, 7)
		"0 enter ref=1\n100 enter ref=2\n200 yield ref=2\n500 enter ref=3\n600 resume ref=2\n700 leave ref=2\n800 leave ref=3\n1000 leave ref=1\n");
	const struct function *work = function_named(t, "work");

	cr_assert_eq(work->self_ns, 200);
	cr_assert_eq(work->calls, 1, "a resume is no call");
	cr_assert_eq(node_at(t, "main;App.step;work")->total_ns, 100, "a generator runs under who resumes it");
	cr_assert_eq(function_named(t, "main")->self_ns, 600);
}

Test(timeline_calls, count_exceptions_and_close_what_they_left)
{
	struct timeline *t = timeline_from_text(META NAMES ON(0) OFF(1000) THREAD(3, 7)
		"0 enter ref=1\n100 enter ref=2\n200 enter ref=3\n300 leave ref=2 flags=exception\n1000 leave ref=1\n");

	cr_assert_eq(function_named(t, "work")->exceptions, 1);
	cr_assert_eq(function_named(t, "App.step")->self_ns, 100, "its own leave was missed: it ends with its caller");
	cr_assert_eq(t->quality.unmatched, 1);
}

Test(timeline_calls, count_a_leave_without_enter_and_go_on)
{
	struct timeline *t = timeline_from_text(META NAMES ON(0) OFF(1000) THREAD(3, 7)
		"0 leave ref=3\n100 enter ref=1\n200 leave ref=2\n1000 leave ref=1\n");

	cr_assert_eq(t->quality.unmatched, 2);
	cr_assert_eq(function_named(t, "main")->self_ns, 900);
}

Test(timeline_calls, take_seeds_as_running_since_the_window_began)
{
	struct timeline *t = timeline_from_text(META NAMES ON(1000) OFF(2000) THREAD(3, 7)
		"1600 stack_begin omitted=0\n1600 seed ref=1\n1600 seed ref=2\n1700 leave ref=2\n1800 leave ref=1\n");

	cr_assert_eq(function_named(t, "work")->self_ns, 700);
	cr_assert_eq(function_named(t, "work")->calls, 0, "it was not called while watched");
	cr_assert_eq(function_named(t, "main")->self_ns, 100);
}

Test(timeline_calls, keep_frames_open_that_a_second_stack_confirms)
{
	struct timeline *t = timeline_from_text(META NAMES ON(0) OFF(1000) THREAD(3, 7)
		"0 enter ref=1\n100 enter ref=2\n500 stack_begin omitted=0\n500 seed ref=1\n500 seed ref=3\n1000 leave ref=3\n");

	cr_assert_eq(function_named(t, "work")->self_ns, 400, "not on the true stack: ended");
	cr_assert_eq(function_named(t, "App.step")->self_ns, 500);
	cr_assert_eq(function_named(t, "main")->longest_ns, 1000, "the same call all along");
}

Test(timeline_calls, close_at_the_end_of_a_window)
{
	struct timeline *t = timeline_from_text(META NAMES ON(0) OFF(600) THREAD(3, 7) "100 enter ref=1\n200 enter ref=2\n");

	cr_assert_eq(function_named(t, "work")->self_ns, 400);
	cr_assert_eq(function_named(t, "main")->total_ns, 500);
}

Test(timeline_calls, take_over_depth_and_refs_after_a_loss)
{
	struct timeline *t = timeline_from_text(META NAMES ON(0) OFF(2000) THREAD(3, 7)
		"0 enter ref=1\n500 enter ref=2\n"
		"chunk process=0 lane=3 tid=7 kind=thread sequence=4 lost=90 depth=5 refs=1,2" CLOCK
		"1000 enter ref=3\n1500 leave ref=3\n1800 leave ref=2\n2000 leave ref=1\n");

	cr_assert_eq(t->quality.lost_events, 90);
	cr_assert_eq(function_named(t, "App.step")->seen_self_ns, 500);
	cr_assert_eq(function_named(t, "work")->seen_self_ns, 300, "nothing from 500 to 1000, when events were lost");
	cr_assert_not_null(node_at(t, "(unknown);main;work;App.step"), "deeper frames are unknown until seen");
	cr_assert_eq(t->threads[0].covered_ns, 1500);
}

Test(timeline_calls, do_not_run_backwards)
{
	struct timeline *t = timeline_from_text(META NAMES ON(0) OFF(1000) THREAD(3, 7)
		"500 enter ref=1\n400 enter ref=2\n300 leave ref=2\n600 leave ref=1\n");

	cr_assert_eq(function_named(t, "work")->self_ns, 0);
	cr_assert_eq(function_named(t, "main")->self_ns, 100);
}

Test(timeline_calls, see_a_forged_ref_as_unknown)
{
	struct timeline *t = timeline_from_text(META NAMES ON(0) OFF(1000) THREAD(3, 7) "0 enter ref=4294967295\n1000 leave ref=4294967295\n");

	cr_assert_eq(function_named(t, "(unknown)")->self_ns, 1000);
	cr_assert_eq(t->quality.unresolved_names, 1);
}

Test(timeline_calls, call_the_same_code_by_one_name)
{
	/* The sampler and the collector number code objects on their own. */
	struct timeline *t = timeline_from_text(META NAMES ON(0) OFF(1000)
		"0 code ref=1073741825 line=10 name=\"work\" qualname=\"work\" file=\"/srv/app.py\"\n"
		THREAD(3, 7) "0 enter ref=2\n500 leave ref=2\n500 enter ref=1073741825\n1000 leave ref=1073741825\n");

	cr_assert_eq(t->function_count, 1);
	cr_assert_eq(function_named(t, "work")->calls, 2);
}

Test(timeline_calls, convert_ticks_of_any_clock_exactly)
{
	/* 3 ticks per ns from 900 = 1 000 000 ns on. */
	struct timeline *t = timeline_from_text("chunk process=0 lane=1 tid=0 kind=meta sequence=1 lost=0 depth=0 refs= clock=3000000000/900/1000000\n"
		NAMES "900 window_on reason=1\n3900 window_off reason=1\n"
		"chunk process=0 lane=3 tid=7 kind=thread sequence=1 lost=0 depth=0 refs= clock=3000000000/900/1000000\n"
		"900 enter ref=1\n1502 leave ref=1\n");

	cr_assert_eq(t->start_ns, 1000000);
	cr_assert_eq(t->duration_ns, 1000);
	cr_assert_eq(function_named(t, "main")->self_ns, 200, "rounded down from 200.67");
}
