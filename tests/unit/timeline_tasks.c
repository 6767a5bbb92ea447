/* Tasks of asyncio: what ran on the loop, what was suspended, and how they are called. */
#include "timeline_help.h"

#include <criterion/criterion.h>

#include "timeline/tasks.h"

/* States: 1 runs Python, 6 sleeps. */
#define STACKS "0 stack ref=1 parent=0 frame=1 kind=0\n0 stack ref=2 parent=1 frame=2 kind=0\n0 stack ref=3 parent=2 frame=3 kind=0\n"

static const struct task_summary *task_at(const struct timeline *t, size_t index)
{
	cr_assert_lt(index, timeline_tasks(t)->count);
	return &timeline_tasks(t)->tasks[index];
}

Test(timeline_tasks, get_the_samples_that_follow_at_the_same_time)
{
	struct timeline *t = timeline_from_text(META NAMES SESSION STACKS
		"0 thread_time ref=7 cpu_ns=0 state=82\n"
		"0 task ref=1 code=2 name=\"reader\"\n"
		"100 task_run ref=7 task=1\n100 sample ref=3 tid=7 state=1 weight_ns=50\n"
		"200 task_run ref=7 task=1\n200 sample ref=3 tid=7 state=6 weight_ns=1000\n"
		"300 sample ref=3 tid=7 state=1 weight_ns=70\n"
		"2000 thread_time ref=7 cpu_ns=120 state=82\n");
	const struct task_summary *reader = task_at(t, 0);

	cr_expect_eq(timeline_tasks(t)->count, 1);
	cr_expect_str_eq(reader->name, "reader");
	cr_expect_str_eq(reader->coroutine.name, "work");
	cr_expect_eq(reader->coroutine.line, 10);
	cr_expect_eq(reader->samples, 2, "the third one was of no task");
	cr_expect_eq(reader->wall_ns, 1050);
	cr_expect_eq(reader->cpu_ns, 50, "it slept with the loop in its hands");
	cr_expect_eq(reader->waited_ns, 0);
}

Test(timeline_tasks, without_a_name_are_one_row_for_each_coroutine)
{
	struct timeline *t = timeline_from_text(META NAMES SESSION STACKS
		"0 thread_time ref=7 cpu_ns=0 state=82\n"
		"0 task ref=1 code=2 name=\"Task-8\"\n0 task ref=2 code=2 name=\"Task-12\"\n0 task ref=3 code=3 name=\"Task-13\"\n0 task ref=4 code=2 name=\"Task-x\"\n"
		"100 task_run ref=7 task=1\n100 sample ref=3 tid=7 state=1 weight_ns=10\n"
		"200 task_run ref=7 task=2\n200 sample ref=3 tid=7 state=1 weight_ns=20\n"
		"300 task_run ref=7 task=3\n300 sample ref=3 tid=7 state=1 weight_ns=5\n"
		"400 task_run ref=7 task=4\n400 sample ref=3 tid=7 state=1 weight_ns=1\n"
		"2000 thread_time ref=7 cpu_ns=120 state=82\n");

	cr_assert_eq(timeline_tasks(t)->count, 3);
	cr_expect_str_eq(task_at(t, 0)->name, "Task-*");
	cr_expect_str_eq(task_at(t, 0)->coroutine.name, "work");
	cr_expect_eq(task_at(t, 0)->count, 2);
	cr_expect_eq(task_at(t, 0)->wall_ns, 30);
	cr_expect_str_eq(task_at(t, 1)->coroutine.name, "App.step");
	cr_expect_str_eq(task_at(t, 2)->name, "Task-x", "somebody named it so");
}

Test(timeline_tasks, await_along_a_chain)
{
	struct timeline *t = timeline_from_text(META NAMES SESSION STACKS
		"0 thread_time ref=7 cpu_ns=0 state=82\n"
		"0 task ref=1 code=1 name=\"reader\"\n"
		"0 task_wait ref=1 stack=2 weight_ns=0 future=\"Future\"\n"
		"100 task_wait ref=1 stack=2 weight_ns=100 future=\"Future\"\n"
		"200 task_wait ref=1 stack=3 weight_ns=100 future=\"task \\\"Task-9\\\"\"\n"
		"300 task_wait ref=1 stack=3 weight_ns=100 future=\"task \\\"Task-10\\\"\"\n"
		"400 task_wait ref=1 stack=99 weight_ns=1 future=\"Future\"\n"
		"500 task_wait ref=9 stack=3 weight_ns=1 future=\"Future\"\n"
		"2000 thread_time ref=7 cpu_ns=120 state=82\n");
	const struct task_summary *reader = task_at(t, 0);

	cr_expect_eq(timeline_tasks(t)->count, 1, "nobody knows number 9");
	cr_expect_eq(reader->waited_ns, 301);
	cr_expect_eq(reader->samples, 0);
	cr_assert_eq(reader->wait_count, 2, "a stack that nobody told is in the sum alone");
	cr_expect_str_eq(reader->waits[0].future, "task \"Task-*\"");
	cr_expect_eq(reader->waits[0].time_ns, 200);
	cr_expect_eq(reader->waits[0].samples, 2);
	cr_assert_eq(reader->waits[0].frame_count, 3);
	cr_expect_str_eq(reader->waits[0].frames[0].name, "main", "outermost first");
	cr_expect_str_eq(reader->waits[0].frames[2].name, "App.step");
	cr_expect_eq(reader->waits[1].time_ns, 100);
}

Test(timeline_tasks, are_none_without_asyncio)
{
	cr_expect_eq(timeline_tasks(timeline_from_text(META NAMES SESSION "0 thread_time ref=7 cpu_ns=0 state=82\n2000 thread_time ref=7 cpu_ns=120 state=82\n"))->count, 0);
}
