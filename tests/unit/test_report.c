/* The report layer: golden outputs of a fixed capture, hostile names, bounds, numbers. */
#include <criterion/criterion.h>
#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/html_pack.h"
#include "report/model.h"
#include "report/name.h"
#include "report/quantity.h"
#include "report_fixture.h"

/* The second pass over a trace, played: a call inside a call, a scope, an instant, a kernel, a copy, a call that never ended. */
static const struct interval INTERVALS[] = {
	{ .kind = EVENT_PY_ENTER, .start_ns = 2000123, .end_ns = 3000456, .thread = 0, .function = 0 },
	{ .kind = EVENT_PY_ENTER, .start_ns = 1000999, .end_ns = 5000000, .thread = 0, .function = 7 },
	{ .kind = EVENT_SCOPE_ENTER, .start_ns = 500, .end_ns = 6000000, .thread = 0, .function = UINT32_MAX, .name = "inference", .metadata = "{\"tokens\": 3}" },
	{ .kind = EVENT_SCOPE_EXIT, .start_ns = 6000000, .end_ns = 6000000, .thread = 0, .function = UINT32_MAX, .name = "inference", .metadata = "{\"tokens\": 3}" },
	{ .kind = EVENT_SCOPE_ENTER, .start_ns = 7000000, .end_ns = 30000000000, .thread = 1, .function = UINT32_MAX, .name = "open at the end", .open_end = true },
	{ .kind = EVENT_INSTANT, .start_ns = 4000000, .end_ns = 4000000, .thread = 1, .function = UINT32_MAX, .name = "tokenization_complete", .metadata = "" },
	{ .kind = EVENT_GPU_KERNEL, .start_ns = 2500000, .end_ns = 2600001, .thread = UINT32_MAX, .function = UINT32_MAX, .name = "gemm<float>", .device = 1, .stream = 7, .grid = { 8, 1, 1 }, .block = { 256, 1, 1 } },
	{ .kind = EVENT_H2D_COPY, .start_ns = 2400000, .end_ns = 2450000, .thread = UINT32_MAX, .function = UINT32_MAX, .name = "", .device = 0, .bytes = 4096 },
	{ .kind = EVENT_C_ENTER, .start_ns = 1000999, .end_ns = 5000000, .thread = 0, .function = 2 },
};
static size_t interval_passes = 1; /* how often INTERVALS come */

int timeline_intervals(const struct timeline *timeline, struct trace *trace, bool (*each)(void *context, const struct interval *interval), void *context, struct error *err)
{
	for (size_t pass = 0; pass < interval_passes; pass++)
		for (size_t i = 0; i < sizeof INTERVALS / sizeof *INTERVALS; i++) {
			struct interval interval = INTERVALS[i];

			if (interval_passes > 1) {
				interval.start_ns = pass * 5000;
				interval.end_ns = interval.start_ns + 100;
			}
			if (!each(context, &interval))
				return 0;
		}
	return 0;
}

int timeline_device_work(const struct timeline *timeline, struct trace *trace, bool (*each)(void *context, const struct interval *interval), void *context, struct error *err)
{
	return timeline_intervals(timeline, trace, each, context, err);
}

int timeline_walk(const struct timeline *timeline, struct trace *trace, bool (*begin)(void *context, const struct interval *interval), bool (*each)(void *context, const struct interval *interval), void *context, struct error *err)
{
	return timeline_intervals(timeline, trace, each, context, err);
}

/* Never opened: only asked whether it is there. */
#define A_TRACE ((struct trace *)(void *)&interval_passes)

static struct text written(const struct fixture *fixture, const char *format)
{
	struct error err = { 0 };
	struct report *report = NULL;
	struct sink *sink = NULL;
	struct text out;

	text_init(&out);
	cr_assert_eq(report_build(&fixture->timeline, &fixture->analysis, A_TRACE, &fixture->options, &report, &err), 0, "%s", err.text);
	cr_assert_eq(sink_open_text(&out, &sink, &err), 0);
	if (!strcmp(format, "summary"))
		cr_assert_eq(report_summary(report, sink, &err), 0, "%s", err.text);
	else
		cr_assert_eq(report_format_find(format)->write(report, sink, &err), 0, "%s", err.text);
	cr_assert_eq(sink_commit(sink, &err), 0);
	report_free(report);
	cr_assert_not(out.failed);
	return out;
}

static char *file_content(const char *path, size_t *length)
{
	FILE *file = fopen(path, "rb");
	char *content;
	long size;

	if (!file)
		return NULL;
	fseek(file, 0, SEEK_END);
	size = ftell(file);
	rewind(file);
	content = calloc(1, (size_t)size + 1);
	*length = fread(content, 1, (size_t)size, file);
	fclose(file);
	return content;
}

/* With UPDATE_GOLDEN set, writes what it would have compared. Look at the difference before committing it. */
static void expect_golden(const struct text *out, const char *name)
{
	char path[4096], *golden;
	size_t length = 0, at = 0;

	snprintf(path, sizeof path, "%s/tests/golden/report/%s", TOP_SRCDIR, name);
	if (getenv("UPDATE_GOLDEN")) {
		FILE *file = fopen(path, "wb");

		cr_assert_not_null(file);
		fwrite(out->data, 1, out->length, file);
		fclose(file);
	}
	golden = file_content(path, &length);
	cr_assert_not_null(golden, "%s is missing", path);
	while (at < length && at < out->length && golden[at] == out->data[at])
		at++;
	cr_assert(length == out->length && at == length, "%s differs at byte %zu: expected «%.60s», got «%.60s»", name, at, golden + at, out->data + at);
	free(golden);
}

/* Style, script and packed columns have tests of their own; the golden page has what the writer says. */
static void cut_between(struct text *out, const char *from, const char *to)
{
	char *at = out->data, *begin, *end;

	while ((begin = strstr(at, from)) && (end = strstr(begin, to))) {
		at = begin + strlen(from);
		memmove(at, end, out->length - (size_t)(end - out->data) + 1);
		out->length -= (size_t)(end - at);
	}
}

static void cut_page(struct text *out)
{
	cut_between(out, "<style>", "</style>");
	cut_between(out, "<script>", "</script>");
	cut_between(out, "id=\"slices\">", "</script>");
}

static void expect_format_golden(bool hostile, const char *format, const char *name)
{
	struct fixture fixture;
	struct text out;

	fixture_init(&fixture);
	if (hostile)
		fixture_make_hostile(&fixture);
	out = written(&fixture, format);
	if (!strcmp(format, "html"))
		cut_page(&out);
	expect_golden(&out, name);
	text_done(&out);
}

Test(report_golden, text) { expect_format_golden(false, "text", "plain.txt"); }
Test(report_golden, md) { expect_format_golden(false, "md", "plain.md"); }
Test(report_golden, html) { expect_format_golden(false, "html", "plain.html"); }
Test(report_golden, json) { expect_format_golden(false, "json", "plain.json"); }
Test(report_golden, events) { expect_format_golden(false, "events", "plain.events.json"); }
Test(report_golden, summary) { expect_format_golden(false, "summary", "plain.summary.txt"); }
Test(report_golden, hostile_text) { expect_format_golden(true, "text", "hostile.txt"); }
Test(report_golden, hostile_md) { expect_format_golden(true, "md", "hostile.md"); }
Test(report_golden, hostile_html) { expect_format_golden(true, "html", "hostile.html"); }
Test(report_golden, hostile_json) { expect_format_golden(true, "json", "hostile.json"); }
Test(report_golden, hostile_events) { expect_format_golden(true, "events", "hostile.events.json"); }
Test(report_golden, hostile_summary) { expect_format_golden(true, "summary", "hostile.summary.txt"); }

/* No line is wider, none holds a control byte. */
static void expect_lines(const struct text *out, size_t width, size_t lines_max)
{
	size_t lines = 0;

	for (const char *at = out->data; *at;) {
		const char *end = strchrnul(at, '\n');

		cr_assert_leq(name_columns(at, (size_t)(end - at)), width, "«%.*s»", (int)(end - at), at);
		for (const char *byte = at; byte < end; byte++)
			cr_assert((unsigned char)*byte >= 0x20 && *byte != 0x7f, "control byte %d", *byte);
		lines++;
		at = *end ? end + 1 : end;
	}
	cr_assert_leq(lines, lines_max);
}

Test(report_text, keeps_to_every_width_without_control_bytes)
{
	static const uint32_t widths[] = { 60, 80, 100, 132, 200 };

	for (size_t i = 0; i < 2 * sizeof widths / sizeof *widths; i++) {
		struct fixture fixture;
		struct text out;

		fixture_init(&fixture);
		if (i % 2)
			fixture_make_hostile(&fixture);
		fixture.options.width = widths[i / 2];
		out = written(&fixture, "text");
		expect_lines(&out, widths[i / 2], 400);
		text_done(&out);
	}
}

Test(report_text, is_ascii_when_asked)
{
	struct fixture fixture;
	struct text out;

	fixture_init(&fixture);
	fixture_make_hostile(&fixture);
	fixture.options.unicode = false;
	out = written(&fixture, "text");
	for (size_t i = 0; i < out.length; i++)
		cr_assert((unsigned char)out.data[i] < 0x80);
	text_done(&out);
}

Test(report_text, paints_only_with_colour)
{
	struct fixture fixture;
	struct text out;

	fixture_init(&fixture);
	out = written(&fixture, "text");
	cr_assert_null(strchr(out.data, 0x1b));
	text_done(&out);
	fixture.options.colour = true;
	out = written(&fixture, "text");
	cr_assert_not_null(strstr(out.data, "\x1b[31mhigh\x1b[0m"));
	text_done(&out);
}

Test(report_summary, fits_a_terminal_whatever_the_names_are)
{
	static const char *const files[] = { "/var/tmp/with/a/path/that/is/rather/long/for/a/terminal/of/eighty/columns/inferscope-4121-20261128T001900Z.iscope", "report.md", "a", "b", "c", NULL };
	struct fixture fixture;
	struct text out;

	for (int hostile = 0; hostile < 2; hostile++) {
		fixture_init(&fixture);
		if (hostile)
			fixture_make_hostile(&fixture);
		fixture.options.files = files;
		fixture.timeline.quality.truncated = true;
		fixture.timeline.quality.lost_events = 99999;
		out = written(&fixture, "summary");
		expect_lines(&out, 80, 24);
		cr_assert_not_null(strstr(out.data, "report.md"));
		text_done(&out);
	}
}

Test(report_summary, has_no_escape_byte_without_colour_and_some_with)
{
	struct fixture fixture;
	struct text out;

	fixture_init(&fixture);
	fixture_make_hostile(&fixture);
	out = written(&fixture, "summary");
	cr_assert_null(memchr(out.data, 0x1b, out.length));
	text_done(&out);
	fixture.options.colour = true;
	out = written(&fixture, "summary");
	cr_assert_not_null(memchr(out.data, 0x1b, out.length));
	text_done(&out);
}

/* 10 000 functions and as deep a recursion, with names of a megabyte: the caller's page must still open. */
static void make_huge(struct fixture *fixture, char *megabyte)
{
	enum { COUNT = 10000 };
	static struct function functions[COUNT];
	static struct tree_node nodes[COUNT];
	static struct thread threads[COUNT];

	memset(megabyte, 'L', 1 << 20);
	megabyte[1 << 20] = 0;
	for (uint32_t i = 0; i < COUNT; i++) {
		functions[i] = fixture->functions[i % FIXTURE_FUNCTIONS];
		functions[i].id = i;
		functions[i].name = i < 3 ? megabyte : HOSTILE_NAMES[i % HOSTILE_COUNT];
		nodes[i] = (struct tree_node){ .parent = i - 1, .function = i, .thread = 0, .depth = i, .calls = 1, .self_ns = 1000, .total_ns = (COUNT - i) * 1000ull };
		threads[i] = fixture->threads[i % FIXTURE_THREADS];
		threads[i].tid = i + 1;
		threads[i].name = i ? "worker" : megabyte;
	}
	nodes[0].function = UINT32_MAX;
	fixture->timeline.functions = functions;
	fixture->timeline.nodes = nodes;
	fixture->timeline.threads = threads;
	fixture->timeline.function_count = fixture->timeline.node_count = fixture->timeline.thread_count = COUNT;
	fixture->process.command = megabyte;
	fixture->analysis.verdict.sentence = megabyte;
	fixture->findings[0].title = megabyte;
}

Test(report_bounds, ten_thousand_functions_with_megabyte_names)
{
	static const struct { char format[8]; size_t bytes_max, lines_max; } limits[] = { { "text", 60000, 300 }, { "md", 65000, 140 }, { "html", 4600000, SIZE_MAX }, { "json", 24000000, SIZE_MAX } };
	static char megabyte[(1 << 20) + 1];
	struct fixture fixture;

	fixture_init(&fixture);
	make_huge(&fixture, megabyte);
	for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
		struct text out = written(&fixture, limits[i].format);
		size_t lines = 0;

		for (size_t at = 0; at < out.length; at++)
			lines += out.data[at] == '\n';
		cr_assert_leq(out.length, limits[i].bytes_max, "%s has %zu bytes", limits[i].format, out.length);
		cr_assert_leq(lines, limits[i].lines_max, "%s has %zu lines", limits[i].format, lines);
		text_done(&out);
	}
}

Test(report_bounds, markdown_of_an_ordinary_capture_is_short)
{
	struct fixture fixture;
	struct text out;
	size_t lines = 0;

	fixture_init(&fixture);
	out = written(&fixture, "md");
	for (size_t i = 0; i < out.length; i++)
		lines += out.data[i] == '\n';
	cr_assert_leq(lines, 120);
	cr_assert_eq(strncmp(out.data, "# InferScope report\n", 20), 0);
	cr_assert_str_eq(strrchr(out.data, ' '), " 30s\n"); /* ends with the command */
	text_done(&out);
}

Test(report_html, holds_no_live_markup_of_a_name_and_no_reference)
{
	static const char *const forbidden[] = { "<script src", "<img", "onerror=alert(1)>", "http://", "https://", "src=\"", "url(", "@import", "\xe2\x80\xae", "<link" };
	static const char *const once[] = { "<script>", "<script type=\"application/json\"", "<script type=\"application/octet-stream", "<!--" };
	struct fixture fixture;
	struct text out;
	size_t ends = 0;

	fixture_init(&fixture);
	fixture_make_hostile(&fixture);
	out = written(&fixture, "html");
	for (size_t i = 0; i < sizeof forbidden / sizeof *forbidden; i++)
		cr_assert_null(strstr(out.data, forbidden[i]), "%s", forbidden[i]);
	for (size_t i = 0; i < sizeof once / sizeof *once; i++)
		cr_assert(strstr(out.data, once[i]) && !strstr(strstr(out.data, once[i]) + 1, once[i]), "%s", once[i]);
	for (const char *at = out.data; (at = strstr(at, "</script")); at++)
		ends++;
	cr_assert_eq(ends, 3);
	cr_assert_eq(strncmp(out.data, "<!DOCTYPE html><!-- InferScope report -->", 41), 0);
	cr_assert_not_null(strstr(out.data, "content=\"default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:\""));
	text_done(&out);
}

/* The columns of a page, unpacked. */
static struct text columns_of(const struct text *page)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *at = strstr(page->data, "id=\"slices\">") + 12;
	struct text packed, plain;
	z_stream stream = { 0 };
	uint32_t bits = 0;

	text_init(&packed);
	text_init(&plain);
	for (unsigned count = 1; *at != '<' && *at != '='; at++, count++) {
		bits = bits << 6 | (uint32_t)(strchr(digits, *at) - digits);
		if (count % 4 != 1) {
			char byte = (char)(bits >> (count % 4 == 2 ? 4 : count % 4 == 3 ? 2 : 0));

			text_add(&packed, &byte, 1);
		}
	}
	cr_assert_eq(inflateInit2(&stream, 15 + 16), Z_OK);
	stream.next_in = (unsigned char *)packed.data;
	stream.avail_in = (unsigned)packed.length;
	for (int status = Z_OK; status == Z_OK;) {
		unsigned char part[4096];

		stream.next_out = part;
		stream.avail_out = sizeof part;
		status = inflate(&stream, Z_NO_FLUSH);
		cr_assert(status == Z_OK || status == Z_STREAM_END, "%d", status);
		text_add(&plain, part, sizeof part - stream.avail_out);
	}
	inflateEnd(&stream);
	text_done(&packed);
	return plain;
}

static uint64_t column_number(const struct text *columns, size_t *at)
{
	uint64_t number = 0;
	unsigned shift = 0;

	do {
		cr_assert_lt(*at, columns->length);
		number |= (uint64_t)(columns->data[*at] & 127) << shift;
		shift += 7;
	} while (columns->data[(*at)++] & 128);
	return number;
}

/* How many slices the records hold, and the sum of their lengths. */
static size_t count_slices(const struct text *columns, uint64_t *length_ns)
{
	size_t at = 0, slices = 0;
	uint64_t record;

	*length_ns = 0;
	while ((record = column_number(columns, &at)) != PACK_END) {
		uint64_t row = record == PACK_SLICES ? column_number(columns, &at) : 0, count = column_number(columns, &at);
		uint64_t mask = record == PACK_SLICES ? column_number(columns, &at) : 0, fields = record == PACK_TREE ? 6 : 3 + (mask & 1) + (mask >> 1);

		cr_assert_lt(row, 64);
		for (uint64_t field = 0; field < fields; field++)
			for (uint64_t i = 0; i < count; i++) {
				uint64_t number = column_number(columns, &at);

				if (record == PACK_SLICES && field == 1)
					*length_ns += number;
			}
		slices += record == PACK_SLICES ? count : 0;
	}
	cr_assert_eq(at, columns->length);
	return slices;
}

Test(report_html, has_every_slice_with_its_length)
{
	struct fixture fixture;
	struct text out, columns;
	uint64_t length_ns;

	fixture_init(&fixture);
	out = written(&fixture, "html");
	columns = columns_of(&out);
	cr_assert_eq(count_slices(&columns, &length_ns), 8); /* all of INTERVALS but the end of a scope */
	cr_assert_eq(length_ns, 1000333 + 3999001 + 5999500 + (30000000000 - 7000000) + 0 + 100001 + 50000 + 3999001);
	text_done(&columns);
	text_done(&out);
}

Test(report_html, is_no_larger_than_it_may_be_and_says_what_it_left_out)
{
	struct fixture fixture;
	struct text out, columns;
	uint64_t length_ns;
	char *said;

	fixture_init(&fixture);
	fixture.options.max_report_mb = 5;
	interval_passes = 200000;
	fixture.timeline.quality.events = interval_passes * 9;
	out = written(&fixture, "html");
	columns = columns_of(&out);
	cr_assert_leq(out.length, 5000000);
	cr_assert_lt(count_slices(&columns, &length_ns), 200000);
	said = strstr(out.data, "\"thinned\":{\"calls\":600000,\"calls_left_out\":");
	cr_assert_not_null(said);
	cr_assert_gt(atoi(strstr(said, "left_out") + 10), 400000);
	text_done(&columns);
	text_done(&out);
}

Test(report_json, is_the_same_bytes_each_time_and_says_null_for_unknown)
{
	struct fixture fixture;
	struct text one, two;
	cJSON *root, *function;

	fixture_init(&fixture);
	fixture.functions[1].precision = PRECISION_SAMPLED;
	fixture.functions[1].calls = 0;
	fixture.analysis.verdict.breakdown.python_pct = NAN;
	one = written(&fixture, "json");
	two = written(&fixture, "json");
	cr_assert_eq(one.length, two.length);
	cr_assert_eq(memcmp(one.data, two.data, one.length), 0);
	cr_assert_null(strstr(one.data, "nan"));
	root = cJSON_Parse(one.data);
	cr_assert_not_null(root);
	function = cJSON_GetArrayItem(cJSON_GetObjectItem(root, "functions"), 1);
	cr_assert(cJSON_IsNull(cJSON_GetObjectItem(function, "calls")));
	cr_assert(cJSON_IsNull(cJSON_GetObjectItem(cJSON_GetObjectItem(cJSON_GetObjectItem(root, "metrics"), "gpu.busy_pct"), "value")));
	cr_assert(cJSON_IsString(cJSON_GetObjectItem(cJSON_GetObjectItem(root, "capture"), "start_unix_ns")));
	cJSON_Delete(root);
	text_done(&one);
	text_done(&two);
}

Test(report_json, prints_the_largest_integers_exactly)
{
	struct fixture fixture;
	struct text out;

	fixture_init(&fixture);
	fixture.functions[0].self_ns = UINT64_MAX;
	fixture.functions[0].calls = 1000000000000000000;
	out = written(&fixture, "json");
	cr_assert_not_null(strstr(out.data, "18446744073709551615"));
	cr_assert_not_null(strstr(out.data, "1000000000000000000,"));
	text_done(&out);
}

Test(report_events, are_sorted_and_a_caller_comes_before_its_callee)
{
	struct fixture fixture;
	struct text out;
	cJSON *root, *event;
	double last = 0;

	fixture_init(&fixture);
	out = written(&fixture, "events");
	root = cJSON_Parse(out.data);
	cr_assert_not_null(root);
	cJSON_ArrayForEach(event, cJSON_GetObjectItem(root, "events")) {
		double start = cJSON_GetObjectItem(event, "start_us")->valuedouble;

		cr_assert_geq(start, last);
		last = start;
	}
	/* Both begin and end together; the one that came later in order of ends is the outer. */
	cr_assert_lt(strstr(out.data, "numpy.matmul"), strstr(out.data, "\"handle\""));
	cr_assert_not_null(strstr(out.data, "\"start_us\":2000.123,\"end_us\":3000.456,\"thread_id\":4121,\"cpu_id\":null"));
	cJSON_Delete(root);
	text_done(&out);
}

Test(report_events, too_many_are_cut_at_a_moment_and_say_so, .timeout = 120)
{
	struct fixture fixture;
	struct text out;

	interval_passes = 600000;
	fixture_init(&fixture);
	fixture.timeline.duration_ns = 600000 * 5000ull;
	out = written(&fixture, "events");
	cr_assert_null(strstr(out.data, "\"cut_count\":0"));
	cr_assert_not_null(strstr(out.data, "\"complete_until_us\":"));
	text_done(&out);
}

Test(report_events, need_the_trace)
{
	struct fixture fixture;
	struct report *report = NULL;
	struct sink *sink = NULL;
	struct error err = { 0 };
	struct text out;

	fixture_init(&fixture);
	text_init(&out);
	cr_assert_eq(report_build(&fixture.timeline, &fixture.analysis, NULL, &fixture.options, &report, &err), 0);
	cr_assert_eq(sink_open_text(&out, &sink, &err), 0);
	cr_assert_eq(report_format_find("events")->write(report, sink, &err), -1);
	cr_assert_eq(err.code, ERR_USAGE);
	sink_discard(sink);
	report_free(report);
	text_done(&out);
}

static struct report *built(const struct fixture *fixture)
{
	struct report *report = NULL;
	struct error err = { 0 };

	cr_assert_eq(report_build(&fixture->timeline, &fixture->analysis, NULL, &fixture->options, &report, &err), 0, "%s", err.text);
	return report;
}

Test(report_tree, puts_the_same_stacks_of_all_threads_together)
{
	struct fixture fixture;
	struct report *report;

	fixture_init(&fixture);
	fixture.nodes[10].function = 8; /* the second thread does what the first does */
	report = built(&fixture);
	cr_assert_eq(report->tree.rows[0].total_ns, 35900000000);
	cr_assert_eq(report->tree.rows[1].total_ns, 35900000000);
	cr_assert_eq(report->tree.rows[1].function->id, 8);
	cr_assert_eq(report->thread_trees.rows[0].thread->tid, 4121);
	report_free(report);
}

Test(report_tree, rows_lie_inside_their_parents_heaviest_first)
{
	struct fixture fixture;
	struct report *report;

	fixture_init(&fixture);
	report = built(&fixture);
	for (size_t i = 1; i < report->tree.count; i++) {
		const struct tree_row *row = &report->tree.rows[i];
		size_t parent = i;

		while (report->tree.rows[parent].depth >= row->depth)
			parent--;
		cr_assert_geq(row->left_pct + 1e-9, report->tree.rows[parent].left_pct);
		cr_assert_leq(row->left_pct + row->pct, report->tree.rows[parent].left_pct + report->tree.rows[parent].pct + 1e-9);
		if (i > parent + 1 && report->tree.rows[i - 1].depth == row->depth)
			cr_assert_leq(row->total_ns, report->tree.rows[i - 1].total_ns);
	}
	report_free(report);
}

/* A fan of MANY children, each with one child: more than a page holds. */
Test(report_tree, counts_what_it_leaves_out)
{
	enum { MANY = 3000 };
	static struct tree_node nodes[2 * MANY + 2];
	struct fixture fixture;
	struct report *report;
	uint64_t shown = 0;

	fixture_init(&fixture);
	nodes[0] = (struct tree_node){ .parent = UINT32_MAX, .function = UINT32_MAX };
	nodes[1] = (struct tree_node){ .parent = 0, .function = 0, .depth = 1, .total_ns = MANY * 1000ull };
	for (uint32_t i = 0; i < MANY; i++) {
		nodes[2 + 2 * i] = (struct tree_node){ .parent = 1, .function = 100 + i, .depth = 2, .total_ns = 1000 };
		nodes[3 + 2 * i] = (struct tree_node){ .parent = 2 + 2 * i, .function = 1, .depth = 3, .total_ns = 400 };
	}
	fixture.timeline.nodes = nodes;
	fixture.timeline.node_count = 2 * MANY + 2;
	report = built(&fixture);
	cr_assert_leq(report->tree.count, 2 * TREE_ROWS_MAX + 2);
	for (size_t i = 0; i < report->tree.count; i++)
		if (report->tree.rows[i].depth == 2)
			shown += report->tree.rows[i].total_ns;
	cr_assert_eq(shown, MANY * 1000ull, "children and rest are the whole: %lu", (unsigned long)shown);
	cr_assert_eq(report->tree.rows[report->tree.count - 1].omitted, MANY - (TREE_ROWS_MAX - 1));
	report_free(report);
}

Test(report_tree, survives_a_parent_that_comes_later_or_is_nowhere)
{
	struct fixture fixture;
	struct report *report;

	fixture_init(&fixture);
	fixture.nodes[3].parent = 9;
	fixture.nodes[5].parent = UINT32_MAX;
	fixture.nodes[6].parent = 6;
	report = built(&fixture);
	report_free(report);
}

/* What the row KEY says, "" where there is none. */
static void expect_quality(const struct fixture *fixture, const char *key, const char *value)
{
	struct report *report = NULL;
	const char *found = "";
	struct error err = { 0 };

	cr_assert_eq(report_build(&fixture->timeline, &fixture->analysis, NULL, &fixture->options, &report, &err), 0, "%s", err.text);
	for (size_t i = 0; i < report->quality_count; i++)
		if (strcmp(report->quality[i].key, key) == 0)
			found = report->quality[i].value;
	cr_expect_str_eq(found, value, "%s", key);
	report_free(report);
}

Test(report_quality, tells_of_each_loss_in_the_lanes)
{
	static const char *const keys[] = { "damaged_subbufs", "lane_overflow", "code_overflow" };
	static const struct { int64_t count; const char *told; } rows[] = { { 7, "7" }, { 0, "" }, { -1, "" }, { INT64_MIN, "" } };

	for (size_t key = 0; key < sizeof keys / sizeof *keys; key++) {
		struct fixture fixture;

		fixture_init(&fixture);
		expect_quality(&fixture, keys[key], "");
		for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
			struct counter counter = { .name = keys[key], .last = rows[i].count };

			fixture.timeline.counters = &counter;
			fixture.timeline.counter_count = 1;
			expect_quality(&fixture, keys[key], rows[i].told);
		}
	}
}

Test(report_quality, tells_of_requests_that_were_all_cut)
{
	struct fixture fixture;

	fixture_init(&fixture);
	fixture.timeline.scope_parts = (struct scope_parts){ .any = true, .begun = 3, .ended = 2 };
	fixture.timeline.scope_count = 0;
	expect_quality(&fixture, "requests", "0");
	fixture.timeline.scope_parts.any = false;
	expect_quality(&fixture, "requests", "");
}

static void expect_written(const struct fixture *fixture, const char *format, const char *words, bool expected)
{
	struct text out = written(fixture, format);

	cr_expect_eq(strstr(text_string(&out), words) != NULL, expected, "%s %s \"%s\":\n%s", format, expected ? "lacks" : "has", words, text_string(&out));
	text_done(&out);
}

Test(report_quality, speaks_of_a_budget_only_where_there_is_one)
{
	struct fixture fixture;
	struct counter overhead = { .name = "overhead_ppm", .last = 300000 };
	struct metric none = { .name = "nothing" };

	fixture_init(&fixture);
	fixture.timeline.counters = &overhead;
	fixture.timeline.counter_count = 1;
	fixture.analysis.metrics = &none;
	fixture.analysis.metric_count = 1;
	expect_written(&fixture, "md", "more than the budget", true);
	fixture.timeline.capture_count = 0; /* --max-overhead none */
	expect_written(&fixture, "md", "more than the budget", false);
	expect_written(&fixture, "md", "times of small functions are too long", true);
}

Test(report_md, a_bar_is_escaped_in_tables_alone)
{
	struct location place = { .function = "operator|", .file = "a|b.py", .line = 3 };
	struct fixture fixture;

	fixture_init(&fixture);
	fixture.findings[0].locations = &place;
	fixture.findings[0].location_count = 1;
	fixture.functions[0].name = "operator|";
	expect_written(&fixture, "md", "- at `operator|` `a|b.py:3`\n", true);
	expect_written(&fixture, "md", "| `operator\\|` ", true);
}

Test(report_md, leaves_no_rule_out_silently)
{
	struct not_evaluated rows[100];
	char names[100][16];
	struct fixture fixture;

	fixture_init(&fixture);
	for (size_t i = 0; i < 100; i++) {
		snprintf(names[i], sizeof names[i], "rule.%zu", i);
		rows[i] = (struct not_evaluated){ names[i], i % 2 ? "no GPU data" : "one NUMA node" };
	}
	fixture.analysis.not_evaluated = rows;
	fixture.analysis.not_evaluated_count = 4;
	expect_written(&fixture, "md", "- rules not evaluated: one NUMA node (`rule.0`, `rule.2`); no GPU data (`rule.1`, `rule.3`)\n", true);
	fixture.analysis.not_evaluated_count = 100;
	expect_written(&fixture, "md", "; and 50 more, which the json report names\n", true);
}

/* What a table has no room for is told below it. */
Test(report_bounds, tables_say_how_many_rows_they_leave_out)
{
	static struct syscall_summary syscalls[100];
	static struct scope_latency scopes[100];
	struct fixture fixture;

	fixture_init(&fixture);
	for (size_t i = 0; i < 100; i++) {
		syscalls[i] = (struct syscall_summary){ .name = "read", .count = 1, .time_ns = 1000, .longest_ns = 1000 };
		scopes[i] = (struct scope_latency){ .name = "serve", .function = UINT32_MAX, .count = 1000 };
	}
	fixture.timeline.syscalls = syscalls;
	fixture.timeline.syscall_count = 100;
	fixture.timeline.scopes = scopes;
	fixture.timeline.scope_count = 100;
	expect_written(&fixture, "md", "\nAnd 90 more.\n", true);
	expect_written(&fixture, "html", "And 40 more: JSON has them.", true);
	expect_written(&fixture, "html", "And 50 more: JSON has them.", true);
}

Test(report_names, of_threads_are_cut_at_whole_characters)
{
	char name[202] = "a";
	struct fixture fixture;

	fixture_init(&fixture);
	for (size_t i = 1; i + 2 < sizeof name; i += 2)
		memcpy(name + i, "\xc3\xb6", 2);
	fixture.threads[1].name = name;
	expect_written(&fixture, "md", "\xc3\xb6 (4130)", true);
	expect_written(&fixture, "md", "\\xc3", false);
}

/* A row whose self time is shared out by samples. */
Test(report_summary, calls_an_estimate_one_as_the_report_does)
{
	struct fixture fixture;

	fixture_init(&fixture);
	expect_written(&fixture, "text", "~5.80 s", true);
	expect_written(&fixture, "summary", "~5.80 s", true);
}

Test(report_rank, is_by_cpu_time_only_when_the_verdict_is_about_the_cpu)
{
	struct fixture fixture;
	struct report *report;

	fixture_init(&fixture);
	report = built(&fixture);
	cr_assert(report->ranked_by_cpu);
	cr_assert_str_eq(report->ranked[1]->function->name, "numpy.matmul");
	report_free(report);
	fixture.analysis.verdict.class_ = VERDICT_BALANCED;
	report = built(&fixture);
	cr_assert_not(report->ranked_by_cpu);
	cr_assert_str_eq(report->ranked[1]->function->name, "EventLoop.select");
	report_free(report);
}

Test(report_formats, are_found_by_name_alias_and_path)
{
	cr_assert_str_eq(report_format_find("Markdown")->name, "md");
	cr_assert_str_eq(report_format_find("txt")->name, "text");
	cr_assert_null(report_format_find("docx"));
	cr_assert_str_eq(report_format_of_path("out/report.htm")->name, "html");
	cr_assert_str_eq(report_format_of_path("a.events.json")->name, "events");
	cr_assert_str_eq(report_format_of_path("a.json")->name, "json");
	cr_assert_null(report_format_of_path("folder.md/report"));
	cr_assert_null(report_format_of_path("report"));
}

Test(report_empty, every_format_of_a_capture_that_saw_nothing)
{
	static const char formats[][8] = { "text", "md", "html", "json", "events", "summary" };
	struct fixture fixture;

	memset(&fixture, 0, sizeof fixture);
	fixture.analysis.verdict.reason = "no_data";
	fixture.analysis.verdict.sentence = "Nothing was seen.";
	fixture.analysis.verdict.gpu = "";
	for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
		struct text out = written(&fixture, formats[i]);

		cr_assert_gt(out.length, 0, "%s", formats[i]);
		text_done(&out);
	}
}

Test(report_quantity, an_error_beyond_all_of_it_is_no_number)
{
	cr_assert_str_eq(quantity_error(12.34).text, "12.3 %");
	cr_assert_str_eq(quantity_error(100).text, "100.0 %");
	cr_assert_str_eq(quantity_error(51954.9).text, ">100 %");
	cr_assert_str_eq(quantity_error(INFINITY).text, quantity_pct(INFINITY, 0).text);
}

Test(report_quantity, three_digits_and_a_unit)
{
	cr_assert_str_eq(quantity_ns(0, 0).text, "0 ns");
	cr_assert_str_eq(quantity_ns(789, 0).text, "789 ns");
	cr_assert_str_eq(quantity_ns(1230, 0).text, "1.23 µs");
	cr_assert_str_eq(quantity_ns(999600, 0).text, "1.00 ms");
	cr_assert_str_eq(quantity_ns(9999, QUANTITY_ASCII).text, "10.0 us");
	cr_assert_str_eq(quantity_ns(45600000, QUANTITY_ABOUT).text, "~45.6 ms");
	cr_assert_str_eq(quantity_ns(1230000000, 0).text, "1.23 s");
	cr_assert_str_eq(quantity_ns(599000000000, 0).text, "599 s");
	cr_assert_str_eq(quantity_ns(600000000000, 0).text, "10.0 min");
	cr_assert_str_eq(quantity_ns(7200000000000, 0).text, "2.00 h");
	cr_assert_str_eq(quantity_ns(UINT64_MAX, 0).text, "5124096 h");
	cr_assert_str_eq(quantity_count(1234567, 0).text, "1,234,567");
	cr_assert_str_eq(quantity_count(UINT64_MAX, 0).text, "18,446,744,073,709,551,615");
	cr_assert_str_eq(quantity_count(1234567, QUANTITY_ABOUT).text, "~1.23 M");
	cr_assert_str_eq(quantity_bytes(1610612736, 0).text, "1.50 GiB");
	cr_assert_str_eq(quantity_pct(0, 0).text, "0.0 %");
	cr_assert_str_eq(quantity_pct(0.01, 0).text, "<0.1 %");
	cr_assert_str_eq(quantity_pct(99.96, 0).text, "100.0 %");
	cr_assert_str_eq(quantity_pct(NAN, QUANTITY_ASCII).text, "-");
	cr_assert_str_eq(quantity_plain(0.1, 3).text, "0.1");
	cr_assert_str_eq(quantity_plain(-0.0001, 3).text, "0");
	cr_assert_str_eq(quantity_plain(-12.345, 2).text, "-12.35");
	cr_assert_str_eq(quantity_plain(1.05, 2).text, "1.05");
	cr_assert_str_eq(quantity_plain(1e18, 6).text, "1000000000000000000");
	cr_assert_str_eq(quantity_plain(1e300, 6).text, "9223372036854775807");
	cr_assert_str_eq(quantity_of(33366.7, "per_second", 0).text, "33.4 k /s");
	cr_assert_str_eq(quantity_of(2, "count", 0).text, "2");
}

static struct text named(const char *bytes, size_t columns, unsigned flags)
{
	struct text out;

	text_init(&out);
	name_add(&out, bytes, columns, flags);
	return out;
}

Test(report_name, keeps_the_end_that_tells_names_apart)
{
	static const struct { char bytes[64]; size_t columns; unsigned flags; char expected[64]; } cases[] = {
		{ "short", 10, 0, "short" }, { "package.module.Class.method", 13, 0, "…Class.method" }, { "a sentence of words", 10, NAME_HEAD, "a sentenc…" },
		{ "/usr/lib/python3/site/pkg/a.py:12", 18, NAME_PATH, "…/site/pkg/a.py:12" }, { "\xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2\xe5\xad\x97", 5, 0, "…\xe6\xbc\xa2\xe5\xad\x97" },
		{ "caf\xc3\xa9", 20, NAME_ASCII, "caf\\u{e9}" }, { "abcdefgh", 5, NAME_ASCII, "...gh" }, { "abcdef", 1, 0, "." },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct text out = named(cases[i].bytes, cases[i].columns, cases[i].flags);

		cr_assert_str_eq(out.data, cases[i].expected);
		text_done(&out);
	}
}

Test(report_name, is_never_wider_than_asked)
{
	for (unsigned i = 0; i < HOSTILE_COUNT; i++)
		for (size_t columns = 1; columns < 60; columns++)
			for (unsigned flags = 0; flags < 8; flags++) {
				struct text out = named(HOSTILE_NAMES[i], columns, flags);

				cr_assert_leq(name_columns(text_string(&out), out.length), columns);
				for (size_t at = 0; at < out.length; at += utf8_length(out.data + at, out.length - at))
					cr_assert_gt(utf8_length(out.data + at, out.length - at), 0);
				text_done(&out);
			}
}
