/* System calls: by name, and the stacks that made them. */
#include "timeline_help.h"

#include <criterion/criterion.h>

#define STACKS "0 stack ref=1 parent=0 frame=1 kind=0\n0 stack ref=2 parent=1 frame=2 kind=0\n"

static const struct syscall_summary *summary_of(const struct timeline *t, const char *name)
{
	for (size_t i = 0; i < t->syscall_count; i++)
		if (strcmp(t->syscalls[i].name, name) == 0)
			return &t->syscalls[i];
	cr_assert_fail("%s is not there", name);
	return NULL;
}

/* Time of NAME under FUNCTION (NULL: none). */
static uint64_t time_from(const struct timeline *t, const char *name, const char *function)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < t->syscall_site_count; i++) {
		const struct syscall_site *site = &t->syscall_sites[i];
		const char *from = site->function == UINT32_MAX ? NULL : t->functions[site->function].name;

		if (strcmp(t->syscalls[site->syscall].name, name) == 0 && (from && function ? strcmp(from, function) == 0 : from == function))
			sum += site->time_ns;
	}
	return sum;
}

Test(timeline_syscalls, add_up_by_name)
{
	struct timeline *t = timeline_from_text(META NAMES ON(0) OFF(10000) SESSION
		"100 cpu_syscall ref=7 duration_ns=50 number=0 result=4096 name=\"read(file)\"\n"
		"200 cpu_syscall ref=7 duration_ns=150 number=0 result=-11 name=\"read(file)\"\n"
		"300 cpu_syscall ref=8 duration_ns=10 number=0 result=1 name=\"read(socket)\"\n"
		"400 cpu_syscall ref=8 duration_ns=5000 number=232 result=1 name=\"epoll_wait(epoll)\"\n"
		THREAD(3, 7) "0 enter ref=1\n10000 leave ref=1\n");
	const struct syscall_summary *read = summary_of(t, "read(file)");

	cr_assert_eq(t->syscall_count, 3);
	cr_expect_eq(read->count, 2);
	cr_expect_eq(read->time_ns, 200);
	cr_expect_eq(read->bytes, 4096);
	cr_expect_eq(read->failed, 1);
	cr_expect_eq(read->longest_ns, 150);
	cr_expect_not(read->sampled);
	cr_expect_str_eq(t->syscalls[0].name, "read(file)", "most time first …");
	cr_expect_str_eq(t->syscalls[2].name, "epoll_wait(epoll)", "… those that only wait last");
	cr_expect(t->syscalls[2].waits);
	cr_expect_eq(t->syscalls[2].bytes, 0);
}

/* What percentiles are counted by is 12 % wide: the middle of that may lie beyond all that there was. */
Test(timeline_syscalls, no_percentile_is_longer_than_the_longest)
{
	struct timeline *t = timeline_from_text(META NAMES ON(0) OFF(10000) SESSION "100 cpu_syscall ref=7 duration_ns=4097 number=0 name=\"read\"\n" THREAD(3, 7) "0 enter ref=1\n10000 leave ref=1\n");

	cr_expect_eq(summary_of(t, "read")->longest_ns, 4097);
	cr_expect_eq(summary_of(t, "read")->p50_ns, 4097);
	cr_expect_eq(summary_of(t, "read")->p95_ns, 4097);
}

Test(timeline_syscalls, belong_to_the_call_that_was_open)
{
	struct timeline *t = timeline_from_text(META NAMES ON(0) OFF(1000) SESSION
		"150 cpu_syscall ref=7 duration_ns=20 number=1 result=1 name=\"write\"\n"
		"500 cpu_syscall ref=7 duration_ns=30 number=1 result=1 name=\"write\"\n"
		"600 cpu_syscall ref=9 duration_ns=40 number=1 result=1 name=\"write\"\n"
		THREAD(3, 7) "0 enter ref=1\n100 enter ref=2\n110 c_enter ref=4\n190 c_leave ref=4\n200 leave ref=2\n1000 leave ref=1\n");

	cr_expect_eq(time_from(t, "write", "work"), 20, "the C function inside is not what Python programmers look for");
	cr_expect_eq(time_from(t, "write", "main"), 30);
	cr_expect_eq(t->syscall_site_count, 2, "what thread 9 did when is not known");
}

Test(timeline_syscalls, belong_to_the_stack_that_was_sampled_meanwhile)
{
	struct timeline *t = timeline_from_text(META NAMES SESSION STACKS
		"0 thread_time ref=7 cpu_ns=0 run_wait_ns=0 voluntary=0 involuntary=0 state=83\n"
		"100 cpu_syscall ref=7 duration_ns=50 number=74 result=0 name=\"fsync\" flags=sampled\n"
		"100 sample ref=2 tid=7 state=5 weight_ns=50\n"
		"300 sample ref=1 tid=7 state=5 weight_ns=50\n"
		"400 cpu_syscall ref=7 duration_ns=50 number=74 result=0 name=\"fsync\"\n"
		"1000 thread_time ref=7 cpu_ns=0 run_wait_ns=0 voluntary=0 involuntary=0 state=83\n");

	cr_expect(summary_of(t, "fsync")->sampled);
	cr_expect_eq(time_from(t, "fsync", "work"), 50);
	cr_expect_eq(t->syscall_site_count, 1, "no sample was taken in the second one");
}

Test(timeline_syscalls, of_imported_traces_stand_in_their_threads_lane)
{
	struct timeline *t = timeline_from_text(META NAMES ON(0) OFF(1000) THREAD(3, 7) "0 enter ref=1\n100 cpu_syscall duration_ns=50 name=\"futex\"\n1000 leave ref=1\n");

	cr_expect_eq(time_from(t, "futex", "main"), 50);
}

Test(timeline_syscalls, do_not_overflow)
{
	struct timeline *t = timeline_from_text(META NAMES ON(0) OFF(1000) SESSION "100 cpu_syscall ref=7 duration_ns=18446744073709551615 number=0 name=\"read\"\n" THREAD(3, 7) "0 enter ref=1\n1000 leave ref=1\n");

	cr_expect_eq(t->syscall_site_count, 0);
}
