/* Native frames of samples: below the Python function that called them, and who held the GIL. */
#include "timeline_help.h"

#include <stdio.h>

#include <criterion/criterion.h>

/* Modules 1 the interpreter, 2 numpy, 3 libc. Native frames 1 eval loop's helper, 2 dispatch, 3 and 4 of numpy, 5 futex, 6 a C function of the interpreter, 7 take_gil. */
#define MODULES \
	"0 module ref=1 path=\"/usr/bin/python3.11\"\n0 module ref=2 path=\"/srv/venv/_multiarray.so\"\n0 module ref=3 path=\"/usr/lib/libc.so.6\"\n" \
	"0 native ref=1 module=1 name=\"long_add\"\n0 native ref=2 module=1 name=\"cfunction_vectorcall_FASTCALL\"\n" \
	"0 native ref=3 module=2 name=\"array_dot\"\n0 native ref=4 module=2 name=\"dgemm_kernel\" file=\"/src/gemm.c\" line=12\n" \
	"0 native ref=5 module=3 name=\"__futex_abstimed_wait\"\n0 native ref=6 module=1 name=\"list_sort\"\n0 native ref=7 module=1 name=\"take_gil\"\n"
/* Stacks: 1 main, 2 main work; 3 and 4 numpy below work; 5 helper below work; 6 dispatch, 7 list_sort below work; 8 futex below work; 9 a native thread; 10 take_gil below work. */
#define STACKS MODULES \
	"0 stack ref=1 parent=0 frame=1 kind=0\n0 stack ref=2 parent=1 frame=2 kind=0\n" \
	"0 stack ref=3 parent=2 frame=3 kind=1\n0 stack ref=4 parent=3 frame=4 kind=1\n0 stack ref=5 parent=2 frame=1 kind=1\n" \
	"0 stack ref=6 parent=2 frame=2 kind=1\n0 stack ref=7 parent=6 frame=6 kind=1\n0 stack ref=8 parent=2 frame=5 kind=1\n" \
	"0 stack ref=9 parent=0 frame=4 kind=1\n0 stack ref=10 parent=2 frame=7 kind=1\n"
#define PYTHON "1"
#define NATIVE "2"
#define SAMPLE(at, stack, state) #at " sample ref=" #stack " tid=7 state=" state " weight_ns=10\n"

static uint64_t sum_of_nodes(const struct timeline *timeline)
{
	uint64_t sum = 0;

	for (size_t i = 1; i < timeline->node_count; i++)
		sum += timeline->nodes[i].self_ns;
	return sum;
}

Test(timeline_natives, share_the_time_of_the_call_that_they_were_sampled_in)
{
	struct timeline *t = timeline_from_text(META NAMES ON(0) OFF(1000) SESSION STACKS
		SAMPLE(150, 4, NATIVE) SAMPLE(250, 4, NATIVE) SAMPLE(350, 3, NATIVE) SAMPLE(450, 2, PYTHON) SAMPLE(700, 1, PYTHON)
		THREAD(3, 7) "0 enter ref=1\n100 enter ref=2\n500 leave ref=2\n1000 leave ref=1\n");

	cr_assert_eq(node_at(t, "main;work;array_dot;dgemm_kernel")->self_ns, 200);
	cr_assert_eq(node_at(t, "main;work;array_dot")->self_ns, 100);
	cr_assert_eq(node_at(t, "main;work")->self_ns, 100);
	cr_assert_eq(node_at(t, "main;work")->total_ns, 400);
	cr_assert_eq(node_at(t, "main")->self_ns, 600);
	cr_assert_eq(sum_of_nodes(t), 1000);
	cr_assert_eq(function_named(t, "work")->calls, 1);
	cr_assert_eq(function_named(t, "work")->total_ns, 400);
	cr_assert(function_named(t, "work")->self_split);
	cr_assert_not(function_named(t, "main")->self_split);
	cr_assert_eq(function_named(t, "dgemm_kernel")->kind, FUNCTION_NATIVE);
	cr_assert_eq(function_named(t, "dgemm_kernel")->precision, PRECISION_SAMPLED);
	cr_assert_str_eq(function_named(t, "array_dot")->file, "/srv/venv/_multiarray.so");
	cr_assert(t->native_split);
}

Test(timeline_natives, leave_to_python_what_the_interpreter_does_by_itself)
{
	struct timeline *t = timeline_from_text(META NAMES ON(0) OFF(1000) SESSION STACKS SAMPLE(300, 5, NATIVE) SAMPLE(700, 5, PYTHON)
		THREAD(3, 7) "0 enter ref=1\n0 enter ref=2\n1000 leave ref=2\n1000 leave ref=1\n");

	cr_assert_eq(function_named(t, "work")->self_ns, 1000);
	cr_assert_null(node_at(t, "main;work;long_add"));
	cr_assert_eq(t->threads[0].python_ns, 1000);
	cr_assert(t->native_split, "it is known that nothing was native");
}

Test(timeline_natives, keep_the_c_functions_of_the_interpreter)
{
	struct timeline *t = timeline_from_text(META NAMES ON(0) OFF(1000) SESSION STACKS SAMPLE(300, 7, PYTHON)
		THREAD(3, 7) "0 enter ref=1\n0 enter ref=2\n1000 leave ref=2\n1000 leave ref=1\n");

	cr_assert_eq(node_at(t, "main;work;list_sort")->self_ns, 1000);
}

Test(timeline_natives, leave_a_wait_in_libc_to_the_python_function_that_waits)
{
	struct timeline *t = timeline_from_text(META NAMES ON(0) OFF(1000) SESSION STACKS SAMPLE(300, 8, "4")
		THREAD(3, 7) "0 enter ref=1\n0 enter ref=2\n1000 leave ref=2\n1000 leave ref=1\n");

	cr_assert_eq(function_named(t, "work")->self_ns, 1000);
}

Test(timeline_natives, hang_below_the_c_call_that_was_open)
{
	struct timeline *t = timeline_from_text(META NAMES ON(0) OFF(1000) SESSION STACKS "0 c_function ref=20 name=\"dot\" module=\"numpy\"\n"
		SAMPLE(300, 4, NATIVE) SAMPLE(400, 4, NATIVE) SAMPLE(500, 3, NATIVE) SAMPLE(900, 2, PYTHON)
		THREAD(3, 7) "0 enter ref=1\n0 enter ref=2\n200 c_enter ref=20\n800 c_leave ref=20\n1000 leave ref=2\n1000 leave ref=1\n");

	cr_assert_eq(node_at(t, "main;work;dot;array_dot;dgemm_kernel")->self_ns, 400);
	cr_assert_eq(node_at(t, "main;work;dot")->total_ns, 600);
	cr_assert_eq(node_at(t, "main;work")->self_ns, 400);
	cr_assert_str_eq(function_named(t, "dot")->native, "array_dot");
	cr_assert_str_eq(function_named(t, "dot")->native_file, "/srv/venv/_multiarray.so");
}

/* Its way into the function is no part of it, whether the thread runs or waits. */
Test(timeline_natives, hang_below_the_c_call_without_what_called_it)
{
	static const char *const states[] = { "2", "4" };

	for (size_t i = 0; i < 2; i++) {
		char text[4096];
		struct timeline *t;

		snprintf(text, sizeof text, META NAMES ON(0) OFF(1000) SESSION STACKS "0 c_function ref=20 name=\"dot\" module=\"numpy\"\n"
			"0 stack ref=11 parent=5 frame=2 kind=1\n0 stack ref=12 parent=11 frame=3 kind=1\n0 stack ref=13 parent=12 frame=5 kind=1\n"
			"300 sample ref=13 tid=7 state=%s weight_ns=10\n400 sample ref=13 tid=7 state=%s weight_ns=10\n500 sample ref=13 tid=7 state=%s weight_ns=10\n"
			THREAD(3, 7) "0 enter ref=1\n0 enter ref=2\n200 c_enter ref=20\n800 c_leave ref=20\n1000 leave ref=2\n1000 leave ref=1\n", states[i], states[i], states[i]);
		t = timeline_from_text(text);
		cr_assert_eq(node_at(t, "main;work;dot;array_dot;__futex_abstimed_wait")->self_ns, 600, "state %s", states[i]);
		cr_assert_str_eq(function_named(t, "dot")->native, "array_dot");
	}
}

/* Debian's interpreters have few symbols: what calls and is called without one is the way into the function. */
Test(timeline_natives, hang_below_the_c_call_without_what_called_it_and_has_no_name)
{
	struct timeline *t = timeline_from_text(META NAMES ON(0) OFF(1000) SESSION STACKS "0 c_function ref=20 name=\"dot\" module=\"numpy\"\n0 c_function ref=21 name=\"len\" module=\"builtins\"\n"
		"0 native ref=21 module=1 name=\"PyObject_Vectorcall\"\n0 native ref=22 module=1 name=\"python3.11+0x53ad40\"\n0 native ref=23 module=1 name=\"python3.11+0x4a1b4f\"\n"
		"0 stack ref=11 parent=2 frame=21 kind=1\n0 stack ref=12 parent=11 frame=22 kind=1\n0 stack ref=13 parent=12 frame=3 kind=1\n0 stack ref=14 parent=12 frame=23 kind=1\n"
		SAMPLE(250, 13, NATIVE) SAMPLE(300, 13, NATIVE) SAMPLE(350, 13, NATIVE) SAMPLE(550, 14, NATIVE) SAMPLE(600, 14, NATIVE) SAMPLE(650, 14, NATIVE)
		THREAD(3, 7) "0 enter ref=1\n0 enter ref=2\n200 c_enter ref=20\n400 c_leave ref=20\n500 c_enter ref=21\n700 c_leave ref=21\n1000 leave ref=2\n1000 leave ref=1\n");

	cr_assert_eq(node_at(t, "main;work;dot;array_dot")->self_ns, 200);
	cr_assert_eq(node_at(t, "main;work;len;python3.11+0x4a1b4f")->self_ns, 200);
	cr_assert_str_eq(function_named(t, "dot")->native, "array_dot");
}

Test(timeline_natives, of_a_library_are_not_the_c_function_that_calls_it)
{
	struct timeline *t = timeline_from_text(META NAMES ON(0) OFF(1000) SESSION STACKS "0 c_function ref=20 name=\"compress\" module=\"zlib\"\n"
		"0 module ref=4 path=\"/usr/lib/libz.so.1\"\n0 native ref=21 module=1 name=\"PyObject_Vectorcall\"\n0 native ref=22 module=1 name=\"python3.15+0x53ad40\"\n"
		"0 native ref=23 module=4 name=\"deflate\"\n0 stack ref=11 parent=2 frame=21 kind=1\n0 stack ref=12 parent=11 frame=22 kind=1\n0 stack ref=13 parent=12 frame=23 kind=1\n"
		SAMPLE(250, 13, NATIVE) SAMPLE(300, 13, NATIVE) SAMPLE(350, 13, NATIVE)
		THREAD(3, 7) "0 enter ref=1\n0 enter ref=2\n200 c_enter ref=20\n400 c_leave ref=20\n1000 leave ref=2\n1000 leave ref=1\n");

	cr_assert_eq(node_at(t, "main;work;compress;python3.15+0x53ad40;deflate")->self_ns, 200);
}

Test(timeline_natives, that_call_several_c_functions_are_none_of_them)
{
	struct timeline *t = timeline_from_text(META NAMES ON(0) OFF(1000) SESSION STACKS "0 c_function ref=20 name=\"dot\" module=\"numpy\"\n0 c_function ref=21 name=\"len\" module=\"builtins\"\n"
		"0 native ref=22 module=1 name=\"python3.9+0x53ad40\"\n0 stack ref=12 parent=2 frame=22 kind=1\n"
		SAMPLE(250, 12, NATIVE) SAMPLE(300, 12, NATIVE) SAMPLE(350, 12, NATIVE) SAMPLE(550, 12, NATIVE) SAMPLE(600, 12, NATIVE) SAMPLE(650, 12, NATIVE)
		THREAD(3, 7) "0 enter ref=1\n0 enter ref=2\n200 c_enter ref=20\n400 c_leave ref=20\n500 c_enter ref=21\n700 c_leave ref=21\n1000 leave ref=2\n1000 leave ref=1\n");

	cr_assert_str_eq(function_named(t, "dot")->native, "");
	cr_assert_str_eq(function_named(t, "len")->native, "");
}

Test(timeline_natives, follow_the_sampled_frames_where_calls_contradict_them)
{
	struct timeline *t = timeline_from_text(META NAMES ON(0) OFF(1000) SESSION STACKS SAMPLE(300, 4, NATIVE)
		THREAD(3, 7) "0 enter ref=3\n1000 leave ref=3\n");

	cr_assert_eq(function_named(t, "App.step")->self_ns, 1000);
	cr_assert_eq(t->quality.unjoined_samples, 1);
	cr_assert_eq(node_at(t, "main;work;array_dot;dgemm_kernel")->samples, 1);
}

Test(timeline_natives, take_all_of_a_thread_that_was_only_sampled)
{
	struct timeline *t = timeline_from_text(META NAMES SESSION STACKS
		"0 thread_time ref=7 cpu_ns=0 state=82\n1000000000 thread_time ref=7 cpu_ns=1000000000 state=82\n"
		SAMPLE(200000000, 4, NATIVE) SAMPLE(400000000, 4, NATIVE) SAMPLE(600000000, 2, PYTHON) SAMPLE(800000000, 5, PYTHON));

	cr_assert_eq(node_at(t, "main;work;array_dot;dgemm_kernel")->estimated_self_ns, 500000000);
	cr_assert_eq(node_at(t, "main;work")->estimated_self_ns, 500000000);
	cr_assert_eq(function_named(t, "main")->total_ns, 1000000000);
	cr_assert_eq(function_named(t, "work")->cpu_work_ns, function_named(t, "work")->cpu_self_ns + function_named(t, "dgemm_kernel")->cpu_self_ns);
	cr_assert_eq(function_named(t, "dgemm_kernel")->cpu_work_ns, 0, "it works for a Python function");
	cr_assert_gt(function_named(t, "dgemm_kernel")->cpu_self_ns, 0);
}

Test(timeline_natives, tell_threads_that_run_no_python)
{
	struct timeline *t = timeline_from_text(META NAMES SESSION STACKS
		"0 thread_time ref=7 cpu_ns=0 state=82\n1000000000 thread_time ref=7 cpu_ns=1000000000 state=82\n" SAMPLE(200000000, 9, NATIVE));

	cr_assert_not(t->threads[0].python);
	cr_assert_eq(t->threads[0].native_ns, 1000000000);
	cr_assert_eq(node_at(t, "dgemm_kernel")->estimated_self_ns, 1000000000);
	cr_assert_eq(function_named(t, "dgemm_kernel")->cpu_work_ns, function_named(t, "dgemm_kernel")->cpu_self_ns);
}

Test(timeline_natives, split_a_threads_time_by_weight)
{
	struct timeline *t = timeline_from_text(META NAMES SESSION STACKS
		"0 thread_time ref=7 cpu_ns=0 state=82\n"
		"100 sample ref=4 tid=7 state=2 weight_ns=300\n200 sample ref=2 tid=7 state=1 weight_ns=50\n300 sample ref=2 tid=7 state=1 weight_ns=50\n"
		"1000000000 thread_time ref=7 cpu_ns=1000000000 state=82\n");

	cr_assert_eq(t->threads[0].native_ns, 750000000);
	cr_assert_eq(t->threads[0].python_ns, 250000000);
}

#define TWO_THREADS(gil) \
	META NAMES SESSION STACKS \
	"0 thread_time ref=7 cpu_ns=0 state=83 wait=\"gil\"\n0 thread_time ref=8 cpu_ns=0 state=82\n0 thread_time ref=9 cpu_ns=0 state=82\n" gil \
	"1000000000 thread_time ref=7 cpu_ns=0 state=83 wait=\"gil\"\n1000000000 thread_time ref=8 cpu_ns=700000000 state=82\n1000000000 thread_time ref=9 cpu_ns=300000000 state=82\n"

Test(timeline_natives, say_who_held_the_gil)
{
	struct timeline *t = timeline_from_text(TWO_THREADS(
		"100 gil ref=7 holder=8\n100 sample ref=2 tid=7 state=3 weight_ns=30\n200 gil ref=7 holder=9\n200 sample ref=2 tid=7 state=3 weight_ns=10\n300 sample ref=2 tid=7 state=3 weight_ns=10\n"));

	cr_assert_eq(t->threads[0].gil_wait_ns, 1000000000);
	cr_assert_eq(t->gil_wait_count, 3);
	cr_assert_eq(t->threads[t->gil_waits[0].holder].tid, 8);
	cr_assert_eq(t->threads[t->gil_waits[0].waiter].tid, 7);
	cr_assert_eq(t->gil_waits[0].wait_ns, 600000000);
	cr_assert_eq(t->gil_waits[0].wait_ns + t->gil_waits[1].wait_ns + t->gil_waits[2].wait_ns, 1000000000);
	cr_assert_eq(t->gil_waits[2].holder, UINT32_MAX, "nobody said who held it");
}

Test(timeline_natives, believe_take_gil_more_than_a_guess)
{
	struct timeline *t = timeline_from_text(TWO_THREADS("100 gil ref=7 holder=8\n100 sample ref=10 tid=7 state=2 weight_ns=30\n"));

	cr_assert_eq(t->gil_wait_count, 1);
	cr_assert_eq(t->threads[t->gil_waits[0].holder].tid, 8);
}
