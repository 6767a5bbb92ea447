/* Intervals for exports agree with the totals. */
#include "timeline_help.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

struct seen {
	struct interval items[64];
	char names[64][32];
	size_t count, stop_after;
};

static bool keep(void *context, const struct interval *interval)
{
	struct seen *seen = context;

	snprintf(seen->names[seen->count], sizeof seen->names[0], "%s", interval->name);
	seen->items[seen->count++] = *interval;
	return seen->count != seen->stop_after;
}

static struct seen intervals_of(const char *text, size_t stop_after)
{
	struct trace *trace = trace_from_text(text);
	struct seen seen = { .stop_after = stop_after };
	struct timeline *timeline;
	struct error err;

	cr_assert_eq(timeline_build(trace, &timeline, &err), 0);
	cr_assert_eq(timeline_intervals(timeline, trace, keep, &seen, &err), 0);
	timeline_free(timeline);
	return seen;
}

#define NESTED META NAMES ON(0) OFF(1000) THREAD(3, 7) "0 enter ref=1\n100 enter ref=2\n400 leave ref=2 flags=exception\n"

Test(timeline_intervals, come_in_order_of_their_end)
{
	struct seen seen = intervals_of(NESTED, 0);

	cr_assert_eq(seen.count, 2);
	cr_assert_eq(seen.items[0].start_ns, 100);
	cr_assert_eq(seen.items[0].end_ns, 400);
	cr_assert_eq(seen.items[0].depth, 1);
	cr_assert(seen.items[0].exception);
	cr_assert_eq(seen.items[1].end_ns, 1000);
	cr_assert(seen.items[1].open_end);
}

Test(timeline_intervals, end_when_the_caller_has_enough)
{
	cr_assert_eq(intervals_of(NESTED, 1).count, 1);
}

Test(timeline_intervals, pair_scopes_by_their_number)
{
	struct seen seen = intervals_of(META ON(0) OFF(1000) THREAD(3, 7)
		"100 scope_enter scope=5 name=\"infer\" metadata=\"{}\"\n200 scope_enter scope=6 name=\"token\"\n300 scope_exit scope=5\n400 instant name=\"now\"\n", 0);

	cr_assert_eq(seen.count, 4);
	cr_assert_eq(seen.items[0].kind, EVENT_SCOPE_ENTER);
	cr_assert_eq(seen.items[0].start_ns, 100);
	cr_assert_eq(seen.items[0].end_ns, 300);
	cr_assert_str_eq(seen.names[0], "infer");
	cr_assert_eq(seen.items[1].kind, EVENT_SCOPE_EXIT);
	cr_assert_eq(seen.items[2].kind, EVENT_INSTANT);
	cr_assert_str_eq(seen.names[3], "token");
	cr_assert(seen.items[3].open_end);
}

Test(timeline_intervals, carry_the_geometry_of_kernels)
{
	struct seen seen = intervals_of(META ON(0) OFF(1000)
		"chunk process=0 lane=5 tid=0 kind=gpu sequence=1 lost=0 depth=0 refs=" CLOCK
		"100 gpu_kernel duration_ns=300 device=2 stream=7 grid_x=1 grid_y=2 grid_z=3 block_x=4 block_y=5 block_z=6 name=\"gemm\"\n", 0);

	cr_assert_eq(seen.items[0].end_ns, 400);
	cr_assert_eq(seen.items[0].device, 2);
	cr_assert_eq(seen.items[0].grid[2], 3);
	cr_assert_eq(seen.items[0].block[0], 4);
	cr_assert_str_eq(seen.names[0], "gemm");
}

struct brackets { uint32_t open[16]; size_t count, most; uint64_t now_ns; };

static bool bracket_opens(void *context, const struct interval *interval)
{
	struct brackets *brackets = context;

	cr_assert_eq(interval->depth, brackets->count);
	cr_assert_geq(interval->start_ns, brackets->now_ns);
	brackets->now_ns = interval->start_ns;
	brackets->open[brackets->count++] = interval->function;
	brackets->most = brackets->count > brackets->most ? brackets->count : brackets->most;
	return true;
}

static bool bracket_closes(void *context, const struct interval *interval)
{
	struct brackets *brackets = context;

	cr_assert_eq(brackets->open[--brackets->count], interval->function);
	cr_assert_geq(interval->end_ns, brackets->now_ns);
	brackets->now_ns = interval->end_ns;
	return true;
}

Test(timeline_intervals, open_and_close_as_brackets_do)
{
	struct trace *trace = trace_from_text(NESTED);
	struct brackets brackets = { .count = 0 };
	struct timeline *timeline;
	struct error err;

	cr_assert_eq(timeline_build(trace, &timeline, &err), 0);
	cr_assert_eq(timeline_walk(timeline, trace, bracket_opens, bracket_closes, &brackets, &err), 0);
	cr_assert_eq(brackets.count, 0);
	cr_assert_eq(brackets.most, 2);
	timeline_free(timeline);
}

Test(timeline_intervals, name_the_thread_that_called_the_driver)
{
	struct seen seen = intervals_of(META ON(0) OFF(1000) THREAD(3, 7) "0 enter ref=1\n"
		"chunk process=0 lane=5 tid=0 kind=gpu sequence=1 lost=0 depth=0 refs=" CLOCK
		"100 gpu_api duration_ns=30 correlation=9 tid=7 name=\"cudaLaunchKernel\"\n150 gpu_kernel duration_ns=30 correlation=9 name=\"gemm\"\n", 0);

	cr_assert_eq(seen.items[0].thread, 0);
	cr_assert_eq(seen.items[0].correlation, 9);
	cr_assert_eq(seen.items[1].correlation, 9);
	cr_assert_eq(seen.items[1].thread, UINT32_MAX);
}

/* A kernel that lies among calls, and one in a lane of the device. */
#define MIXED META NAMES ON(0) OFF(1000) THREAD(3, 7) "0 enter ref=1\n100 enter ref=2\n150 gpu_kernel duration_ns=10 name=\"early\"\n400 leave ref=2\n" \
	"chunk process=0 lane=5 tid=0 kind=gpu sequence=1 lost=0 depth=0 refs=" CLOCK \
	"500 gpu_api duration_ns=30 correlation=9 tid=7 name=\"cudaLaunchKernel\"\n600 gpu_kernel duration_ns=30 correlation=9 name=\"gemm\"\n700 instant name=\"now\"\n"

Test(timeline_intervals, of_devices_alone_are_the_same_as_among_all)
{
	struct trace *trace = trace_from_text(MIXED);
	struct seen all = { .count = 0 }, work = { .count = 0 };
	struct timeline *timeline;
	struct error err;
	size_t found = 0;

	cr_assert_eq(timeline_build(trace, &timeline, &err), 0);
	cr_assert_eq(timeline_intervals(timeline, trace, keep, &all, &err), 0);
	cr_assert_eq(timeline_device_work(timeline, trace, keep, &work, &err), 0);
	cr_assert_eq(all.count, 6);
	cr_assert_eq(work.count, 3);
	for (size_t i = 0; i < all.count && found < work.count; i++) {
		if (all.items[i].kind < EVENT_GPU_KERNEL || all.items[i].kind > EVENT_GPU_API)
			continue;
		cr_expect_eq(all.items[i].start_ns, work.items[found].start_ns);
		cr_expect_eq(all.items[i].end_ns, work.items[found].end_ns);
		cr_expect_eq(all.items[i].thread, work.items[found].thread);
		cr_expect_str_eq(all.names[i], work.names[found]);
		found++;
	}
	cr_assert_eq(found, 3);
	timeline_free(timeline);
}

Test(timeline_intervals, scopes_end_in_any_order_and_those_left_open_newest_first)
{
	struct seen seen = intervals_of(META ON(0) OFF(1000) THREAD(3, 7)
		"100 scope_enter scope=1 name=\"a\"\n200 scope_enter scope=2 name=\"b\"\n300 scope_enter scope=3 name=\"c\"\n400 scope_exit scope=1\n"
		"500 scope_enter scope=4 name=\"d\"\n600 scope_exit scope=3\n", 0);

	cr_assert_eq(seen.count, 6);
	cr_assert_str_eq(seen.names[0], "a");
	cr_assert_str_eq(seen.names[2], "c");
	cr_assert_str_eq(seen.names[4], "d");
	cr_assert_str_eq(seen.names[5], "b");
	cr_assert(seen.items[4].open_end && seen.items[4].start_ns == 500 && seen.items[5].open_end && seen.items[5].start_ns == 200);
}

#define GPU_LANE(process) "chunk process=" #process " lane=9 tid=0 kind=gpu sequence=1 lost=0 depth=0 refs=" CLOCK

Test(timeline_intervals, work_flows_from_the_calls_of_its_own_process)
{
	struct seen seen = intervals_of(META ON(0) OFF(1000) GPU_LANE(0) "100 gpu_api duration_ns=10 correlation=1 tid=7 name=\"cudaLaunchKernel\"\n" "200 gpu_kernel duration_ns=10 correlation=1 stream=7 name=\"a\"\n"
		GPU_LANE(1) "100 gpu_api duration_ns=10 correlation=1 tid=8 name=\"cudaLaunchKernel\"\n" "200 gpu_kernel duration_ns=10 correlation=1 stream=7 name=\"b\"\n", 0);

	cr_assert_eq(seen.count, 4);
	cr_assert_eq(seen.items[0].flow, seen.items[1].flow);
	cr_assert_eq(seen.items[2].flow, seen.items[3].flow);
	cr_assert(seen.items[0].flow && seen.items[2].flow && seen.items[0].flow != seen.items[2].flow);
	cr_assert_eq(seen.items[3].correlation, 1);
}
