/* Rules files: what is taken, what is refused and where, and what the rules then say of a trace. */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze_golden.h"
#include "analyze_help.h"
#include "timeline_help.h"

#define HEAD "schema: inferscope.rules/1\n"
#define RULE_HEAD HEAD "rules:\n  - id: acme.one\n    title: one\n    suggestion: none\n"

static void free_rules(void *rules)
{
	ruleset_free(rules);
}

static struct ruleset *rules_of(const char *text)
{
	struct ruleset *rules;
	struct error err = { 0 };

	cr_assert_eq(ruleset_parse(text, strlen(text), "rules.yaml", &rules, &err), 0, "%s\n%s", err.text, err.hint);
	keep_until_end(rules, free_rules);
	return rules;
}

static void free_analysis(void *analysis)
{
	analysis_free(analysis);
}

static void free_timeline(void *timeline)
{
	timeline_free(timeline);
}

/* The requests of io.net_wait: 100 of App.handle, 50 ms each, 6 ms of it in getresponse. */
static const struct analysis *requests_judged_by(const struct ruleset *rules)
{
	static const char *const scopes[] = { "App.handle" };
	struct golden_trace golden = golden_expand(read_text("tests/golden/rules", "io.net_wait.trace"), "fire");
	struct timeline *timeline;
	struct analysis *analysis;
	struct error err;

	keep_until_end(golden.text, free);
	cr_assert_eq(timeline_build_scoped(trace_from_text(golden.text), &(struct scope_patterns){ scopes, 1 }, &timeline, &err), 0);
	keep_until_end(timeline, free_timeline);
	cr_assert_eq(analysis_build_with(timeline, rules, NULL, 0, &analysis, &err), 0);
	keep_until_end(analysis, free_analysis);
	return analysis;
}

/* What a condition compares, where it holds for those requests; NULL = it does not. */
static const struct evidence *condition_evidence(const char *text)
{
	struct ruleset *rules;
	struct error err = { 0 };
	const struct analysis *analysis;

	cr_assert_eq(ruleset_condition(text, &rules, &err), 0, "%s\n%s", err.text, err.hint);
	keep_until_end(rules, free_rules);
	analysis = requests_judged_by(rules);
	cr_assert_leq(analysis->finding_count, 1, "no other rule is judged");
	return analysis->finding_count ? analysis->findings[0].evidence : NULL;
}

Test(condition, holds_where_requests_are_slow)
{
	const struct evidence *evidence = condition_evidence("p99(scope:App.handle) > 40ms");

	cr_assert_not_null(evidence);
	cr_expect_str_eq(evidence->metric, "p99(scope:App.handle)");
	cr_expect_float_eq(evidence->value, 50e6, 1);
	cr_expect_float_eq(evidence->threshold, 40e6, 1);
	cr_expect_str_eq(evidence->unit, "ns");
	cr_expect_null(condition_evidence("p99(scope:App.handle) > 60ms"));
	cr_expect_not_null(condition_evidence("n(scope:'App.*') == 100 and time(scope:'*') >= 5s"));
}

Test(condition, is_not_known_without_such_requests)
{
	struct ruleset *rules;

	cr_assert_eq(ruleset_condition("p99(scope:other) > 1ms", &rules, NULL), 0);
	keep_until_end(rules, free_rules);
	cr_expect_str_eq(why_not_evaluated(requests_judged_by(rules), "condition"), "no request scope of that name");
}

Test(condition, says_what_is_wrong_with_it)
{
	struct ruleset *rules;
	struct error err = { 0 };

	cr_assert_eq(ruleset_condition("p99(scope:x) > 200ms and cpu.busy_core > 1", &rules, &err), -1);
	cr_expect_eq(err.code, ERR_RULES);
	cr_expect_str_eq(err.text, "the condition \"p99(scope:x) > 200ms and cpu.busy_core > 1\", at its character 26: nothing is called 'cpu.busy_core'");
	cr_expect_str_eq(err.hint, "did you mean cpu.busy_cores?");
	cr_expect_eq(ruleset_condition("p99(py:x) > 1", &rules, &err), -1);
	cr_expect_eq(ruleset_condition("cpu.busy_cores", &rules, &err), -1, "it must be true or false");
	cr_expect_eq(ruleset_condition("n(scope) > 1", &rules, &err), -1, "there is no rule whose scope it could be");
}

static const char example[] = HEAD
	"extends: default            # or none\n"
	"set: {gpu.idle_pct_threshold: 10}\n"
	"disable: [py.exceptions_hot]\n"
	"rules:\n"
	"  - id: acme.answers\n"
	"    version: 3\n"
	"    title: \"Answers take {metric.ask_pct:.1f}% of {scope} time\"\n"
	"    scope: \"App.*\"\n"
	"    requires: [py.stacks, scopes]\n"
	"    let:\n"
	"      ask_pct: \"100 * time(py, func =~ 'getresponse|urlopen', within=scope) / time(scope)\"\n"
	"    when: \"ask_pct > 8 and n(scope) >= 30\"\n"
	"    severity: {high: \"ask_pct > 25\", medium: \"true\"}\n"
	"    confidence: \"clamp((ask_pct - 8) / 20, 0.5, 0.95)\"\n"
	"    recoverable: ask_pct / 100 * time(scope)\n"
	"    evidence: {top_stacks: 5, examples: 3, metrics: [cpu.busy_cores]}\n"
	"    suggestion: \"Ask earlier.\"\n";

Test(analyze_rules_file, judges_requests_by_a_rule_of_ones_own)
{
	const struct finding_report *finding = finding_of(requests_judged_by(rules_of(example)), "acme.answers");

	cr_assert_not_null(finding);
	cr_expect_str_eq(finding->title, "Answers take 12.0% of App.handle time");
	cr_expect_eq(finding->severity, SEVERITY_MEDIUM);
	cr_expect_eq(finding->rule_version, 3);
	cr_expect_float_eq(finding->confidence, 0.5, 1e-9);
	cr_expect_eq(finding->recoverable_ns, 600000000);
	cr_expect_str_eq(finding->scope, "App.handle");
	cr_expect_eq(finding->evidence_count, 3);
	cr_expect_str_eq(finding->evidence[0].metric, "ask_pct");
	cr_expect_str_eq(finding->evidence[0].unit, "pct");
	cr_expect_float_eq(finding->evidence[0].threshold, 8, 1e-9);
	cr_expect_str_eq(finding->evidence[1].metric, "n(scope)");
	cr_assert_eq(finding->location_count, 1);
	cr_expect_str_eq(finding->locations[0].function, "HTTPConnection.getresponse");
	cr_assert_eq(finding->example_count, 1);
	cr_expect_eq(finding->examples[0].duration_ns, 50000000);
}

/* 20 requests of 50 ms one after the other, on one thread or on two at the same time, of which 30 ms are waited: what can go away is the same, and no more than what lasts. */
Test(analyze_rules_file, requests_at_once_wait_at_once)
{
	static const char *const scopes[] = { "work" };

	for (unsigned threads = 1; threads <= 2; threads++) {
		char *text;
		size_t length;
		FILE *out = open_memstream(&text, &length);
		const struct finding_report *finding;
		struct timeline *timeline;
		struct analysis *analysis;
		struct error err;

		fputs(META ON(0) OFF(2000000000) NAMES "0 code ref=9 line=70 name=\"getresponse\" qualname=\"HTTPConnection.getresponse\" file=\"/usr/lib/python3/http/client.py\"\n", out);
		for (unsigned thread = 0; thread < threads; thread++) {
			fprintf(out, "chunk process=0 lane=%u tid=%u kind=thread sequence=1 lost=0 depth=0 refs=" CLOCK "0 enter ref=1\n", 3 + thread, 7 + thread);
			for (unsigned i = 0; i < 20; i++)
				fprintf(out, "%u0000000 enter ref=2\n%u1000000 enter ref=9\n%u1000000 leave ref=9\n%u0000000 leave ref=2\n", 10 * i + 1, 10 * i + 1, 10 * i + 4, 10 * i + 6);
		}
		fclose(out);
		keep_until_end(text, free);
		cr_assert_eq(timeline_build_scoped(trace_from_text(text), &(struct scope_patterns){ scopes, 1 }, &timeline, &err), 0);
		keep_until_end(timeline, free_timeline);
		cr_assert_eq(analysis_build(timeline, NULL, 0, &analysis, &err), 0);
		keep_until_end(analysis, free_analysis);
		finding = finding_of(analysis, "io.net_wait");
		cr_assert_not_null(finding);
		cr_expect_str_eq(finding->title, "Requests (work) wait for others for 60 % of their time");
		cr_expect_eq(finding->recoverable_ns, 600000000, "%u threads: %lu", threads, (unsigned long)finding->recoverable_ns);
	}
}

/* Ten requests call step twice each, and main calls it five times; all of it is seen in the first half. */
Test(analyze_rules_file, count_calls_within_requests)
{
	static const char *const scopes[] = { "work" };
	static const char counting[] = HEAD "rules:\n  - {id: acme.steps, title: '{steps:.1f} of {all:.1f}', suggestion: s, scope: work, when: 'true',\n"
		"    let: {steps: \"count(py, func =~ 'step', within=scope)\", all: \"n(py, func =~ 'step')\"}}\n";
	char *text;
	size_t length;
	FILE *out = open_memstream(&text, &length);
	const struct finding_report *finding;
	struct timeline *timeline;
	struct analysis *analysis;
	struct error err;

	fputs(META NAMES "0 window_on reason=1\n1000000 window_off reason=2\n2000000 window_on reason=1\n2000000 window_off reason=1\n" THREAD(3, 7) "0 enter ref=1\n", out);
	for (unsigned i = 0; i < 10; i++)
		fprintf(out, "%u0000 enter ref=2\n%u1000 enter ref=3\n%u2000 leave ref=3\n%u3000 enter ref=3\n%u4000 leave ref=3\n%u5000 leave ref=2\n", i + 1, i + 1, i + 1, i + 1, i + 1, i + 1);
	for (unsigned i = 0; i < 5; i++)
		fprintf(out, "%u0000 enter ref=3\n%u1000 leave ref=3\n", i + 20, i + 20);
	fclose(out);
	keep_until_end(text, free);
	cr_assert_eq(timeline_build_scoped(trace_from_text(text), &(struct scope_patterns){ scopes, 1 }, &timeline, &err), 0);
	keep_until_end(timeline, free_timeline);
	cr_assert_eq(analysis_build_with(timeline, rules_of(counting), NULL, 0, &analysis, &err), 0);
	keep_until_end(analysis, free_analysis);
	finding = finding_of(analysis, "acme.steps");
	cr_assert_not_null(finding);
	cr_expect_str_eq(finding->title, "40.0 of 50.0");
}

Test(analyze_rules_file, may_show_nothing_and_take_all)
{
	static const char all[] = HEAD
		"rules:\n"
		"  - id: acme.all\n"
		"    title: \"All of it\"\n"
		"    scope: \"App.*\"\n"
		"    when: \"time(py, func =~ 'getresponse') > 0\"\n"
		"    recoverable: capture.duration_ns\n"
		"    evidence: {top_stacks: 0, examples: 0}\n"
		"    suggestion: \"Do nothing.\"\n";
	const struct finding_report *finding = finding_of(requests_judged_by(rules_of(all)), "acme.all");

	cr_assert_not_null(finding);
	cr_expect_eq(finding->location_count, 0);
	cr_expect_eq(finding->example_count, 0);
	cr_expect_float_eq(finding->throughput_pct, 9900, 1e-9, "nothing is left to do: there is no bound");
}

Test(analyze_rules_file, what_is_longer_than_the_capture_says_nothing_of_throughput)
{
	static const char sum[] = HEAD "rules:\n  - {id: acme.sum, title: t, suggestion: s, scope: 'App.*', when: 'true', recoverable: 3 * capture.duration_ns}\n";
	const struct finding_report *finding = finding_of(requests_judged_by(rules_of(sum)), "acme.sum");

	cr_assert_not_null(finding);
	cr_expect_float_eq(finding->recoverable_pct, 100, 1e-9);
	cr_expect_float_eq(finding->throughput_pct, 0, 1e-9);
}

Test(analyze_rules_file, says_what_is_in_it)
{
	char what[160];

	ruleset_describe(rules_of(example), what, sizeof what);
	cr_expect_not_null(strstr(what, "1 of them from the file; 1 thresholds set, 1 built-in rules turned off"), "%s", what);
}

Test(analyze_rules_file, turns_rules_off_and_thresholds_up)
{
	const struct analysis *analysis = requests_judged_by(rules_of(HEAD "disable: [gil.contention]\nset: {io.net_wait.pct: 13}\n"));

	cr_expect_null(finding_of(analysis, "io.net_wait"));
	cr_expect_null(why_not_evaluated(analysis, "gil.contention"));
	cr_expect_not_null(finding_of(requests_judged_by(rules_of(HEAD)), "io.net_wait"));
	cr_expect_eq(requests_judged_by(rules_of(HEAD "extends: none\n"))->finding_count, 0);
}

Test(analyze_rules_file, is_not_evaluated_without_its_data)
{
	const struct analysis *analysis = requests_judged_by(rules_of(RULE_HEAD "    when: gpu.busy_pct > 1\n  - {id: acme.two, title: '', suggestion: '', when: '1 / (cpu.cores - 4) > 1'}\n"
		"  - {id: acme.three, title: '', suggestion: '', when: 'true', scope: other}\n  - {id: acme.four, title: '', suggestion: '', when: 'true', requires: gpu}\n"));

	cr_expect_str_eq(why_not_evaluated(analysis, "acme.one"), "no GPU data");
	cr_expect_str_eq(why_not_evaluated(analysis, "acme.two"), "a division by zero");
	cr_expect_str_eq(why_not_evaluated(analysis, "acme.three"), "no request scope of that name in the trace");
	cr_expect_str_eq(why_not_evaluated(analysis, "acme.four"), "no GPU data");
}

Test(analyze_rules_file, may_be_json)
{
	cr_assert_not_null(rules_of("{\"schema\": \"inferscope.rules/1\", \"rules\": [{\"id\": \"a.b\", \"title\": \"t\", \"when\": \"true\", \"suggestion\": \"s\"}]}"));
}

Test(analyze_rules_file, explains_each_value)
{
	struct ruleset *rules = rules_of(example);
	struct error err;
	struct text text;

	text_init(&text);
	cr_assert_eq(ruleset_explain(rules, "acme.answers", requests_judged_by(rules), &text, &err), 0);
	cr_expect_not_null(strstr(text.data, "ask_pct: 12\n"), "%s", text.data);
	cr_expect_not_null(strstr(text.data, "= 5000000000\n"), "time(scope)");
	cr_expect_not_null(strstr(text.data, "judgement: fires\n"));
	text_done(&text);
	cr_assert_lt(ruleset_explain(rules, "acme.answer", NULL, &text, &err), 0);
	cr_expect_str_eq(err.hint, "did you mean acme.answers?");
}

struct refused_row { char text[200], message[96]; };

ParameterizedTestParameters(analyze_rules_file, refuses)
{
	static struct refused_row rows[] = {
		{ "", "rules.yaml: the file is empty" }, { "a: b\n", "rules.yaml:1:1: no such key: \"a\"" }, { "rules: []\n", "rules.yaml:1:1: \"schema\" is missing" },
		{ "schema: other/1\n", "rules.yaml:1:9: expected inferscope.rules/1" }, { "- a\n", "rules.yaml:1:1: expected \"key: value\"" },
		{ HEAD HEAD, "rules.yaml:2:1: \"schema\" stands here twice" }, { HEAD "---\na: b\n", "rules.yaml:2:1: one document is expected" },
		{ HEAD "set: &a {gpu.idle_pct_threshold: 1}\n", "rules.yaml:2:6: anchors and tags are not used here" }, { HEAD "extends: &a default\n", "rules.yaml:2:10: anchors are not used here" },
		{ HEAD "extends: *a\n", "rules.yaml:2:10: aliases are not used here" }, { HEAD "extends: !!str default\n", "rules.yaml:2:10: tags are not used here" },
		{ HEAD "set: {<<: 1}\n", "rules.yaml:2:7: merges are not used here" }, { HEAD "set: {[a]: 1}\n", "rules.yaml:2:7: a key is a word" },
		{ HEAD "set: {gpu.idle_pct: 1}\n", "rules.yaml:2:7: no threshold is called \"gpu.idle_pct\"" }, { HEAD "set: {gpu.idle_pct_threshold: ten}\n", "rules.yaml:2:31: expected a number" },
		{ HEAD "set: {gpu.idle_pct_threshold: .inf}\n", "rules.yaml:2:31: expected a number" }, { HEAD "disable: [gil.contentio]\n", "rules.yaml:2:11: there is no rule \"gil.contentio\"" },
		{ HEAD "disable: gil.contention\n", "rules.yaml:2:10: a list of rules is expected here" }, { HEAD "extends: [[[[[[[[[[a]]]]]]]]]]\n", "rules.yaml:2:17: nested too deeply" },
		{ HEAD "rules: [{id: nodot}]\n", "rules.yaml:2:14: an id has a dot in it" }, { HEAD "rules: [{id: A.b}]\n", "rules.yaml:2:14: an id is made of a-z, 0-9, _ and dots between" },
		{ RULE_HEAD "    when: no\n", "rules.yaml:6:11: \"no\" may mean two things" }, { RULE_HEAD "    when:\n", "rules.yaml:6:10: a value is missing" }, { RULE_HEAD, "rules.yaml:3:5: \"when\" is missing" },
		{ RULE_HEAD "    when: cpu.core > 2\n", "rules.yaml:6:11: nothing is called 'cpu.core'" }, { RULE_HEAD "    when: \"true and cpu.cores + 'a' > 2\"\n", "rules.yaml:6:33: expected a number, this is a text" },
		{ RULE_HEAD "    when: |\n      cpu.cores > 2\n      and cpu.core > 1\n", "rules.yaml:8:11: nothing is called 'cpu.core'" }, { RULE_HEAD "    when: cpu.cores\n", "rules.yaml:6:11: expected true or false, this is a number" },
		{ RULE_HEAD "    when: n(scope) > 2\n", "rules.yaml:6:13: the rule has no scope: scope:NAME here, or a line \"scope: NAME\", gives it one" }, { RULE_HEAD "    when: count(api) > 1\n    severity: {high: high}\n", "rules.yaml:7:22: nothing is called 'high'" },
		{ RULE_HEAD "    when: \"time(scope:a, func == 'b') > 1\"\n", "rules.yaml:6:12: this takes no filters" }, { RULE_HEAD "    when: \"gap(idle, func == 'b') > 1\"\n", "rules.yaml:6:12: this takes no filters" },
		{ RULE_HEAD "    scope: a\n    when: time(kernel, within=scope) > 1\n", "rules.yaml:7:11: within=scope is known of time() and count() of functions" },
		{ RULE_HEAD "    scope: a\n    when: self(py, within=scope) > 1\n", "rules.yaml:7:11: within=scope is known of time() and count() of functions" },
		{ RULE_HEAD "    when: 'true'\n    severity: bad\n", "rules.yaml:7:15: expected info, low, medium, high, or {high: expression, …}" }, { RULE_HEAD "    when: 'true'\n    places: nowhere\n", "rules.yaml:7:13: no such places" },
		{ RULE_HEAD "    when: 'true'\n    requires: [gpus]\n", "rules.yaml:7:16: no such kind of data" }, { RULE_HEAD "    when: 'true'\n    let: {1a: '1'}\n", "rules.yaml:7:11: a name is made of letters, digits and _" },
		{ RULE_HEAD "    when: 'true'\n    evidence: {metrics: [cpu.core]}\n", "rules.yaml:7:26: no number is called so" }, { RULE_HEAD "    when: 'true'\n    version: 1.5\n", "rules.yaml:7:14: expected a whole number from 0 to 1000000" },
		{ RULE_HEAD "    when: 'true'\n  - id: acme.one\n    title: a\n    suggestion: b\n    when: 'true'\n", "rules.yaml:7:9: there is a rule of that id above" },
		{ HEAD "rules:\n  - id: gil.contention\n    title: a\n    suggestion: b\n    when: 'true'\n", "rules.yaml:3:9: there is a rule of that id built in" },
		{ HEAD "rules:\n  - id: a.b\n    title: \"x {cpu.cores:.9f}\"\n    suggestion: b\n    when: 'true'\n", "rules.yaml:4:25: after the colon stands .0f to .6f" },
		{ HEAD "rules:\n  - id: a.b\n    title: \"x {cpu.cores\"\n    suggestion: b\n    when: 'true'\n", "rules.yaml:4:15: this brace is never closed" },
		{ HEAD "a: [\n", "rules.yaml:3:1: did not find expected node content" }, { HEAD "\"a\\0b\": 1\n", "rules.yaml:2:1: a value holds a NUL byte" },
	};

	return cr_make_param_array(struct refused_row, rows, sizeof rows / sizeof *rows);
}

ParameterizedTest(struct refused_row *row, analyze_rules_file, refuses)
{
	struct ruleset *rules;
	struct error err = { 0 };

	cr_assert_lt(ruleset_parse(row->text, strlen(row->text), "rules.yaml", &rules, &err), 0, "taken: %s", row->text);
	cr_expect_eq(err.code, ERR_RULES);
	cr_expect(strncmp(err.text, row->message, strlen(row->message)) == 0, "%s", err.text);
}

Test(analyze_rules_file, shows_the_place)
{
	const char *text = RULE_HEAD "    when: \"cpu.cores > 2 and cpu.core > 1\"\n";
	struct ruleset *rules;
	struct error err;

	cr_assert_lt(ruleset_parse(text, strlen(text), "rules.yaml", &rules, &err), 0);
	cr_expect_str_eq(err.place, "    when: \"cpu.cores > 2 and cpu.core > 1\"");
	cr_expect_str_eq(err.place + err.caret, "cpu.core > 1\"");
	cr_expect_str_eq(err.hint, "did you mean cpu.cores?");
}

Test(analyze_rules_file, has_bounds)
{
	size_t size = (1 << 20) + 100;
	char *text = malloc(size + 1);
	struct ruleset *rules;
	struct error err;

	memset(text, ' ', size);
	text[size] = '\0';
	cr_expect_lt(ruleset_parse(text, size, "long", &rules, &err), 0);
	memset(text, '[', 1 << 19);
	cr_expect_lt(ruleset_parse(text, 1 << 19, "deep", &rules, &err), 0);
	for (size_t i = 1; i + 1 < size; i += 2)
		memcpy(text + i, "a,", 2);
	text[0] = '[';
	cr_expect_lt(ruleset_parse(text, 1 << 20, "wide", &rules, &err), 0);
	cr_expect_not_null(strstr(err.text, "too many entries"), "%s", err.text);
	free(text);
}
