/* Each rule fires on one golden trace and keeps quiet on another that is just below. */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <stdio.h>
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
