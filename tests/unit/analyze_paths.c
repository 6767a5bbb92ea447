/* How long functions of one kind took with all below them: a part of the time of who called them, however little of it was watched. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "analyze_help.h"
#include "timeline_help.h"

enum { SECOND = 1000000000, SEED_REF = 1 };

/* Ten seconds in main; thread 7, functions 5 App.setup, 6 the body of a module, 7 the machinery that hooks do not see. */
struct trace_text { FILE *file; char *bytes; size_t size; };

static void begin(struct trace_text *text)
{
	text->file = open_memstream(&text->bytes, &text->size);
	cr_assert_not_null(text->file);
	fputs(META NAMES "0 code ref=5 line=1 name=\"setup\" qualname=\"App.setup\" file=\"/srv/app.py\"\n"
		"0 code ref=6 line=1 name=\"<module>\" qualname=\"<module>\" file=\"/srv/models/big.py\"\n"
		"0 code ref=7 line=1022 name=\"_find_and_load\" qualname=\"_find_and_load\" file=\"<frozen importlib._bootstrap>\"\n" ON(0), text->file);
}

/* Hooks are on in the first FIRST_NS, then for 50 of each 250 ms. */
static bool is_window(uint64_t at_ns, uint64_t first_ns)
{
	return at_ns < first_ns || (at_ns - first_ns) % (SECOND / 4) >= SECOND / 5;
}

static void put_windows(struct trace_text *text, uint64_t first_ns)
{
	for (uint64_t at = first_ns; at < 10ull * SECOND; at += SECOND / 4)
		fprintf(text->file, "%" PRIu64 " window_off reason=2\n%" PRIu64 " window_on reason=2\n", at, at + SECOND / 5);
	fputs(OFF(10000000000), text->file);
}

/* A sample in the middle of each 10 ms: 4 of stack 3, else of stack 1. IMPORTS: whether there is one then. */
static void put_samples(struct trace_text *text, bool (*imports)(uint64_t at_ns))
{
	fputs(SESSION "0 stack ref=1 parent=0 frame=1 kind=0\n0 stack ref=2 parent=1 frame=5 kind=0\n0 stack ref=3 parent=2 frame=7 kind=0\n0 stack ref=4 parent=3 frame=6 kind=0\n"
		"0 thread_time ref=7 cpu_ns=0 run_wait_ns=0 state=82\n", text->file);
	for (uint64_t at = SECOND / 200; at < 10ull * SECOND; at += SECOND / 100) {
		fprintf(text->file, "%" PRIu64 " sample ref=%d tid=7 state=1 weight_ns=10000000\n", at, imports(at) ? 4 : 1);
		if ((at + SECOND / 200) % (SECOND / 10) == 0)
			fprintf(text->file, "%" PRIu64 " thread_time ref=7 cpu_ns=%" PRIu64 " run_wait_ns=0 state=82\n", at + SECOND / 200, at + SECOND / 200);
	}
	fputs(THREAD(3, 7), text->file);
}

static void put_seeds(struct trace_text *text, uint64_t at_ns)
{
	fprintf(text->file, "%" PRIu64 " stack_begin omitted=0\n%" PRIu64 " seed ref=%d\n", at_ns, at_ns, SEED_REF);
}

static void put_import(struct trace_text *text, uint64_t from_ns, uint64_t to_ns)
{
	fprintf(text->file, "%" PRIu64 " enter ref=5\n%" PRIu64 " enter ref=6\n%" PRIu64 " leave ref=6\n%" PRIu64 " leave ref=5\n", from_ns, from_ns, to_ns, to_ns);
}

static char *end(struct trace_text *text)
{
	cr_assert_eq(fclose(text->file), 0);
	keep_until_end(text->bytes, free);
	return text->bytes;
}

static bool at_start(uint64_t at_ns)
{
	return at_ns >= SECOND / 20 && at_ns < 95 * (SECOND / 100);
}

/* A start-up that was seen whole, of a program that was seen for a fifth after it: nothing of its 900 ms is missing. */
Test(analyze_paths, what_was_seen_whole_is_not_scaled)
{
	struct trace_text text;
	const struct analysis *analysis;
	const struct finding_report *finding;

	begin(&text);
	put_windows(&text, SECOND);
	put_samples(&text, at_start);
	put_seeds(&text, 0);
	put_import(&text, SECOND / 20, 95 * (SECOND / 100));
	for (uint64_t at = SECOND; at < 10ull * SECOND; at += SECOND / 4)
		put_seeds(&text, at + SECOND / 5);
	analysis = analysis_of_text(end(&text), NULL, 0);
	finding = finding_of(analysis, "py.import_in_request");
	cr_expect_float_eq(analysis_metric(analysis, "python.import_in_call_pct"), 9, 0.1, "%g", analysis_metric(analysis, "python.import_in_call_pct"));
	cr_assert_not_null(finding);
	cr_expect_leq(finding->recoverable_ns, function_named(timeline_from_text(text.bytes), "App.setup")->total_ns, "no more than what the function did that imports");
	cr_expect_str_eq(finding->locations[0].function, "App.setup");
}

static bool each_tenth(uint64_t at_ns)
{
	return at_ns % (SECOND / 10) >= SECOND / 20;
}

/* Half of each tenth of a second; three of four imports were only sampled, below machinery that the hooks of the fourth did not see. */
Test(analyze_paths, what_only_samples_saw_is_counted)
{
	struct trace_text text;
	const struct analysis *analysis;

	begin(&text);
	put_windows(&text, 0);
	put_samples(&text, each_tenth);
	for (uint64_t at = 0; at < 10ull * SECOND; at += SECOND / 100) {
		if (is_window(at, 0) && (!at || !is_window(at - 1, 0)))
			put_seeds(&text, at);
		if (at % (SECOND / 10) == SECOND / 20 && is_window(at, 0) && is_window(at + SECOND / 25, 0))
			put_import(&text, at + 1000, at + SECOND / 20 - 1000);
	}
	analysis = analysis_of_text(end(&text), NULL, 0);
	cr_expect_float_eq(analysis_metric(analysis, "python.import_in_call_pct"), 50, 3, "%g", analysis_metric(analysis, "python.import_in_call_pct"));
	cr_assert_not_null(finding_of(analysis, "py.import_in_request"));
	cr_expect_str_eq(finding_of(analysis, "py.import_in_request")->locations[0].function, "App.setup");
}

#define BODY(ref, file) "0 code ref=" #ref " line=1 name=\"<module>\" qualname=\"<module>\" file=\"" file "\"\n"
#define RUNPY "0 code ref=9 line=1 name=\"_run_module_as_main\" qualname=\"_run_module_as_main\" file=\"<frozen runpy>\"\n0 code ref=10 line=1 name=\"_run_code\" qualname=\"_run_code\" file=\"<frozen runpy>\"\n"

static double imported(const char *calls)
{
	char text[2048];

	snprintf(text, sizeof text, META NAMES BODY(6, "/srv/main.py") BODY(8, "/srv/models/big.py") BODY(11, "<string>") RUNPY ON(0) OFF(1000) THREAD(3, 7) "%s", calls);
	return analysis_metric(analysis_of_text(text, NULL, 0), "python.import_pct");
}

Test(analyze_paths, a_script_is_not_imported)
{
	cr_expect_eq(imported("0 enter ref=6\n900 leave ref=6\n"), 0, "python main.py");
	cr_expect_eq(imported("0 enter ref=9\n0 enter ref=10\n0 enter ref=6\n900 leave ref=6\n"), 0, "python -m main");
	cr_expect_eq(imported("0 enter ref=1\n0 enter ref=11\n900 leave ref=11\n"), 0, "exec(text)");
	cr_expect_float_eq(imported("0 enter ref=6\n0 enter ref=8\n400 leave ref=8\n900 leave ref=6\n"), 40, 1e-9, "what it imports is");
	cr_expect_float_eq(imported("0 enter ref=9\n0 enter ref=8\n300 leave ref=8\n300 enter ref=10\n300 enter ref=6\n900 leave ref=6\n"), 30, 1e-9, "and its package");
}
