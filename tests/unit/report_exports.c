/* Exports: rows on which slices nest, the order of the file, bytes of Protocol Buffers, what is asked for without a trace, our own marks. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report/proto.h"
#include "report/rows.h"
#include "report/durations.h"
#include "timeline_help.h"

Test(durations, of_few_values_is_exact)
{
	static const uint64_t values[] = { 7, 1, 4, 10 };
	struct durations spread = { 0 };

	cr_assert_eq(durations_median(&spread), 0);
	for (size_t i = 0; i < 4; i++)
		cr_assert(durations_add(&spread, values[i]));
	cr_assert(spread.count == 4 && spread.total == 22 && spread.min == 1 && spread.max == 10 && spread.mean == 5.5);
	cr_assert(fabs(durations_deviation(&spread) - sqrt(15)) < 1e-9, "%f", durations_deviation(&spread));
	cr_assert_eq(durations_median(&spread), 5.5);
	cr_assert(durations_median_is_exact(&spread));
	durations_done(&spread);
}

/* First the small ones, then the large ones: whoever kept only the first would say 0. */
Test(durations, of_many_values_keeps_an_even_sample)
{
	const uint64_t many = 40 * (uint64_t)DURATIONS_KEPT;
	struct durations spread = { 0 };

	for (uint64_t i = 0; i < many; i++)
		cr_assert(durations_add(&spread, i));
	cr_assert_eq(spread.kept.count, DURATIONS_KEPT);
	cr_assert_not(durations_median_is_exact(&spread));
	cr_assert(fabs(durations_median(&spread) - (double)many / 2) < 0.01 * (double)many, "%f of %llu", durations_median(&spread), (unsigned long long)many);
	durations_done(&spread);
}

static struct rows *rows;

static void begin_rows(void)
{
	rows = rows_new();
}

static void end_rows(void)
{
	rows_free(rows);
}

TestSuite(rows, .init = begin_rows, .fini = end_rows);

/* The number of the row on which a kernel of one stream lands; -1 = none. */
static int place(uint64_t start_ns, uint64_t end_ns)
{
	struct interval interval = { .kind = EVENT_GPU_KERNEL, .start_ns = start_ns, .end_ns = end_ns, .stream = 7, .name = "k", .metadata = "" };
	bool fresh;
	struct row *row = rows_place(rows, &interval, &fresh);

	return row ? (int)row->number : -1;
}

Test(rows, take_what_follows_and_what_encloses)
{
	cr_assert_eq(place(10, 20), 0);
	cr_assert_eq(place(20, 30), 0);
	cr_assert_eq(place(5, 30), 0, "it holds both");
	cr_assert_eq(place(30, 30), 0);
}

Test(rows, split_what_overlaps)
{
	cr_assert_eq(place(10, 20), 0);
	cr_assert_eq(place(15, 25), 1);
	cr_assert_eq(place(16, 26), 2);
	cr_assert_eq(place(26, 27), 0);
}

Test(rows, take_what_comes_late_only_where_the_order_of_the_file_does_no_harm)
{
	cr_assert_eq(place(100, 200), 0);
	cr_assert_eq(place(10, 20), 0);
	cr_assert_eq(place(50, 100), 1, "its end would close the one that begins there");
	cr_assert_eq(place(100, 300), 1, "it would nest in the one that it encloses");
	cr_assert_eq(place(20, 99), 0);
}

Test(rows, never_go_before_what_they_forgot)
{
	for (uint64_t i = 0; i <= ROW_SPANS; i++)
		cr_assert_eq(place(1000 + 10 * i, 1005 + 10 * i), 0);
	cr_assert_eq(place(1001, 1002), 1);
}

Test(rows, are_bounded_and_say_so)
{
	int last = 0;

	for (uint64_t i = 0; i < 5000 && last >= 0; i++)
		last = place(10 + i, 20000 + i);
	cr_assert_eq(last, -1);
	cr_assert_gt(rows_refused(rows), 0);
}

Test(rows, of_calls_belong_to_one_lane)
{
	bool fresh;
	struct row *first = rows_of_calls(rows, 3, 0, &fresh);

	cr_assert(fresh);
	cr_assert_eq(rows_of_calls(rows, 3, 0, &fresh), first);
	cr_assert_not(fresh);
	cr_assert_eq(rows_of_calls(rows, 300, 0, &fresh)->number, 1, "another lane of the same thread");
	cr_assert_eq(rows_of_calls(rows, 4, 1, &fresh)->number, 0);
}

Test(proto, numbers_and_lengths_are_varints)
{
	unsigned char bytes[64], *end = proto_number(bytes, 60, 300);

	cr_assert_eq(end - bytes, 4);
	cr_assert_arr_eq(bytes, "\xe0\x03\xac\x02", 4);
	end = proto_number(bytes, 1, UINT64_MAX);
	cr_assert_eq(end - bytes, 11);
	end = proto_fixed64(bytes, 47, 0x0102);
	cr_assert_arr_eq(bytes, "\xf9\x02\x02\x01\0\0\0\0\0\0", (size_t)(end - bytes));
}

#define TIED META NAMES ON(0) OFF(1000) THREAD(3, 7) "10 enter ref=1\n10 enter ref=2\n10 enter ref=3\n10 leave ref=3\n20 enter ref=3\n30 leave ref=3\n500 leave ref=2\n600 leave ref=1\n"

/* TEXT as FORMAT; the result is freed by the caller. With no trace when WITHOUT. */
static int written(const char *text, const char *format, bool without, struct text *out, struct error *err)
{
	struct trace *trace = trace_from_text(text);
	struct timeline *timeline;
	struct analysis *analysis;
	struct report *report;
	struct sink *sink;
	int result;

	text_init(out);
	cr_assert_eq(timeline_build(trace, &timeline, err), 0);
	cr_assert_eq(analysis_build(timeline, NULL, 0, &analysis, err), 0);
	cr_assert_eq(report_build(timeline, analysis, without ? NULL : trace, NULL, &report, err), 0);
	cr_assert_eq(sink_open_text(out, &sink, err), 0);
	result = report_format_find(format)->write(report, sink, err);
	cr_assert_eq(sink_commit(sink, err), 0);
	report_free(report);
	analysis_free(analysis);
	timeline_free(timeline);
	return result;
}

Test(exports, callers_stand_before_what_they_call_in_the_same_ns)
{
	struct error err = { 0 };
	struct text out;
	const char *main_at, *work_at, *step_at;

	cr_assert_eq(written(TIED, "chrome", false, &out, &err), 0, "%s", err.text);
	main_at = strstr(out.data, "app.py(1): main\"");
	work_at = strstr(out.data, "app.py(10): work\"");
	step_at = strstr(out.data, "App.step\",\"pid\":7,\"tid\":7,\"ts\":0.010,\"dur\":0.000");
	cr_assert(main_at && work_at && step_at);
	cr_assert(main_at < work_at && work_at < step_at);
	text_done(&out);
}

Test(exports, times_are_exact_to_the_ns)
{
	struct error err = { 0 };
	struct text out;

	cr_assert_eq(written(META NAMES ON(0) OFF(9007199254740993) THREAD(3, 7) "1 enter ref=1\n9007199254740993 leave ref=1\n", "chrome", false, &out, &err), 0, "%s", err.text);
	cr_assert(strstr(out.data, "\"ts\":0.001,\"dur\":9007199254740.992"), "%s", out.data);
	text_done(&out);
}

/* Of 1 s, the quota held threads back for 0.25 s. */
#define COUNTED META NAMES ON(0) OFF(3000000000) SESSION \
	"0 process_time ref=7 user_ns=0 system_ns=0 rss_bytes=1048576 minor_faults=0 major_faults=0 threads=1\n" \
	"1000000000 process_time ref=7 user_ns=0 system_ns=0 rss_bytes=3145728 minor_faults=0 major_faults=0 threads=1\n" \
	"1000000000 counter name=\"cgroup_throttled_ns\" value=500\n2000000000 counter name=\"cgroup_throttled_ns\" value=250000500\n" \
	"1000000000 counter name=\"pressure_cpu_some_ns\" value=7\n2000000000 counter name=\"pressure_cpu_some_ns\" value=7\n" \
	"1000000000 counter name=\"minor_faults\" value=100\n2000000000 counter name=\"minor_faults\" value=4100\n" \
	THREAD(3, 7) "1 enter ref=1\n3000000000 leave ref=1\n"

Test(exports, show_numbers_over_time)
{
	struct error err = { 0 };
	struct text out;

	cr_assert_eq(written(COUNTED, "chrome", false, &out, &err), 0, "%s", err.text);
	cr_expect_not_null(strstr(out.data, "\"resident memory, MiB\",\"pid\":7,\"ts\":1000000.000,\"args\":{\"value\":3}"), "%s", out.data);
	cr_expect_not_null(strstr(out.data, "\"held back by the CPU quota, ms per second\",\"pid\":7,\"ts\":1000000.000,\"args\":{\"value\":250}"));
	cr_expect_not_null(strstr(out.data, "\"page faults without a disk, per second\",\"pid\":7,\"ts\":1000000.000,\"args\":{\"value\":4000}"), "%s", out.data);
	cr_expect_null(strstr(out.data, "some thread wants a CPU"), "what never grew is not shown");
	text_done(&out);
	cr_assert_eq(written(COUNTED, "perfetto", false, &out, &err), 0, "%s", err.text);
	cr_expect_not_null(memmem(out.data, out.length, "held back by the CPU quota", 26));
	text_done(&out);
}

#define WINDOWED META NAMES ON(0) BRAKE(1000) RELEASE(3000) OFF(5000) THREAD(3, 7) "1 enter ref=1\n900 leave ref=1\n"

Test(exports, show_where_calls_were_not_traced)
{
	struct error err = { 0 };
	struct text out;

	cr_assert_eq(written(WINDOWED, "chrome", false, &out, &err), 0, "%s", err.text);
	cr_expect_not_null(strstr(out.data, "\"calls are traced (1) or not (0)\",\"pid\":7,\"ts\":0.000,\"args\":{\"value\":1}"), "%s", out.data);
	cr_expect_not_null(strstr(out.data, "\"calls are traced (1) or not (0)\",\"pid\":7,\"ts\":1.000,\"args\":{\"value\":0}"));
	cr_expect_not_null(strstr(out.data, "\"calls are traced (1) or not (0)\",\"pid\":7,\"ts\":3.000,\"args\":{\"value\":1}"));
	text_done(&out);
	cr_assert_eq(written(WINDOWED, "perfetto", false, &out, &err), 0, "%s", err.text);
	cr_expect_not_null(memmem(out.data, out.length, "calls are traced", 16));
	text_done(&out);
	cr_assert_eq(written(COUNTED, "chrome", false, &out, &err), 0, "%s", err.text);
	cr_expect_null(strstr(out.data, "calls are traced"), "they were all the time");
	text_done(&out);
}

/* 100 MiB in the first of 10 s, half of which are released in the third second. */
#define ALLOCATED META NAMES ON(0) OFF(10000000000) THREAD(3, 7) "1 enter ref=1\n" \
	"500000000 memory_alloc address=16 bytes=100 weight_bytes=52428800 domain=1\n600000000 memory_alloc address=32 bytes=100 weight_bytes=52428800 domain=1\n" \
	"2500000000 memory_free address=32\n10000000000 leave ref=1\n"

Test(exports, show_allocations_over_time)
{
	struct error err = { 0 };
	struct text out;

	cr_assert_eq(written(ALLOCATED, "chrome", false, &out, &err), 0, "%s", err.text);
	cr_expect_not_null(strstr(out.data, "\"allocated, MiB per second\",\"pid\":7,\"ts\":500000.000,\"args\":{\"value\":500}"), "%s", out.data);
	cr_expect_not_null(strstr(out.data, "\"allocated since the beginning and not released, MiB\",\"pid\":7,\"ts\":2500000.000,\"args\":{\"value\":100}"));
	cr_expect_not_null(strstr(out.data, "\"allocated since the beginning and not released, MiB\",\"pid\":7,\"ts\":2600000.000,\"args\":{\"value\":50}"));
	text_done(&out);
}

Test(exports, say_why_functions_of_a_library_have_no_name)
{
	struct error err = { 0 };
	struct text out;

	cr_assert_eq(written(META NAMES ON(0) OFF(1000) SESSION "5 capture key=\"names./usr/lib/libz.so.1\" value=\"dynamic symbols only: stripped\"\n", "md", true, &out, &err), 0, "%s", err.text);
	cr_assert(strstr(out.data, "Libraries with functions that have no name: 1; called after their address; libz.so.1: dynamic symbols only: stripped"), "%s", out.data);
	text_done(&out);
}

Test(exports, say_when_they_need_the_trace)
{
	static const char *const needy[] = { "perfetto", "chrome" }, *const modest[] = { "speedscope", "collapsed", "pprof", "otlp", "profile", "stacks", "csv" };

	for (size_t i = 0; i < 2; i++) {
		struct error err = { 0 };
		struct text out;

		cr_assert_eq(written(TIED, needy[i], true, &out, &err), -1);
		cr_assert(strstr(err.text, "needs the trace"), "%s", err.text);
		text_done(&out);
	}
	for (size_t i = 0; i < sizeof modest / sizeof *modest; i++) {
		struct error err = { 0 };
		struct text out;

		cr_assert_eq(written(TIED, modest[i], true, &out, &err), 0, "%s: %s", modest[i], err.text);
		cr_assert_gt(out.length, 0);
		text_done(&out);
	}
}

Test(exports, of_nothing_are_valid)
{
	struct error err = { 0 };
	struct text out;

	cr_assert_eq(written(META ON(0) OFF(1000), "speedscope", false, &out, &err), 0);
	cr_assert(strstr(out.data, "\"profiles\":[\n{\"type\":\"sampled\""));
	text_done(&out);
	cr_assert_eq(written(META ON(0) OFF(1000), "collapsed", false, &out, &err), 0);
	cr_assert_eq(out.length, 0);
	text_done(&out);
}

Test(exports, begin_with_a_mark_of_ours)
{
	size_t count;
	const struct report_format *formats = report_formats(&count);

	for (size_t i = 0; i < count; i++) {
		char path[] = "/tmp/inferscope-export-XXXXXX";
		struct error err = { 0 };
		struct text out;
		int fd = mkstemp(path);

		cr_assert_geq(fd, 0);
		cr_assert_eq(written(TIED, formats[i].name, false, &out, &err), 0, "%s", err.text);
		cr_assert_eq(write(fd, out.data, out.length), (ssize_t)out.length);
		cr_assert(sink_is_ours(path), "%s", formats[i].name);
		cr_assert_eq(pwrite(fd, "?", 1, 0), 1);
		cr_assert_not(sink_is_ours(path), "%s", formats[i].name);
		close(fd);
		unlink(path);
		text_done(&out);
	}
}

#define TWO_STACKS \
	"0 stack ref=1 parent=0 frame=1 kind=0\n0 stack ref=2 parent=1 frame=2 kind=0\n" ON(0) OFF(1000) SESSION \
	"10 sample ref=2 tid=7 state=1 weight_ns=10\n20 sample ref=2 tid=7 state=1 weight_ns=10\n30 sample ref=2 tid=8 state=1 weight_ns=10\n40 sample ref=1 tid=7 state=1 weight_ns=10\n"

/* Two threads with one stack, sampled twice and once; another stack, once. */
Test(exports, a_profile_has_each_stack_once_innermost_frame_first)
{
	static const char *const expected = "{\"schema\":\"inferscope.profile/1\",\"elapsed_ns\":1000,\"samples\":4,\"stacks_count\":2,\n\"sampler\":\"Python frames only: \\\"perf\\\"\",\n";
	static const char *const first = "\n{\"frames\":[{\"symbol\":\"work\",\"file\":\"/srv/app.py\",\"line\":10},{\"symbol\":\"main\",\"file\":\"/srv/app.py\",\"line\":1}],"
	                                 "\"cut\":false,\"count\":3,\"time_ns\":1667,\"instructions\":null,\"memory_delta\":null,\"threads\":{\"7\":2,\"8\":1}},\n{\"frames\":[{\"symbol\":\"main\"";
	struct error err = { 0 };
	struct text out;

	cr_assert_eq(written(META NAMES TWO_STACKS "50 capture key=\"sampler\" value=\"Python frames only: \\\"perf\\\"\"\n",
	                     "profile", true, &out, &err), 0, "%s", err.text);
	cr_assert(strncmp(out.data, expected, strlen(expected)) == 0, "%s", out.data);
	cr_assert(strstr(out.data, first), "%s", out.data);
	cr_assert(strstr(out.data, "\"threads\":{\"7\":1}}\n]}\n"), "%s", out.data);
	text_done(&out);
}

Test(exports, a_table_has_each_stack_once_with_what_was_counted)
{
	static const char *const expected = "Samples,Calls,Self Time (ns),CPU Time (ns),Instructions,Memory Delta (bytes),Threads,Frames,Cut,Stack\n"
	                                    "3,0,1667,1667,,,2,2,no,main (/srv/app.py:1);work (/srv/app.py:10)\n1,0,333,333,,,1,1,no,main (/srv/app.py:1)\n,,,,,,,,,# Instructions: ";
	struct error err = { 0 };
	struct text out;

	cr_assert_eq(written(META NAMES TWO_STACKS, "stacks", true, &out, &err), 0, "%s", err.text);
	cr_assert(strncmp(out.data, expected, strlen(expected)) == 0, "%s", out.data);
	text_done(&out);
}

/* Two samples gained 700 instructions; work keeps 300 of 400 bytes, and step allocates though no sample saw it. */
Test(exports, stacks_have_instructions_and_memory_where_these_were_counted)
{
	static const char *const counted =
		META NAMES TWO_STACKS "45 sample_counter ref=2 tid=7 value=600 name=\"instructions\"\n55 sample ref=2 tid=7 state=1 weight_ns=10\n56 sample_counter ref=2 tid=7 value=100 name=\"instructions\"\n"
		"57 capture key=\"memory\" value=\"sampled\"\n"
		THREAD(3, 7)
		"50 memory_frame ref=2 line=11\n50 memory_frame ref=1 line=2\n50 memory_alloc address=4096 bytes=100 weight_bytes=300 domain=2\n"
		"51 memory_frame ref=2 line=12\n51 memory_frame ref=1 line=2\n51 memory_alloc address=8192 bytes=100 weight_bytes=100 domain=2\n52 memory_free address=8192\n"
		"53 memory_frame ref=3 line=21\n53 memory_alloc address=12288 bytes=50 weight_bytes=50 domain=2\n";
	struct error err = { 0 };
	struct text out;

	cr_assert_eq(written(counted, "stacks", true, &out, &err), 0, "%s", err.text);
	cr_assert(strstr(out.data, ",100,300,2,2,no,main (/srv/app.py:1);work (/srv/app.py:10)\n"), "%s", out.data);
	cr_assert(strstr(out.data, ",600,0,1,1,no,main (/srv/app.py:1)\n"), "%s", out.data);
	cr_assert(strstr(out.data, "\n0,0,0,0,0,50,0,1,no,App.step (/srv/app.py:20)\n"), "%s", out.data);
	cr_assert_null(strstr(out.data, "# "), "%s", out.data);
	text_done(&out);
	cr_assert_eq(written(counted, "profile", true, &out, &err), 0, "%s", err.text);
	cr_assert(strstr(out.data, "\"instructions\":100,\"memory_delta\":300,\"threads\":{\"7\":3,\"8\":1}}"), "%s", out.data);
	cr_assert(strstr(out.data, "\"count\":0,\"time_ns\":0,\"instructions\":0,\"memory_delta\":50,\"threads\":{}}"), "%s", out.data);
	cr_assert(strstr(out.data, "\"instructions_why\":null,\"memory_why\":null,\"stacks\":["), "%s", out.data);
	text_done(&out);
}

/* A stack of 130 calls: in both tables it is cut, and said to be. */
Test(exports, deep_stacks_are_cut_with_a_mark)
{
	struct error err = { 0 };
	struct text trace, out;

	text_init(&trace);
	text_add_string(&trace, META NAMES);
	for (int i = 1; i <= 130; i++)
		text_printf(&trace, "0 stack ref=%d parent=%d frame=%d kind=0\n", i, i - 1, i == 1 ? 1 : 2);
	text_add_string(&trace, ON(0) OFF(1000) SESSION "10 sample ref=130 tid=7 state=1 weight_ns=10\n");
	cr_assert_eq(written(trace.data, "stacks", true, &out, &err), 0, "%s", err.text);
	cr_assert(strstr(out.data, "\n1,0,1000,1000,,,1,128,yes,(outer frames cut);work (/srv/app.py:10);"), "%s", out.data);
	text_done(&out);
	cr_assert_eq(written(trace.data, "profile", true, &out, &err), 0, "%s", err.text);
	cr_assert(strstr(out.data, "\"cut\":true,\"count\":1,"), "%s", out.data);
	text_done(&out);
	text_done(&trace);
}

Test(exports, are_found_by_name_and_extension)
{
	cr_assert_str_eq(report_format_of_path("b.stacks.csv")->name, "stacks");
	cr_assert_str_eq(report_format_of_path("b.profile.json")->name, "profile");
	cr_assert_str_eq(report_format_of_path("a/b.pftrace")->name, "perfetto");
	cr_assert_str_eq(report_format_of_path("b.chrome.json")->name, "chrome");
	cr_assert_str_eq(report_format_of_path("b.speedscope.json")->name, "speedscope");
	cr_assert_str_eq(report_format_of_path("b.pb.gz")->name, "pprof");
	cr_assert_str_eq(report_format_of_path("b.otlp.pb.gz")->name, "otlp");
	cr_assert_str_eq(report_format_of_path("b.folded")->name, "collapsed");
	cr_assert_str_eq(report_format_of_path("b.json")->name, "json");
}
