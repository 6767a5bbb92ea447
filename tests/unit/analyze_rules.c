/* Each rule fires on one golden trace and keeps quiet on another that is just below. */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze_help.h"
#include "timeline_help.h"

struct row { char id[48]; };

static struct criterion_test_params every_rule(void)
{
	static struct row rows[64];
	struct rule_info infos[64];
	size_t count = rule_infos(infos, 64);

	for (size_t i = 0; i < count && i < 64; i++)
		snprintf(rows[i].id, sizeof rows[i].id, "%s", infos[i].id);
	return cr_make_param_array(struct row, rows, count);
}

ParameterizedTestParameters(analyze_rules, fires)
{
	return every_rule();
}

ParameterizedTest(struct row *row, analyze_rules, fires)
{
	const struct analysis *analysis = analysis_of_rule(row->id, "fire");
	const struct finding_report *finding = finding_of(analysis, row->id);

	cr_assert_not_null(finding, "%s does not fire", row->id);
	cr_assert_gt(finding->evidence_count, 0);
	cr_assert(strncmp(finding->id, row->id, strlen(row->id)) == 0);
	cr_assert(finding->confidence > 0 && finding->confidence <= 1);
	cr_assert_leq(finding->recoverable_pct, 100);
}

ParameterizedTestParameters(analyze_rules, keeps_quiet)
{
	return every_rule();
}

ParameterizedTest(struct row *row, analyze_rules, keeps_quiet)
{
	const struct analysis *analysis = analysis_of_rule(row->id, "quiet");

	cr_assert_null(finding_of(analysis, row->id), "%s fires", row->id);
	cr_assert_null(why_not_evaluated(analysis, row->id), "%s was not judged: %s", row->id, why_not_evaluated(analysis, row->id));
}

ParameterizedTestParameters(analyze_rules, say_what_they_lack)
{
	return every_rule();
}

ParameterizedTest(struct row *row, analyze_rules, say_what_they_lack)
{
	const struct analysis *analysis = analysis_of_text(META, NULL, 0);
	const char *why = why_not_evaluated(analysis, row->id);

	cr_assert_null(finding_of(analysis, row->id), "%s fires where there is nothing", row->id);
	/* That nothing was lost is known of every trace. */
	cr_assert((why && *why) || strcmp(row->id, "prof.drops") == 0, "%s was judged without data", row->id);
}

Test(analyze_rules, find_nothing_of_weight_in_a_healthy_program)
{
	const struct analysis *analysis = analysis_of_golden("healthy");

	for (size_t i = 0; i < analysis->finding_count; i++)
		cr_expect_lt(analysis->findings[i].severity, SEVERITY_MEDIUM, "%s", analysis->findings[i].title);
}

Test(analyze_rules, tell_pauses_of_collections_that_ran_by_themselves)
{
#define PAUSE(ns) META ON(0) OFF(10000000000) SESSION "0 capture key=\"gc\" value=\"told\"\n" THREAD(3, 7) "0 enter ref=1\n" "5000000000 gc ref=2 duration_ns=" #ns "\n"
	const struct analysis *slow = analysis_of_text(PAUSE(12000000), NULL, 0), *quick = analysis_of_text(PAUSE(8000000), NULL, 0);

	cr_assert_not_null(finding_of(slow, "py.gc_pause"));
	cr_assert_null(finding_of(quick, "py.gc_pause"));
	cr_assert_null(why_not_evaluated(quick, "py.gc_pause"));
}

/* A program that wants a hundredth of a core, and waits for it most of that time, has no trouble worth a word; one that wants a twentieth has, and not a high one. */
Test(analyze_rules, do_not_call_neighbours_what_an_idle_program_waits)
{
#define WAITING(cpu, wait) META ON(0) OFF(10000000000) SESSION "0 capture key=\"cpus\" value=\"4\"\n" "0 thread_time ref=7 cpu_ns=0 run_wait_ns=0 state=83 wait=\"epoll_wait\"\n" \
	"10000000000 thread_time ref=7 cpu_ns=" #cpu " run_wait_ns=" #wait " state=83 wait=\"epoll_wait\"\n"
	const struct analysis *idle = analysis_of_text(WAITING(10000000, 100000000), NULL, 0), *little = analysis_of_text(WAITING(50000000, 500000000), NULL, 0);

	cr_assert_null(why_not_evaluated(idle, "cpu.neighbours"), "%s", why_not_evaluated(idle, "cpu.neighbours"));
	cr_assert_null(finding_of(idle, "cpu.neighbours"));
	cr_assert_not_null(finding_of(little, "cpu.neighbours"));
	cr_assert_eq(finding_of(little, "cpu.neighbours")->severity, SEVERITY_MEDIUM);
	cr_assert_str_eq(finding_of(little, "cpu.neighbours")->title, "Other programs have the cores: 0.06 wanted, 0.01 had");
}

static void expect_place(const char *golden, const char *rule, const char *function)
{
	const struct finding_report *finding = finding_of(analysis_of_golden(golden), rule);

	cr_assert_gt(finding->location_count, 0, "%s points nowhere", rule);
	cr_expect_str_eq(finding->locations[0].function, function);
}

Test(analyze_rules, point_at_the_code_to_change)
{
	expect_place("py.hot_function.fire", "py.hot_function", "App.work");
	expect_place("py.import_in_request.fire", "py.import_in_request", "App.handle");
	expect_place("py.logging_hot.fire", "py.logging_hot", "App.handle");
	expect_place("py.exceptions_hot.fire", "py.exceptions_hot", "parse_number");
	expect_place("aio.loop_block.fire", "aio.loop_block", "App.handle");
	expect_place("cpu.lock_wait.fire", "cpu.lock_wait", "Cache.update");
	expect_place("gil.contention.fire", "gil.contention", "App.work");
}

Test(analyze_rules, say_why_they_cannot_be_judged)
{
	const struct analysis *analysis = analysis_of_golden("healthy");

	cr_expect_str_eq(why_not_evaluated(analysis, "gpu.starved"), "no GPU data");
	cr_expect_not_null(why_not_evaluated(analysis, "py.gc_pause"));
	cr_expect_not_null(why_not_evaluated(analysis, "aio.loop_block"), "no event loop");
}

/* 64 blocks do not fill a device of 132 multiprocessors, and do fill one of 16. What is told without a device is of those that nothing else is told of. */
Test(analyze_rules, fill_each_device_by_its_own_multiprocessors)
{
#define DEVICE(ref, count) "0 gpu_device ref=" #ref " multiprocessors=" #count " name=\"a\" uuid=\"" #ref "\" instance=\"\"\n"
#define KERNELS "chunk process=0 lane=9 tid=0 kind=gpu sequence=1 lost=0 depth=0 refs=" CLOCK \
	"1 gpu_kernel duration_ns=300 device=0 stream=7 grid_x=64 grid_y=1 grid_z=1 name=\"k\"\n" "1 gpu_kernel duration_ns=100 device=1 stream=7 grid_x=64 grid_y=1 grid_z=1 name=\"k\"\n"
	static const struct { const char *text; double pct; } rows[] = {
		{ META ON(0) DEVICE(0, 132) DEVICE(1, 132) OFF(1000) KERNELS, 100 },
		{ META ON(0) DEVICE(0, 16) DEVICE(1, 132) OFF(1000) KERNELS, 25 },
		{ META ON(0) DEVICE(1, 16) OFF(1000) KERNELS, 0 },
		{ META ON(0) DEVICE(1, 16) OFF(1000) SESSION "0 capture key=\"gpu.multiprocessors\" value=\"132\"\n" KERNELS, 75 },
	};
	const struct analysis *untold = analysis_of_text(META ON(0) OFF(1000) KERNELS, NULL, 0);

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		double pct = analysis_metric(analysis_of_text(rows[i].text, NULL, 0), "gpu.underfilled_pct");

		cr_expect_float_eq(pct, rows[i].pct, 1e-9, "row %zu: %g", i, pct);
	}
	cr_expect_str_eq(why_not_evaluated(untold, "gpu.small_batch"), "the trace does not say how many multiprocessors the device has");
}

static const struct analysis *analysis_of_stream(FILE *stream, char **text)
{
	fclose(stream);
	keep_until_end(*text, free);
	return analysis_of_text(*text, NULL, 0);
}

static void expect_recoverable(const struct analysis *analysis, const char *rule, double ns)
{
	const struct finding_report *finding = finding_of(analysis, rule);

	cr_assert_not_null(finding, "%s does not fire", rule);
	cr_expect_float_eq((double)finding->recoverable_ns, ns, ns / 1000, "%s: %lu", rule, (unsigned long)finding->recoverable_ns);
	cr_expect_lt(finding->throughput_pct, 30, "%s: %g", rule, finding->throughput_pct);
}

/* 16 threads work on 16 CPUs for nine tenths of the time and are throttled, all of them, for 4 % of it: the kernel adds up what each CPU's threads waited. Of the CPU time two fifths is the kernel's. */
Test(analyze_rules, tell_wall_time_where_many_threads_have_the_trouble)
{
	char *text;
	size_t length;
	FILE *out = open_memstream(&text, &length);
	const struct analysis *analysis;

	fputs(META ON(0) OFF(10000000000) SESSION "0 capture key=\"cpus\" value=\"16\"\n0 counter name=\"cgroup_periods\" value=0\n0 counter name=\"cgroup_throttled_periods\" value=0\n"
		"0 counter name=\"cgroup_throttled_ns\" value=0\n0 process_time ref=7 user_ns=0 system_ns=0 rss_bytes=1000000 minor_faults=0 major_faults=0 threads=16\n", out);
	for (unsigned second = 0; second <= 10; second++)
		for (unsigned tid = 7; tid < 23; tid++)
			fprintf(out, "%u000000000 thread_time ref=%u cpu_ns=%u00000000 run_wait_ns=%u00000000 voluntary=%u involuntary=0 state=82\n", second, tid, 9 * second, second, second);
	fputs("10000000000 process_time ref=7 user_ns=86400000000 system_ns=57600000000 rss_bytes=1000000 minor_faults=4000000 major_faults=0 threads=16\n"
		"10000000000 counter name=\"cgroup_periods\" value=100\n10000000000 counter name=\"cgroup_throttled_periods\" value=10\n10000000000 counter name=\"cgroup_throttled_ns\" value=6400000000\n", out);
	analysis = analysis_of_stream(out, &text);
	cr_assert_float_eq(analysis_metric(analysis, "cpu.busy_cores"), 14.4, 1e-9);
	expect_recoverable(analysis, "sys.hot_syscalls", 2.0e9);
	cr_expect_str_eq(finding_of(analysis, "sys.hot_syscalls")->title, "The kernel works for the program for 40 % of the time");
	expect_recoverable(analysis, "cpu.cgroup_throttle", 0.4e9);
	expect_recoverable(analysis, "mem.minor_faults", 2e9 / 14.4);
}

/* One thread copies for 3 %, eight threads for 3 % each: either way that is what can go away. */
Test(analyze_rules, tell_wall_time_where_many_threads_copy)
{
	for (unsigned threads = 1; threads <= 8; threads += 7) {
		char *text;
		size_t length;
		FILE *out = open_memstream(&text, &length);
		const struct analysis *analysis;

		fputs(META ON(1) OFF(10000000001) THREAD(3, 7) "1 enter ref=1\nchunk process=0 lane=9 tid=0 kind=gpu sequence=1 lost=0 depth=0 refs=" CLOCK, out);
		for (unsigned i = 0; i < 100; i++) {
			fprintf(out, "%llu gpu_api duration_ns=10000 correlation=%u tid=7 name=\"cudaLaunchKernel\"\n%llu gpu_kernel duration_ns=9000000 correlation=%u device=0 stream=7 name=\"k\"\n", i * 100000000ull + 50000000, i + 1, i * 100000000ull + 50020000, i + 1);
			for (unsigned tid = 7; tid < 7 + threads; tid++)
				fprintf(out, "%llu gpu_api duration_ns=3000000 correlation=0 tid=%u name=\"cudaMemcpy\"\n", i * 100000000ull + 1000, tid);
		}
		analysis = analysis_of_stream(out, &text);
		expect_recoverable(analysis, "gpu.sync_copies", 0.3e9);
		cr_expect_str_eq(finding_of(analysis, "gpu.sync_copies")->title, "Copies that block their caller take 3 % of the capture");
	}
}

/* Each of two threads is in calls of a name of its own for 3 %: neither is in such calls for longer. */
Test(analyze_rules, tell_wall_time_where_threads_copy_in_different_ways)
{
	char *text;
	size_t length;
	FILE *out = open_memstream(&text, &length);
	const struct analysis *analysis;

	fputs(META ON(1) OFF(10000000001) THREAD(3, 7) "1 enter ref=1\nchunk process=0 lane=9 tid=0 kind=gpu sequence=1 lost=0 depth=0 refs=" CLOCK, out);
	for (unsigned i = 0; i < 100; i++)
		fprintf(out, "%llu gpu_api duration_ns=2000000 correlation=0 tid=7 name=\"cudaMemcpy\"\n%llu gpu_api duration_ns=3000000 correlation=0 tid=8 name=\"cudaMemset\"\n%llu gpu_api duration_ns=1000000 correlation=0 tid=7 name=\"cudaMemset\"\n"
			"%llu gpu_api duration_ns=10000 correlation=%u tid=7 name=\"cudaLaunchKernel\"\n%llu gpu_kernel duration_ns=9000000 correlation=%u device=0 stream=7 name=\"k\"\n", i * 100000000ull + 1000, i * 100000000ull + 1000, i * 100000000ull + 3000000,
			i * 100000000ull + 50000000, i + 1, i * 100000000ull + 50020000, i + 1);
	analysis = analysis_of_stream(out, &text);
	expect_recoverable(analysis, "gpu.sync_copies", 0.3e9);
	cr_expect_str_eq(finding_of(analysis, "gpu.sync_copies")->title, "Copies that block their caller take 3 % of the capture");
}

/* Two loops, each held up for 0.7 of 10 s: neither is for longer. */
Test(analyze_rules, tell_of_several_event_loops_the_one_that_is_held_up_most)
{
#define LOOP(lane, tid) THREAD(lane, tid) "0 enter ref=1\n1000000 enter ref=11\n1000000 enter ref=2\n900000000 leave ref=2\n900000000 leave ref=11\n"
	const struct analysis *analysis = analysis_of_text(META ON(0) NAMES "0 code ref=11 line=78 name=\"_run\" qualname=\"Handle._run\" file=\"/usr/lib/python3.11/asyncio/events.py\"\n" OFF(10000000000)
		LOOP(3, 7) LOOP(4, 8) SESSION "2000000 cpu_syscall ref=7 duration_ns=700000000 number=45 result=10 name=\"recvfrom(socket)\"\n"
		"2000000 cpu_syscall ref=8 duration_ns=700000000 number=45 result=10 name=\"recvfrom(socket)\"\n", NULL, 0);

	cr_assert_float_eq(analysis_metric(analysis, "aio.blocked_ns"), 0.7e9, 1);
	cr_expect_eq(finding_of(analysis, "aio.blocking_io")->recoverable_ns, 700000000);
}

Test(analyze_rules, take_thresholds_by_name)
{
	const struct parameter high = { "py.hot_function.pct", 90 };

	cr_assert_null(finding_of(analysis_of_text(read_text("tests/golden/analyze", "py.hot_function.fire.trace"), &high, 1), "py.hot_function"));
}

Test(analyze_rules, are_sorted_and_documented)
{
	char *docs = read_text("docs", "rules.md");
	struct rule_info infos[64];
	size_t count = rule_infos(infos, 64);

	cr_assert_leq(count, 64, "the tests above take no more than 64 of %zu rules", count);
	for (size_t i = 0; i < count; i++) {
		cr_expect_not_null(strstr(docs, infos[i].id), "docs/rules.md does not know %s", infos[i].id);
		cr_expect_not_null(strstr(docs, infos[i].threshold_name), "docs/rules.md does not know %s", infos[i].threshold_name);
		if (i)
			cr_expect_lt(strcmp(infos[i - 1].id, infos[i].id), 0, "%s is out of order", infos[i].id);
	}
}
