/* What devices did and why they did not: causes of gaps, stacks over them, queues, who asked; scopes and their latencies. */
#include <criterion/criterion.h>
#include <string.h>

#include "timeline_help.h"

#define GPU "chunk process=0 lane=9 tid=0 kind=gpu sequence=1 lost=0 depth=0 refs=" CLOCK

/* main calls work, which asks; the library's queue.get waits for more. */
#define SERVER_NAMES \
	NAMES \
	"0 code ref=5 line=1 name=\"get\" qualname=\"Queue.get\" file=\"/usr/lib/python3.11/queue.py\"\n" \
	"0 code ref=6 line=1 name=\"_try_get_data\" qualname=\"_BaseDataLoaderIter._try_get_data\" file=\"/usr/lib/python3/torch/utils/data/dataloader.py\"\n"

static const struct gpu_idle_stack *stack_of(const struct timeline *timeline, enum gpu_idle cause)
{
	for (size_t i = 0; i < timeline->gpu.idle_stack_count; i++)
		if (timeline->gpu.idle_stacks[i].cause == cause)
			return &timeline->gpu.idle_stacks[i];
	return NULL;
}

static const char *innermost(const struct timeline *timeline, const struct gpu_idle_stack *stack)
{
	return stack && stack->node != UINT32_MAX ? timeline->functions[timeline->nodes[stack->node].function].name : "";
}

/* The gaps of device 0, one by one, say the same as its sums. */
static void expect_gaps(const struct timeline *timeline)
{
	uint64_t sums[GPU_IDLE_CAUSES] = { 0 };

	for (size_t i = 0; i < timeline->gpu.idle_gap_count; i++) {
		const struct gpu_idle_gap *gap = &timeline->gpu.idle_gaps[i];

		cr_assert_leq(gap->end_ns, timeline->duration_ns);
		cr_assert_leq(gap->time_ns, gap->end_ns - gap->start_ns);
		sums[gap->cause] += gap->device == timeline->devices[0].id ? gap->time_ns : 0;
	}
	for (int cause = 0; cause < GPU_IDLE_CAUSES; cause++)
		cr_assert_eq(sums[cause], timeline->devices[0].idle_ns[cause], "cause %d: %lu", cause, (unsigned long)sums[cause]);
}

static void expect_idle(const struct timeline *timeline, uint64_t no_demand, uint64_t host_late, uint64_t sync_caused, uint64_t dependency, uint64_t unknown)
{
	const uint64_t *idle = timeline->devices[0].idle_ns;

	cr_assert_eq(idle[GPU_NO_DEMAND], no_demand, "no demand for %lu", (unsigned long)idle[GPU_NO_DEMAND]);
	cr_assert_eq(idle[GPU_HOST_LATE], host_late, "host late for %lu", (unsigned long)idle[GPU_HOST_LATE]);
	cr_assert_eq(idle[GPU_SYNC_CAUSED], sync_caused, "caused by synchronisation: %lu", (unsigned long)idle[GPU_SYNC_CAUSED]);
	cr_assert_eq(idle[GPU_DEVICE_DEPENDENCY], dependency, "dependency: %lu", (unsigned long)idle[GPU_DEVICE_DEPENDENCY]);
	cr_assert_eq(idle[GPU_IDLE_UNKNOWN], unknown, "unknown: %lu", (unsigned long)idle[GPU_IDLE_UNKNOWN]);
	cr_assert_eq(timeline->devices[0].busy_ns + no_demand + host_late + sync_caused + dependency + unknown, timeline->duration_ns);
	expect_gaps(timeline);
}

Test(timeline_gpu, a_gap_before_work_that_was_asked_for_late_is_the_hosts)
{
	struct timeline *timeline = timeline_from_text(META ON(1) SERVER_NAMES OFF(1000000)
		THREAD(3, 7) "0 enter ref=1\n" "300000 enter ref=2\n" "590000 leave ref=2\n" "1000000 leave ref=1\n"
		GPU "0 gpu_api duration_ns=10 correlation=1 tid=7 name=\"cudaLaunchKernel\"\n" "1 gpu_kernel duration_ns=199999 correlation=1 device=0 stream=7 name=\"a\"\n"
		"590000 gpu_api duration_ns=5000 correlation=2 tid=7 name=\"cudaLaunchKernel\"\n" "600000 gpu_kernel duration_ns=400000 correlation=2 device=0 stream=7 name=\"b\"\n");
	const struct gpu_idle_stack *stack = stack_of(timeline, GPU_HOST_LATE);

	expect_idle(timeline, 0, 400000, 0, 0, 0);
	cr_assert_str_eq(innermost(timeline, stack), "work", "290 of the 390 us before the call");
	cr_assert_eq(stack->count, 1);
	cr_assert_eq(stack->longest_at_ns, 199999);
	cr_assert_eq(timeline->gpu.streams[0].idle_ns[GPU_HOST_LATE], 400000);
}

Test(timeline_gpu, a_thread_that_waits_for_work_has_no_demand)
{
	struct timeline *timeline = timeline_from_text(META ON(1) SERVER_NAMES OFF(1000000)
		THREAD(3, 7) "0 enter ref=1\n" "200000 enter ref=5\n" "500000 leave ref=5\n" "1000000 leave ref=1\n"
		GPU "0 gpu_api duration_ns=10 correlation=1 tid=7 name=\"cudaLaunchKernel\"\n" "1 gpu_kernel duration_ns=199999 correlation=1 device=0 stream=7 name=\"a\"\n"
		"590000 gpu_api duration_ns=5000 correlation=2 tid=7 name=\"cudaLaunchKernel\"\n" "600000 gpu_kernel duration_ns=400000 correlation=2 device=0 stream=7 name=\"b\"\n");

	expect_idle(timeline, 300000, 100000, 0, 0, 0);
}

Test(timeline_gpu, with_a_scope_open_somewhere_there_is_demand)
{
	struct timeline *timeline = timeline_from_text(META ON(1) SERVER_NAMES OFF(1000000)
		THREAD(3, 7) "0 enter ref=1\n" "200000 enter ref=5\n" "500000 leave ref=5\n" "1000000 leave ref=1\n"
		THREAD(4, 8) "0 enter ref=1\n" "250000 scope_enter scope=1 name=\"request\" metadata=\"\"\n" "900000 scope_exit scope=1\n"
		GPU "0 gpu_api duration_ns=10 correlation=1 tid=7 name=\"cudaLaunchKernel\"\n" "1 gpu_kernel duration_ns=199999 correlation=1 device=0 stream=7 name=\"a\"\n"
		"590000 gpu_api duration_ns=5000 correlation=2 tid=7 name=\"cudaLaunchKernel\"\n" "600000 gpu_kernel duration_ns=400000 correlation=2 device=0 stream=7 name=\"b\"\n");

	expect_idle(timeline, 50000, 350000, 0, 0, 0);
	cr_assert_eq(timeline->scopes_open_ns, 650000);
}

Test(timeline_gpu, a_data_loader_that_waits_is_late)
{
	struct timeline *timeline = timeline_from_text(META ON(1) SERVER_NAMES OFF(1000000)
		THREAD(3, 7) "0 enter ref=1\n" "200000 enter ref=6\n" "200000 enter ref=5\n" "500000 leave ref=5\n" "500000 leave ref=6\n" "1000000 leave ref=1\n"
		GPU "0 gpu_api duration_ns=10 correlation=1 tid=7 name=\"cudaLaunchKernel\"\n" "1 gpu_kernel duration_ns=199999 correlation=1 device=0 stream=7 name=\"a\"\n"
		"590000 gpu_api duration_ns=5000 correlation=2 tid=7 name=\"cudaLaunchKernel\"\n" "600000 gpu_kernel duration_ns=400000 correlation=2 device=0 stream=7 name=\"b\"\n");

	expect_idle(timeline, 0, 400000, 0, 0, 0);
}

/* The host waited for 150 us, so 150 us earlier it would have asked; it was busy for the other 250. */
Test(timeline_gpu, waiting_for_the_device_costs_what_it_lasted)
{
	struct timeline *timeline = timeline_from_text(META ON(1) SERVER_NAMES OFF(1000000)
		THREAD(3, 7) "0 enter ref=1\n" "1000000 leave ref=1\n"
		GPU "0 gpu_api duration_ns=10 correlation=1 tid=7 name=\"cudaLaunchKernel\"\n" "1 gpu_kernel duration_ns=199999 correlation=1 device=0 stream=7 name=\"a\"\n"
		"60000 gpu_api duration_ns=150000 correlation=3 tid=7 name=\"cudaStreamSynchronize\"\n"
		"590000 gpu_api duration_ns=5000 correlation=2 tid=7 name=\"cudaLaunchKernel\"\n" "600000 gpu_kernel duration_ns=400000 correlation=2 device=0 stream=7 name=\"b\"\n");

	expect_idle(timeline, 0, 250000, 150000, 0, 0);
	cr_assert_eq(timeline->gpu.blocked_most_ns, 150000);
}

Test(timeline_gpu, a_copy_whose_call_lasts_until_it_is_done_is_a_wait)
{
	struct timeline *timeline = timeline_from_text(META ON(1) SERVER_NAMES OFF(1000000)
		THREAD(3, 7) "0 enter ref=1\n" "1000000 leave ref=1\n"
		GPU "1 gpu_api duration_ns=210000 correlation=1 tid=7 name=\"cudaMemcpyAsync\"\n" "1 d2h_copy duration_ns=199999 correlation=1 device=0 stream=7 bytes=64 memory_kinds=259\n"
		"290000 gpu_api duration_ns=5000 correlation=2 tid=7 name=\"cudaLaunchKernel\"\n" "300000 gpu_kernel duration_ns=700000 correlation=2 device=0 stream=7 name=\"b\"\n");
	const struct gpu_site *site = &timeline->gpu.sites[0];

	expect_idle(timeline, 0, 0, 100000, 0, 0);
	cr_assert(site->class_ == GPU_CALL_COPY && site->blocked == 1 && site->blocked_ns == 210000 && site->bytes == 64 && site->gpu_ns == 199999);
	cr_assert_str_eq(timeline->functions[site->function].name, "main");
}

Test(timeline_gpu, a_gap_before_work_that_was_asked_for_early_is_the_devices)
{
	struct timeline *timeline = timeline_from_text(META ON(1) SERVER_NAMES OFF(1000000)
		THREAD(3, 7) "0 enter ref=1\n" "1000000 leave ref=1\n"
		GPU "0 gpu_api duration_ns=10 correlation=1 tid=7 name=\"cudaLaunchKernel\"\n" "1 gpu_kernel duration_ns=199999 correlation=1 device=0 stream=7 name=\"a\"\n"
		"100000 gpu_api duration_ns=5000 correlation=2 tid=7 name=\"cudaLaunchKernel\"\n" "600000 gpu_kernel duration_ns=400000 correlation=2 device=0 stream=8 name=\"b\"\n");

	expect_idle(timeline, 0, 0, 0, 400000, 0);
}

Test(timeline_gpu, a_gap_before_work_that_nobody_is_known_to_have_asked_for_is_unknown)
{
	struct timeline *timeline = timeline_from_text(META ON(1) SERVER_NAMES OFF(1000000)
		GPU "1 gpu_kernel duration_ns=199999 correlation=1 device=0 stream=7 name=\"a\"\n" "600000 gpu_kernel duration_ns=200000 correlation=2 device=0 stream=7 name=\"b\"\n");

	expect_idle(timeline, 0, 0, 0, 0, 600000);
	cr_assert_eq(timeline->gpu.streams[0].queue.readings, 0);
}

Test(timeline_gpu, the_queue_holds_what_was_asked_for_and_has_not_begun)
{
	struct timeline *timeline = timeline_from_text(META ON(1) SERVER_NAMES OFF(1000000)
		THREAD(3, 7) "0 enter ref=1\n" "1000000 leave ref=1\n"
		GPU "0 gpu_api duration_ns=10 correlation=1 tid=7 name=\"cudaLaunchKernel\"\n" "100 gpu_api duration_ns=10 correlation=2 tid=7 name=\"cudaLaunchKernel\"\n"
		"200 gpu_api duration_ns=10 correlation=3 tid=7 name=\"cudaLaunchKernel\"\n" "1000 gpu_kernel duration_ns=1000 correlation=1 device=0 stream=7 name=\"a\"\n"
		"2000 gpu_kernel duration_ns=1000 correlation=2 device=0 stream=7 name=\"a\"\n" "3000 gpu_kernel duration_ns=5 correlation=3 device=0 stream=7 name=\"a\"\n");
	const struct gpu_queue *queue = &timeline->gpu.streams[0].queue;

	cr_assert(queue->readings == 6 && queue->max == 3 && queue->p50 == 2, "readings 1 2 3 2 1 0: p50 %u, max %u", queue->p50, queue->max);
	cr_assert_eq(timeline->gpu.short_kernels, 1);
	cr_assert_eq(timeline->gpu.kernel_p50_ns, 1000);
}

Test(timeline_gpu, work_outside_the_measurement_is_of_no_length)
{
	struct timeline *timeline = timeline_from_text(META ON(500000) SERVER_NAMES OFF(1000000)
		GPU "1 gpu_kernel duration_ns=199999 correlation=1 device=0 stream=7 name=\"before\"\n" "600000 gpu_kernel duration_ns=100000 correlation=2 device=0 stream=7 name=\"a\"\n"
		"700000 gpu_kernel duration_ns=100000 correlation=3 device=0 stream=7 name=\"a\"\n" "2000000 gpu_kernel duration_ns=5 correlation=4 device=0 stream=7 name=\"after\"\n");

	cr_expect_eq(timeline->gpu.busy_ns[GPU_COMPUTATION], 200000, "%llu", (unsigned long long)timeline->gpu.busy_ns[GPU_COMPUTATION]);
	cr_expect_eq(timeline->gpu.any_ns, 200000);
	cr_expect_eq(timeline->devices[0].busy_ns, 200000);
	cr_expect_eq(timeline->gpu.streams[0].busy_ns, 200000);
	cr_expect_leq(timeline->gpu.span_ns, timeline->duration_ns);
	cr_expect_leq(timeline->gpu.kernel_p50_ns, 100000);
}

/* The second device waits in its collective for the first one, which computes: that hides nothing. */
Test(timeline_gpu, work_is_hidden_behind_that_of_its_own_device)
{
	struct timeline *timeline = timeline_from_text(META ON(0) SERVER_NAMES OFF(1000000)
		GPU "100000 gpu_kernel duration_ns=400000 correlation=1 device=0 stream=7 name=\"gemm\"\n" "100000 gpu_kernel duration_ns=400000 correlation=2 device=1 stream=7 name=\"ncclAllReduce\"\n"
		"600000 gpu_kernel duration_ns=100000 correlation=3 device=1 stream=8 name=\"gemm\"\n" "650000 gpu_kernel duration_ns=100000 correlation=4 device=1 stream=7 name=\"ncclAllReduce\"\n"
		"660000 gpu_kernel duration_ns=20000 correlation=5 device=0 stream=8 name=\"ncclAllReduce\"\n" "660000 gpu_kernel duration_ns=10000 correlation=6 device=0 stream=7 name=\"gemm\"\n");

	cr_expect_eq(timeline->gpu.busy_ns[GPU_COMMUNICATION], 500000);
	cr_expect_eq(timeline->gpu.busy_ns[GPU_COMPUTATION], 500000);
	cr_expect_eq(timeline->gpu.any_ns, 550000);
	cr_expect_eq(timeline->gpu.overlap_ns[GPU_MEMORY], 50000, "%llu", (unsigned long long)timeline->gpu.overlap_ns[GPU_MEMORY]);
}

Test(timeline_gpu, scopes_end_in_any_order)
{
	struct timeline *timeline = timeline_from_text(META ON(0) NAMES OFF(1000)
		THREAD(3, 7) "0 scope_enter scope=1 name=\"a\"\n" "10 scope_enter scope=2 name=\"a\"\n" "20 scope_enter scope=1 name=\"b\"\n" "30 scope_exit scope=2\n" "40 scope_enter scope=3 name=\"c\"\n"
		"50 scope_exit scope=1\n" "60 scope_exit scope=1\n" "70 scope_exit scope=1\n" "80 scope_exit scope=3\n" "90 scope_enter scope=5 name=\"d\"\n"
		THREAD(4, 8) "100 scope_exit scope=5\n");
	const struct scope_latency *scopes = timeline->scopes;

	cr_assert_eq(timeline->scope_count, 3, "d is another thread's");
	cr_expect(strcmp(scopes[0].name, "a") == 0 && scopes[0].count == 2 && scopes[0].total_ns == 60 + 20);
	cr_expect(strcmp(scopes[1].name, "c") == 0 && scopes[1].total_ns == 40);
	cr_expect(strcmp(scopes[2].name, "b") == 0 && scopes[2].total_ns == 30, "of two that are called 1 the newer one ends first");
}

Test(timeline_gpu, scopes_have_latencies_by_name)
{
	struct timeline *timeline = timeline_from_text(META ON(0) NAMES OFF(1000)
		THREAD(3, 7) "0 scope_enter scope=1 name=\"request\" metadata=\"\"\n" "100 scope_exit scope=1\n" "100 scope_enter scope=2 name=\"request\" metadata=\"\"\n"
		"150 scope_enter scope=3 name=\"part\" metadata=\"\"\n" "160 scope_exit scope=3\n" "400 scope_exit scope=2\n" "900 scope_enter scope=4 name=\"request\" metadata=\"\"\n");
	const struct scope_latency *request = &timeline->scopes[0];

	cr_assert_eq(timeline->scope_count, 2);
	cr_assert_str_eq(request->name, "request");
	cr_assert(request->count == 2 && request->total_ns == 400 && request->p50_ns == 100 && request->p99_ns == 300 && request->max_ns == 300 && request->max_at_ns == 100);
	cr_assert_eq(timeline->scopes_open_ns, 500, "the one that is still open is demand");
}

static struct timeline *scoped(const char *pattern, const char *text)
{
	const struct scope_patterns patterns = { &pattern, 1 };
	struct error err = { 0 };
	struct timeline *timeline;

	cr_assert_eq(timeline_build_scoped(trace_from_text(text), &patterns, &timeline, &err), 0, "%s", err.text);
	keep_until_end(timeline, (void (*)(void *))timeline_free);
	return timeline;
}

static const char recursive[] = META ON(0) NAMES OFF(1000)
	THREAD(3, 7) "0 enter ref=1\n" "100 enter ref=3\n" "150 enter ref=3\n" "160 leave ref=3\n" "200 leave ref=3\n" "300 enter ref=3\n" "310 yield ref=3\n" "400 resume ref=3\n" "500 leave ref=3\n" "900 enter ref=3\n";

Test(timeline_gpu, functions_by_name_are_scopes)
{
	static const char *const patterns[] = { "App.step", "app.App.step", "app.py:App.step", "*.step", "/srv/*:App.step" };

	for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
		struct timeline *timeline = scoped(patterns[i], recursive);

		cr_assert_eq(timeline->scope_count, 1, "%s", patterns[i]);
		cr_assert_str_eq(timeline->functions[timeline->scopes[0].function].name, "App.step");
		cr_assert(timeline->scopes[0].count == 1 && timeline->scopes[0].max_ns == 100, "neither the inner call, nor the one that suspends, nor the one that is open");
	}
	cr_assert_eq(scoped("step", recursive)->scope_count, 0);
	cr_assert_eq(scoped("other.App.step", recursive)->scope_count, 0);
}

Test(timeline_gpu, scopes_that_were_cut_are_counted_by_their_ends)
{
	static const char windows[] = META ON(0) NAMES "200 window_off reason=1\n" "300 window_on reason=1\n" OFF(500)
		"chunk process=0 lane=3 tid=7 kind=thread sequence=1 lost=0 depth=1 refs=3" CLOCK "50 leave ref=3\n" "100 enter ref=3\n" "400 enter ref=2\n" "410 leave ref=2\n";
	struct timeline *named = timeline_from_text(META ON(0) NAMES OFF(1000) THREAD(3, 7) "50 scope_exit scope=1\n" "100 scope_enter scope=2 name=\"a\"\n" "200 scope_enter scope=3 name=\"b\"\n");

	cr_assert_eq(named->scope_count, 0);
	cr_expect(named->scope_parts.any && named->scope_parts.begun == 2 && named->scope_parts.ended == 1);
	cr_expect_eq(scoped("App.step", windows)->scope_parts.begun, 1, "%llu", (unsigned long long)scoped("App.step", windows)->scope_parts.begun);
	cr_expect_eq(scoped("App.step", windows)->scope_parts.ended, 1);
	cr_expect_not(scoped("work", windows)->scope_parts.any);
	cr_expect_not(timeline_from_text(windows)->scope_parts.any);
}

Test(timeline_gpu, work_that_begins_before_its_launch_call_is_counted)
{
	struct timeline *timeline = timeline_from_text(META ON(1) SERVER_NAMES OFF(1000000)
		THREAD(3, 7) "0 enter ref=1\n" "1000000 leave ref=1\n"
		GPU "1000 gpu_api duration_ns=10 correlation=1 tid=7 name=\"cudaLaunchKernel\"\n" "1005 gpu_kernel duration_ns=100 correlation=1 device=0 stream=7 name=\"a\"\n"
		"590000 gpu_api duration_ns=5000 correlation=2 tid=7 name=\"cudaLaunchKernel\"\n" "589300 gpu_kernel duration_ns=400 correlation=2 device=0 stream=7 name=\"b\"\n");

	cr_assert_eq(timeline->gpu.launches, 2);
	cr_assert_eq(timeline->gpu.early, 1);
	cr_assert_eq(timeline->gpu.early_most_ns, 700);
}

/* Each kernel takes less time than the launch of all three, and more than its part of it; the later two wait for the first one. */
Test(timeline_gpu, a_graph_is_launched_once)
{
	struct timeline *timeline = timeline_from_text(META ON(1) SERVER_NAMES OFF(1000000)
		THREAD(3, 7) "0 enter ref=1\n" "1000000 leave ref=1\n"
		GPU "100 gpu_api duration_ns=300 correlation=1 tid=7 name=\"cudaGraphLaunch\"\n" "500 gpu_kernel duration_ns=200 correlation=1 device=0 stream=7 name=\"a\"\n"
		"700 gpu_kernel duration_ns=200 correlation=1 device=0 stream=7 name=\"b\"\n" "900 gpu_kernel duration_ns=90 correlation=1 device=0 stream=7 name=\"c\"\n");
	const struct gpu_facts *gpu = &timeline->gpu;

	cr_expect_eq(gpu->launches, 3);
	cr_expect_eq(gpu->launch_delays, 1);
	cr_expect(gpu->launch_delay_min_ns == 100 && gpu->launch_delay_max_ns == 100, "%ld to %ld", (long)gpu->launch_delay_min_ns, (long)gpu->launch_delay_max_ns);
	cr_expect_eq(gpu->short_kernels, 1, "%lu: one of 90 ns, of a launch that took 100 ns for each", (unsigned long)gpu->short_kernels);
	cr_expect(gpu->streams[0].queue.readings == 2 && gpu->streams[0].queue.max == 1, "%u", gpu->streams[0].queue.max);
}

#define OTHER_GPU "chunk process=1 lane=9 tid=0 kind=gpu sequence=1 lost=0 depth=0 refs=" CLOCK
#define TWO_PROCESSES \
	GPU "100 gpu_api duration_ns=10 correlation=1 tid=7 name=\"cudaLaunchKernel\"\n" "200 gpu_kernel duration_ns=100 correlation=1 device=0 stream=7 name=\"a\"\n" \
	OTHER_GPU "500 gpu_api duration_ns=10 correlation=1 tid=8 name=\"cudaLaunchKernel\"\n" "600 gpu_kernel duration_ns=100 correlation=1 device=1 stream=7 name=\"b\"\n"

Test(timeline_gpu, each_process_numbers_its_launches)
{
	struct timeline *timeline = timeline_from_text(META ON(1) SERVER_NAMES OFF(1000000) TWO_PROCESSES);
	const struct gpu_facts *gpu = &timeline->gpu;

	cr_expect_eq(gpu->launches, 2);
	cr_expect(gpu->launch_delay_min_ns == 90 && gpu->launch_delay_max_ns == 90, "%ld to %ld", (long)gpu->launch_delay_min_ns, (long)gpu->launch_delay_max_ns);
	cr_expect_eq(gpu->early, 0);
}

/* ---- what threads did meanwhile ---- */

/* Over all slots each state has the time that all threads have: what metrics take from the ones and what they take from the others is the same. */
static void expect_slots_of_threads(const struct timeline *timeline)
{
	uint64_t slots[THREAD_STATES] = { 0 }, threads[THREAD_STATES] = { 0 };

	for (size_t i = 0; i < timeline->slot_count; i++)
		for (int state = 0; state < THREAD_STATES; state++)
			slots[state] += timeline->slots[i].state_ns[state];
	for (size_t i = 0; i < timeline->thread_count; i++) {
		const struct thread *thread = &timeline->threads[i];
		const uint64_t ns[THREAD_STATES] = { [THREAD_UNKNOWN] = thread->unknown_ns, [THREAD_PYTHON] = thread->python_ns, [THREAD_NATIVE] = thread->native_ns, [THREAD_GIL_WAIT] = thread->gil_wait_ns,
			[THREAD_LOCK_WAIT] = thread->lock_wait_ns, [THREAD_IO_WAIT] = thread->io_wait_ns, [THREAD_GPU_WAIT] = thread->gpu_wait_ns, [THREAD_SLEEP] = thread->sleep_ns,
			[THREAD_RUNNABLE] = thread->runnable_ns, [THREAD_IDLE] = thread->idle_ns };

		for (int state = 0; state < THREAD_STATES; state++)
			threads[state] += ns[state];
	}
	for (int state = 0; state < THREAD_STATES; state++) /* each is rounded to whole ns */
		cr_expect_leq(slots[state] > threads[state] ? slots[state] - threads[state] : threads[state] - slots[state], timeline->slot_count + THREAD_STATES,
			"state %d: %llu ns in slots, %llu in threads", state, (unsigned long long)slots[state], (unsigned long long)threads[state]);
}

/* In the first half of the second the thread waits for the device from 50 to 450 ms: by two calls, one of which makes the other. */
#define SYNCS GPU "50000000 gpu_api duration_ns=400000000 correlation=1 tid=7 name=\"cudaStreamSynchronize\"\n50100000 gpu_api duration_ns=399000000 correlation=2 tid=7 name=\"cuStreamSynchronize\"\n"
#define CLOCKS(at, cpu, state) #at " thread_time ref=7 cpu_ns=" #cpu " run_wait_ns=0 voluntary=0 involuntary=0 state=" state "\n"
#define RUNS "82"
#define SLEEPS "83 wait=\"poll\""
#define WORKERS THREAD(3, 7) "0 enter ref=1\n500000000 enter ref=2\n1000000000 leave ref=2\n1000000000 leave ref=1\n"

Test(timeline_gpu, a_driver_that_spins_waits_for_the_device)
{
	struct timeline *timeline = timeline_from_text(META ON(0) NAMES OFF(1000000000) SESSION CLOCKS(0, 0, RUNS) CLOCKS(250000000, 250000000, RUNS) CLOCKS(500000000, 500000000, RUNS) CLOCKS(1000000000, 1000000000, RUNS)
		WORKERS SYNCS);

	cr_expect_eq(timeline->threads[0].gpu_wait_ns, 400000000, "%llu", (unsigned long long)timeline->threads[0].gpu_wait_ns);
	cr_expect_eq(timeline->threads[0].python_ns, 600000000, "%llu", (unsigned long long)timeline->threads[0].python_ns);
	cr_expect_eq(timeline->slots[0].state_ns[THREAD_GPU_WAIT], 50000000, "in the slot from 0 to 100 ms from 50 ms on: %llu", (unsigned long long)timeline->slots[0].state_ns[THREAD_GPU_WAIT]);
	cr_expect_eq(timeline->slots[1].state_ns[THREAD_GPU_WAIT], 100000000);
	cr_expect_eq(timeline->slots[7].state_ns[THREAD_GPU_WAIT], 0);
	cr_expect_eq(function_named(timeline, "main")->cpu_self_ns, 100000000, "it only waits for the rest of its time: %llu", (unsigned long long)function_named(timeline, "main")->cpu_self_ns);
	cr_expect_eq(function_named(timeline, "work")->cpu_self_ns, 500000000);
	expect_slots_of_threads(timeline);
}

Test(timeline_gpu, a_driver_that_sleeps_waits_for_the_device)
{
	struct timeline *timeline = timeline_from_text(META ON(0) NAMES OFF(1000000000) SESSION CLOCKS(0, 0, RUNS) CLOCKS(250000000, 50000000, SLEEPS) CLOCKS(500000000, 100000000, RUNS) CLOCKS(1000000000, 600000000, RUNS)
		WORKERS SYNCS);

	cr_expect_eq(timeline->threads[0].gpu_wait_ns, 400000000, "%llu", (unsigned long long)timeline->threads[0].gpu_wait_ns);
	cr_expect_eq(timeline->threads[0].python_ns, 600000000, "%llu", (unsigned long long)timeline->threads[0].python_ns);
	cr_expect_eq(timeline->threads[0].idle_ns, 0, "poll() is how it waits");
	cr_expect_eq(function_named(timeline, "main")->cpu_self_ns, 100000000, "%llu", (unsigned long long)function_named(timeline, "main")->cpu_self_ns);
	expect_slots_of_threads(timeline);
}

/* A wait that began before the capture and one that ends after it count as far as they lie within; clocks were read for its middle only. */
Test(timeline_gpu, waits_for_the_device_count_within_the_capture)
{
	struct timeline *timeline = timeline_from_text(META ON(1000000000) NAMES OFF(2000000000) SESSION CLOCKS(1300000000, 0, RUNS) CLOCKS(1800000000, 500000000, RUNS)
		THREAD(3, 7) "1000000000 enter ref=1\n2000000000 leave ref=1\n"
		GPU "500000000 gpu_api duration_ns=600000000 correlation=1 tid=7 name=\"cudaDeviceSynchronize\"\n1900000000 gpu_api duration_ns=600000000 correlation=2 tid=7 name=\"cudaDeviceSynchronize\"\n");

	cr_expect_eq(timeline->threads[0].gpu_wait_ns, 200000000, "%llu", (unsigned long long)timeline->threads[0].gpu_wait_ns);
	cr_expect_eq(timeline->threads[0].python_ns, 800000000, "%llu", (unsigned long long)timeline->threads[0].python_ns);
	cr_expect_eq(timeline->slots[0].state_ns[THREAD_GPU_WAIT], 100000000);
	cr_expect_eq(timeline->slots[9].state_ns[THREAD_GPU_WAIT], 100000000);
	cr_expect_eq(timeline->slots[5].state_ns[THREAD_GPU_WAIT], 0);
	expect_slots_of_threads(timeline);
}

Test(timeline_gpu, without_clocks_calls_tell_when_a_thread_waited_for_the_device)
{
	struct timeline *timeline = timeline_from_text(META ON(0) NAMES OFF(1000000000) WORKERS SYNCS);

	cr_expect_eq(timeline->threads[0].gpu_wait_ns, 400000000, "%llu", (unsigned long long)timeline->threads[0].gpu_wait_ns);
	cr_expect_eq(timeline->threads[0].python_ns, 600000000, "%llu", (unsigned long long)timeline->threads[0].python_ns);
	cr_expect_eq(timeline->slots[1].state_ns[THREAD_GPU_WAIT], 100000000);
	cr_expect_eq(timeline->slots[1].state_ns[THREAD_PYTHON], 0);
	expect_slots_of_threads(timeline);
}

/* The device's calls are not recorded: samples of native frames tell of 7 in 10 moments that the driver spins. */
#define SAMPLED(at, stack, state) #at " sample ref=" #stack " tid=7 state=" #state " weight_ns=100000000\n"

Test(timeline_gpu, samples_tell_that_a_driver_spins)
{
	struct timeline *timeline = timeline_from_text(META ON(0) NAMES "0 module ref=1 path=\"/usr/lib/libcudart.so\"\n0 native ref=1 module=1 name=\"cudaStreamSynchronize\"\n" OFF(1000000000)
		SESSION "0 stack ref=1 parent=0 frame=1 kind=0\n0 stack ref=2 parent=1 frame=1 kind=1\n" CLOCKS(0, 0, RUNS)
		SAMPLED(50000000, 1, 1) SAMPLED(150000000, 2, 2) SAMPLED(250000000, 2, 2) SAMPLED(350000000, 2, 2) SAMPLED(450000000, 2, 2)
		SAMPLED(550000000, 2, 2) SAMPLED(650000000, 2, 2) SAMPLED(750000000, 2, 2) SAMPLED(850000000, 1, 1) SAMPLED(950000000, 1, 1) CLOCKS(1000000000, 1000000000, RUNS)
		THREAD(3, 7) "0 enter ref=1\n");

	cr_expect_eq(timeline->threads[0].gpu_wait_ns, 700000000, "%llu", (unsigned long long)timeline->threads[0].gpu_wait_ns);
	cr_expect_eq(timeline->threads[0].python_ns, 300000000, "%llu", (unsigned long long)timeline->threads[0].python_ns);
	expect_slots_of_threads(timeline);
}

/* A sampler that knows no native frames calls a driver that spins native code; calls know better, and what it says of the rest of the time stays. */
Test(timeline_gpu, samples_of_a_wait_say_nothing_of_the_time_beside_it)
{
	struct timeline *timeline = timeline_from_text(META ON(0) NAMES OFF(1000000000) SESSION "0 stack ref=1 parent=0 frame=1 kind=0\n" CLOCKS(0, 0, RUNS)
		SAMPLED(25000000, 1, 2) SAMPLED(150000000, 1, 2) SAMPLED(250000000, 1, 2) SAMPLED(350000000, 1, 2) SAMPLED(475000000, 1, 1)
		SAMPLED(550000000, 1, 1) SAMPLED(650000000, 1, 1) SAMPLED(750000000, 1, 2) SAMPLED(850000000, 1, 1) SAMPLED(950000000, 1, 2) CLOCKS(1000000000, 1000000000, RUNS)
		WORKERS SYNCS);
	size_t waits = 0;

	for (size_t i = 0; i < timeline->moment_count; i++)
		waits += timeline->moments[i].state == THREAD_GPU_WAIT;
	cr_expect_float_eq((double)timeline->threads[0].gpu_wait_ns, 400e6, 2);
	cr_expect_float_eq((double)timeline->threads[0].python_ns, 600e6 * 4 / 7, 2, "%llu", (unsigned long long)timeline->threads[0].python_ns);
	cr_expect_eq(waits, 1, "from 150 to 450 ms: %zu", waits);
	expect_slots_of_threads(timeline);
}
