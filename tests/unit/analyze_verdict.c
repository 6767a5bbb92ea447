/* The class, its reason, its confidence, and a breakdown that adds up. */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyze_help.h"
#include "timeline_help.h"

struct row { char class_[16], reason[32]; };

ParameterizedTestParameters(analyze_verdict, is_as_the_trace_is_named)
{
	static struct row rows[] = {
		{ "cpu_bound", "one_core_saturated" }, { "cpu_bound", "gil_contention" }, { "cpu_bound", "gpu_starved" }, { "cpu_bound", "cpu_contention" }, { "cpu_bound", "cpu_taken_by_others" },
		{ "gpu_bound", "gpu_busy" }, { "memory_bound", "exposed_copies" },
		{ "balanced", "lock_waits" }, { "balanced", "io_waits" }, { "balanced", "mixed" },
		{ "unknown", "no_demand" }, { "unknown", "too_short" },
	};

	return cr_make_param_array(struct row, rows, sizeof rows / sizeof *rows);
}

static double sum(const struct breakdown *b)
{
	return b->python_pct + b->native_pct + b->gil_wait_pct + b->lock_wait_pct + b->io_wait_pct + b->gpu_pct + b->transfer_pct + b->runnable_pct + b->sleep_pct + b->idle_pct;
}

ParameterizedTest(struct row *row, analyze_verdict, is_as_the_trace_is_named)
{
	char name[128];
	const struct verdict *verdict;
	bool gpu;

	snprintf(name, sizeof name, "verdict.%s.%s", row->class_, row->reason);
	verdict = &analysis_of_golden(name)->verdict;
	gpu = !*verdict->gpu;
	cr_expect_str_eq(verdict_name(verdict->class_), row->class_, "%s, %s", verdict_name(verdict->class_), verdict->sentence);
	cr_expect_str_eq(verdict->reason, row->reason, "%s", verdict->sentence);
	cr_expect(verdict->confidence >= 0 && verdict->confidence <= (gpu ? 0.95 : 0.6), "%g", verdict->confidence);
	cr_expect(fabs(sum(&verdict->breakdown) - 100) < 1e-9, "%.17g", sum(&verdict->breakdown));
}

Test(analyze_verdict, has_no_data_in_an_empty_trace)
{
	const struct verdict *verdict = &analysis_of_text(META, NULL, 0)->verdict;

	cr_assert_str_eq(verdict->reason, "no_data");
	cr_assert_eq(sum(&verdict->breakdown), 0, "nobody saw an idle process");
}

/* A kernel each 10 ms for 2 s, and nobody who says what the process did. */
static const struct analysis *analysis_of_kernels(long kernel_ns)
{
	static char text[1 << 16];
	int length = snprintf(text, sizeof text, META ON(0) OFF(2000000000) "chunk process=0 lane=9 tid=0 kind=gpu sequence=1 lost=0 depth=0 refs=" CLOCK);

	for (long at = 0; at < 2000000000; at += 10000000)
		length += snprintf(text + length, sizeof text - (size_t)length, "%ld gpu_kernel duration_ns=%ld correlation=1 device=0 stream=7 name=\"a\"\n", at + 1, kernel_ns);
	cr_assert_lt(length, (int)sizeof text);
	return analysis_of_text(text, NULL, 0);
}

Test(analyze_verdict, says_nothing_of_a_process_that_nobody_saw)
{
	static const char *const of_threads[] = { "demand.pct", "cpu.python_pct", "cpu.native_pct", "gil.wait_pct", "lock.wait_pct", "io.wait_pct" };
	const struct analysis *idle = analysis_of_kernels(2000000), *half = analysis_of_kernels(4000000), *busy = analysis_of_kernels(9500000);

	cr_expect_str_eq(idle->verdict.reason, "no_host_data", "%s", idle->verdict.sentence);
	cr_expect_str_eq(half->verdict.reason, "no_host_data", "%s", half->verdict.sentence);
	cr_expect_leq(half->verdict.confidence, 0.5);
	cr_expect_not_null(strstr(half->verdict.sentence, "busy for 40 % of the capture"), "%s", half->verdict.sentence);
	cr_expect_float_eq(analysis_metric(half, "gpu.idle_pct"), 60, 0.1, "of the capture");
	cr_expect_eq(sum(&half->verdict.breakdown), 0, "not known");
	cr_expect_eq(half->finding_count, 0);
	for (size_t i = 0; i < sizeof of_threads / sizeof *of_threads; i++)
		cr_expect(isnan(analysis_metric(half, of_threads[i])), "%s is %g", of_threads[i], analysis_metric(half, of_threads[i]));
	cr_expect_str_eq(busy->verdict.reason, "gpu_busy", "whatever the process did: %s", busy->verdict.sentence);
}

Test(analyze_verdict, scopes_alone_show_nothing)
{
	const struct analysis *analysis = analysis_of_text(META ON(0) OFF(2000000000) THREAD(3, 7) "0 scope_enter scope=1 name=\"request\" metadata=\"\"\n" "1900000000 scope_exit scope=1\n", NULL, 0);

	cr_expect_str_eq(analysis->verdict.reason, "no_host_data", "%s", analysis->verdict.sentence);
	cr_expect(isnan(analysis_metric(analysis, "demand.pct")));
	cr_expect_eq(sum(&analysis->verdict.breakdown), 0);
}

Test(analyze_verdict, is_surer_of_a_long_clear_capture)
{
	const struct analysis *clear = analysis_of_golden("verdict.cpu_bound.one_core_saturated"), *lossy = analysis_of_golden("prof.drops.fire");

	cr_assert_gt(clear->verdict.confidence, 0.5);
	cr_assert_lt(lossy->verdict.confidence, clear->verdict.confidence);
}

static const struct verdict *verdict_of(const char *part)
{
	return &analysis_of_rule("verdict.device_waits", part)->verdict;
}

Test(analyze_verdict, is_about_the_host_only_where_the_device_waits_for_it)
{
	cr_expect_str_eq(verdict_name(verdict_of("itself")->class_), "balanced");
	cr_expect_str_eq(verdict_of("itself")->reason, "device_dependency");
	cr_expect_str_eq(verdict_of("host")->reason, "gpu_starved");
	cr_expect_str_eq(verdict_of("nobody")->reason, "gpu_starved", "without launches all idling counts");
}

Test(analyze_verdict, is_less_sure_where_the_clock_is_off_or_requests_are_few)
{
	double sure = verdict_of("host")->confidence;

	cr_expect_float_eq(verdict_of("clock")->confidence, sure / 2, 0.011, "%g", verdict_of("clock")->confidence);
	cr_expect_float_eq(verdict_of("early")->confidence, sure / 2, 0.06, "%g: half of the work begins before it was asked for", verdict_of("early")->confidence);
	cr_expect_float_eq(verdict_of("requests")->confidence, sure * (0.8 + 0.2 / 3), 0.011, "%g", verdict_of("requests")->confidence);
}

Test(analyze_verdict, says_why_there_are_no_gpu_data)
{
	const struct analysis *analysis = analysis_of_text(META NAMES ON(0) OFF(1000000000) SESSION "0 capture key=\"gpu\" value=\"no CUDA in this process\"\n" THREAD(3, 7) "0 enter ref=1\n", NULL, 0);

	cr_assert_str_eq(analysis->verdict.gpu, "no CUDA in this process");
}

Test(analyze_metrics, are_all_there_sorted_with_a_reason_when_unknown)
{
	const struct analysis *analysis = analysis_of_golden("healthy");

	for (size_t i = 0; i < analysis->metric_count; i++) {
		if (i)
			cr_expect_lt(strcmp(analysis->metrics[i - 1].name, analysis->metrics[i].name), 0);
		if (isnan(analysis->metrics[i].value))
			cr_expect(*analysis->metrics[i].why, "%s is unknown and does not say why", analysis->metrics[i].name);
	}
	cr_expect_float_eq(analysis_metric(analysis, "cpu.busy_cores"), 0.33, 0.001);
	cr_expect_float_eq(analysis_metric(analysis, "python.calls_per_second"), 50.1, 0.001);
	cr_expect_float_eq(analysis_metric(analysis, "cpu.utilization_pct"), 8.25, 0.01);
	cr_expect(isnan(analysis_metric(analysis, "no.such_metric")));
}

Test(analyze_metrics, are_documented)
{
	char *docs = read_text("docs", "metrics.md");
	size_t count;
	const struct metric_definition *definitions = metric_definitions(&count);

	for (size_t i = 0; i < count; i++)
		cr_expect_not_null(strstr(docs, definitions[i].name), "docs/metrics.md does not know %s", definitions[i].name);
}

/* For half of each 100 ms the host computes and its device waits; for the other half the device computes, and the host sleeps. */
Test(analyze_verdict, a_device_that_waits_while_its_host_works_is_idle_although_the_host_sleeps_later)
{
	static char text[1 << 16];
	int length = snprintf(text, sizeof text, META NAMES ON(0) OFF(2000000000) THREAD(3, 7) "0 enter ref=1\n");
	const struct analysis *analysis;

	for (long at = 0; at < 2000000000; at += 100000000)
		length += snprintf(text + length, sizeof text - (size_t)length, "%ld enter ref=2\n%ld leave ref=2\n%ld c_enter ref=4\n%ld c_leave ref=4\n", at + 1, at + 50000000, at + 50000001, at + 99999999);
	length += snprintf(text + length, sizeof text - (size_t)length, SESSION);
	for (long at = 0; at <= 2000000000; at += 50000000)
		length += snprintf(text + length, sizeof text - (size_t)length, "%ld thread_time ref=7 cpu_ns=%ld state=%d\n", at, (at + 50000000) / 100000000 * 50000000, 'S');
	length += snprintf(text + length, sizeof text - (size_t)length, "chunk process=0 lane=9 tid=0 kind=gpu sequence=1 lost=0 depth=0 refs=" CLOCK);
	for (long at = 0, i = 1; at < 2000000000; at += 100000000, i++)
		length += snprintf(text + length, sizeof text - (size_t)length, "%ld gpu_api duration_ns=10 correlation=%ld tid=7 name=\"cudaLaunchKernel\"\n%ld gpu_kernel duration_ns=50000000 correlation=%ld device=0 stream=7 name=\"a\"\n",
			at + 49999900, i, at + 50000000, i);
	cr_assert_lt(length, (int)sizeof text);
	analysis = analysis_of_text(text, NULL, 0);
	cr_expect_float_eq(analysis_metric(analysis, "gpu.idle_pct"), 50, 0.1, "%g", analysis_metric(analysis, "gpu.idle_pct"));
	cr_expect_float_eq(analysis_metric(analysis, "gpu.idle.host_late_pct"), 50, 0.1);
	cr_expect_str_eq(analysis->verdict.reason, "gpu_starved");
}

Test(analyze_verdict, a_rate_is_that_of_the_time_between_the_first_reading_and_the_last)
{
	const struct analysis *analysis = analysis_of_text(META NAMES ON(0) OFF(2000000000) SESSION
		"1000000000 counter name=\"cgroup_memory_reclaims\" value=100\n" "1000000000 counter name=\"pressure_io_some_ns\" value=5\n"
		"1500000000 counter name=\"cgroup_memory_reclaims\" value=150\n" "1500000000 counter name=\"pressure_io_some_ns\" value=250000005\n"
		"1500000000 counter name=\"pressure_cpu_some_ns\" value=7\n", NULL, 0);

	cr_expect_float_eq(analysis_metric(analysis, "memory.cgroup_reclaims_per_second"), 100, 1e-9);
	cr_expect_float_eq(analysis_metric(analysis, "pressure.io_pct"), 50, 1e-9);
	cr_expect(isnan(analysis_metric(analysis, "pressure.cpu_pct")), "one reading is no rate");
}
