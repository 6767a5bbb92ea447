/* The report as one JSON document: inferscope.report/1, described by docs/schema/inferscope-report-1.schema.json. What the program and its
 * devices did is put by write_json_program.c, write_json_gpu.c and write_json_memory.c. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "config.h"
#include "report/gpu_tables.h"
#include "report/tasks.h"

enum { WINDOWS_SHOWN = 10000 };

/* A name out of the trace as a key: cJSON writes the bytes of keys as they are, and a document that is no UTF-8 is none. */
static const char *visible_key(struct json *json, struct text *key, const char *name)
{
	text_clear(key);
	text_add_visible(key, name, strlen(name));
	json->failed |= key->failed;
	return key->data ? key->data : "";
}

static void put_capture(struct json *json, cJSON *root, const struct report *report)
{
	const struct timeline *timeline = report->timeline;
	cJSON *capture = put_object(json, root, "capture"), *settings, *counters;
	struct text key;

	if (report->pid)
		put_u64(json, capture, "pid", report->pid);
	else
		put(json, capture, "pid", cJSON_CreateNull());
	put_known(json, capture, "cmd", report->command);
	put_known(json, capture, "python", report->python);
	put_unix_ns(json, capture, "start_unix_ns", timeline->start_unix_ns);
	put_u64(json, capture, "duration_ns", timeline->duration_ns);
	put_known(json, capture, "mode", timeline_capture(timeline, "mode"));
	put_known(json, capture, "backend", timeline_capture(timeline, "backend"));
	put_number(json, capture, "coverage_ratio", report->coverage_pct / 100, 6);
	put_number(json, capture, "overhead_pct", report->overhead_pct, 3);
	put_u64(json, capture, "lost_events_count", timeline->quality.lost_events);
	put_number(json, capture, "cpu_cores_ratio", report->cpu_cores, 3);
	put_string(json, capture, "reproduce", report->reproduce);
	settings = put_object(json, capture, "settings");
	counters = put_object(json, capture, "counters");
	text_init(&key);
	for (size_t i = 0; i < timeline->capture_count; i++)
		put_string(json, settings, visible_key(json, &key, timeline->captures[i].key), timeline->captures[i].value);
	for (size_t i = 0; i < timeline->counter_count; i++)
		put_i64(json, counters, visible_key(json, &key, timeline->counters[i].name), timeline->counters[i].last);
	text_done(&key);
}

static void put_verdict(struct json *json, cJSON *root, const struct report *report)
{
	const struct verdict *verdict = &report->analysis->verdict;
	cJSON *object = put_object(json, root, "verdict"), *breakdown;

	put_string(json, object, "class", verdict_name(verdict->class_));
	put_known(json, object, "reason", verdict->reason);
	put_number(json, object, "confidence", verdict->confidence, 3);
	put_string(json, object, "sentence", verdict->sentence);
	put_known(json, object, "gpu", verdict->gpu);
	breakdown = put_object(json, root, "breakdown");
	for (size_t part = 0; part < PART_COUNT; part++) {
		char key[32];

		snprintf(key, sizeof key, "%s_pct", PARTS[part].key);
		put_number(json, breakdown, key, report->parts_known ? report->parts[part] : NAN, 3);
	}
}

static void put_metrics(struct json *json, cJSON *root, const struct report *report)
{
	cJSON *metrics = put_object(json, root, "metrics");

	put_gpu_metrics(json, metrics, report->timeline);
	for (size_t i = 0; i < report->analysis->metric_count; i++) {
		const struct metric *metric = &report->analysis->metrics[i];
		cJSON *object = put_object(json, metrics, metric->name);

		put_number(json, object, "value", metric->value, 6);
		put_string(json, object, "unit", metric->unit);
		if (!isfinite(metric->value))
			put_known(json, object, "why", metric->why);
	}
}

/* The program's lines at a place, from the function's first one on. */
static void put_source(struct json *json, cJSON *location, const struct source *source)
{
	cJSON *lines = source ? put_array(json, location, "source") : NULL;

	if (!source) {
		put(json, location, "source", cJSON_CreateNull());
		return;
	}
	for (size_t i = 0; i < source->count; i++) {
		cJSON *line = append_object(json, lines);

		put_u64(json, line, "line", source->first + i);
		put_string(json, line, "text", source->lines[i]);
	}
}

static void put_finding(struct json *json, cJSON *findings, const struct report *report, size_t index)
{
	const struct finding_report *finding = &report->analysis->findings[index];
	cJSON *object = append_object(json, findings), *impact, *evidence, *locations, *examples;
	char docs[128];

	put_string(json, object, "id", finding->id);
	put_string(json, object, "rule", finding->rule);
	put_u64(json, object, "rule_version", finding->rule_version);
	put_string(json, object, "title", finding->title);
	put_string(json, object, "severity", severity_name(finding->severity));
	put_number(json, object, "confidence", finding->confidence, 3);
	put_string(json, object, "class", verdict_name(finding->class_));
	put_known(json, object, "scope", finding->scope);
	impact = put_object(json, object, "impact");
	put_u64(json, impact, "recoverable_ns", finding->recoverable_ns);
	put_number(json, impact, "capture_pct", finding->recoverable_pct, 3);
	put_number(json, impact, "throughput_pct", finding->throughput_pct, 1);
	evidence = put_array(json, object, "evidence");
	for (size_t i = 0; i < finding->evidence_count; i++) {
		const struct evidence *from = &finding->evidence[i];
		cJSON *row = append_object(json, evidence);

		put_string(json, row, "metric", from->metric);
		put_number(json, row, "value", from->value, 6);
		put_string(json, row, "unit", from->unit);
		put_number(json, row, "threshold", *from->op ? from->threshold : NAN, 6);
		put_known(json, row, "op", from->op);
	}
	locations = put_array(json, object, "locations");
	for (size_t i = 0; i < finding->location_count; i++) {
		const struct location *from = &finding->locations[i];
		cJSON *row = append_object(json, locations);

		put_line(json, row, from->file, from->line);
		put_string(json, row, "function", from->function);
		put_string(json, row, "kind", function_kind_name(from->kind));
		put_source(json, row, report_source(report, index, i));
	}
	examples = put_array(json, object, "examples");
	for (size_t i = 0; i < finding->example_count; i++) {
		cJSON *row = append_object(json, examples);

		put_u64(json, row, "t0_ns", finding->examples[i].at_ns);
		put_u64(json, row, "dur_ns", finding->examples[i].duration_ns);
		put_string(json, row, "what", finding->examples[i].what);
	}
	put_string(json, object, "suggestion", finding->suggestion);
	snprintf(docs, sizeof docs, "rules#%.100s", finding->rule);
	put_string(json, object, "docs", docs);
}

static void put_findings(struct json *json, cJSON *root, const struct report *report)
{
	cJSON *findings = put_array(json, root, "findings");

	for (size_t i = 0; i < report->analysis->finding_count; i++)
		put_finding(json, findings, report, i);
}

static void put_not_evaluated(struct json *json, cJSON *root, const struct analysis *analysis)
{
	cJSON *rules = put_array(json, root, "not_evaluated");

	for (size_t i = 0; i < analysis->not_evaluated_count; i++) {
		cJSON *row = append_object(json, rules);

		put_string(json, row, "rule", analysis->not_evaluated[i].rule);
		put_string(json, row, "reason", analysis->not_evaluated[i].reason);
	}
}

static const char *throttle_name(uint32_t what)
{
	static const char *const names[] = { [THROTTLE_COUNTED] = "counted", [THROTTLE_C_CALLS_OFF] = "c_calls_off", [THROTTLE_TURN_ON] = "turn_on", [THROTTLE_TURN_OFF] = "turn_off", [THROTTLE_LEFT_OUT] = "left_out", [THROTTLE_MEMORY] = "memory_samples_halved" };

	return what < sizeof names / sizeof *names && names[what] ? names[what] : "unknown";
}

static const char *window_name(uint32_t reason)
{
	static const char *const names[] = { [WINDOW_ARM] = "end", [WINDOW_BUDGET] = "budget", [WINDOW_DEADLINE] = "deadline", [WINDOW_STACK] = "stack", [WINDOW_FOREIGN] = "foreign", [WINDOW_ALTERNATE] = "alternate" };

	return reason < sizeof names / sizeof *names && names[reason] ? names[reason] : "unknown";
}

static const char *work_name(enum work_unit work)
{
	static const char *const names[] = { [WORK_ITEMS] = "scopes", [WORK_SECONDS] = "seconds" };

	return (unsigned)work < sizeof names / sizeof *names ? names[work] : NULL;
}

/* What turns with and without collection say; null where there were none. */
static void put_turns(struct json *json, cJSON *budget, const struct turns *turns)
{
	bool known = turns->work != WORK_UNKNOWN, items = turns->work == WORK_ITEMS;
	cJSON *object;

	if (!known && !turns->why) {
		put(json, budget, "measured", cJSON_CreateNull());
		return;
	}
	object = put_object(json, budget, "measured");
	put_string(json, object, "work", work_name(turns->work));
	put_known(json, object, "scope", turns->item);
	put_known(json, object, "why", turns->why);
	put_u64(json, object, "pairs_count", turns->pairs);
	put_number(json, object, "work_ratio", known ? turns->ratio : NAN, 4);
	put_number(json, object, "work_ratio_low", known ? turns->ratio_low : NAN, 4);
	put_number(json, object, "work_ratio_high", known ? turns->ratio_high : NAN, 4);
	put_number(json, object, "items_on_count", items ? turns->work_on : NAN, 0);
	put_number(json, object, "items_off_count", items ? turns->work_off : NAN, 0);
	put_number(json, object, "cpu_per_item_on_ns", items ? turns->cpu_on_ns / turns->work_on : NAN, 0);
	put_number(json, object, "cpu_per_item_off_ns", items ? turns->cpu_off_ns / turns->work_off : NAN, 0);
	put_number(json, object, "counted_pct", turns->ledger_pct < 0 ? NAN : turns->ledger_pct, 3);
}

/* What was asked for, what came of it, and what was done for it. */
static void put_budget(struct json *json, cJSON *root, const struct report *report)
{
	const struct timeline *timeline = report->timeline;
	cJSON *object = put_object(json, root, "budget"), *rows;

	put_number(json, object, "target_pct", report->target_pct, 3);
	put_number(json, object, "achieved_pct", report->overhead_pct, 3);
	put_turns(json, object, &timeline->turns);
	put_u64(json, object, "windows_count", timeline->window_count);
	put_u64(json, object, "windows_start_monotonic_ns", timeline->start_ns);
	rows = put_array(json, object, "history");
	for (size_t i = 0; i < timeline->throttle_count && !json->failed; i++) {
		const struct throttle_change *change = &timeline->throttles[i];
		cJSON *row = append_object(json, rows);

		put_u64(json, row, "at_ns", change->at_ns);
		put_string(json, row, "what", throttle_name(change->what));
		put_known(json, row, "function", change->function < timeline->function_count ? timeline->functions[change->function].name : NULL);
		put_number(json, row, "load_ratio", change->load, 3);
	}
	rows = put_array(json, object, "windows");
	for (size_t i = 0; i < timeline->window_count && i < WINDOWS_SHOWN && !json->failed; i++) {
		cJSON *row = append_object(json, rows);

		put_u64(json, row, "start_ns", timeline->windows[i].start_ns);
		put_u64(json, row, "end_ns", timeline->windows[i].end_ns);
		put_string(json, row, "ended_by", window_name(timeline->windows[i].reason));
	}
}

static void put_quality(struct json *json, cJSON *root, const struct report *report)
{
	static const char *const states[] = { [QUALITY_FINE] = "ok", [QUALITY_NOTE] = "note", [QUALITY_BAD] = "bad" };
	const struct timeline_quality *quality = &report->timeline->quality;
	cJSON *object = put_object(json, root, "quality"), *notes;

	put_number(json, object, "coverage_ratio", report->coverage_pct / 100, 6);
	put_number(json, object, "overhead_pct", report->overhead_pct, 3);
	put_number(json, object, "hold_max_ns", report->hold_max_ns, 0);
	put_u64(json, object, "events_count", quality->events);
	put_u64(json, object, "lost_events_count", quality->lost_events);
	put_u64(json, object, "unmatched_count", quality->unmatched);
	put_u64(json, object, "skipped_calls_count", quality->skipped_calls);
	put_u64(json, object, "cut_strings_count", quality->cut_strings);
	put_u64(json, object, "damaged_chunks_count", quality->damaged_chunks);
	put_u64(json, object, "outside_count", quality->outside);
	put_u64(json, object, "other_calls_count", quality->other_calls);
	put_u64(json, object, "unresolved_names_count", quality->unresolved_names);
	put_u64(json, object, "torn_samples_count", quality->torn_samples);
	put_u64(json, object, "samples_count", quality->samples);
	put_u64(json, object, "unjoined_samples_count", quality->unjoined_samples);
	put_bool(json, object, "truncated", quality->truncated);
	notes = put_array(json, object, "notes");
	for (size_t i = 0; i < report->quality_count; i++) {
		const struct quality_row *row = &report->quality[i];
		cJSON *note = append_object(json, notes);

		put_string(json, note, "key", row->key);
		put_string(json, note, "state", states[row->state]);
		put_string(json, note, "label", row->label);
		put_string(json, note, "value", row->value);
		put_known(json, note, "meaning", row->meaning);
	}
}

static void put_root(struct json *json, cJSON *root, const struct report *report, const struct gpu_tables *tables)
{
	const struct timeline *timeline = report->timeline;
	cJSON *tool, *warnings;

	put_string(json, root, "schema", "inferscope.report/1");
	put_string(json, root, "schema_url", "inferscope-report-1.schema.json");
	tool = put_object(json, root, "tool");
	put_string(json, tool, "name", "inferscope");
	put_string(json, tool, "version", PACKAGE_VERSION);
	/* The end of the capture: the same trace gives the same bytes, today and tomorrow. */
	put_known(json, root, "generated_at", report->ended);
	put_capture(json, root, report);
	put_verdict(json, root, report);
	put_metrics(json, root, report);
	put_findings(json, root, report);
	put_not_evaluated(json, root, report->analysis);
	put_functions(json, root, report);
	put_threads(json, root, timeline);
	put_gil(json, root, timeline);
	put_collections(json, root, report);
	put_memory(json, root, report);
	put_stacks(json, root, timeline);
	put_processes(json, root, timeline);
	put_gpu_lists(json, root, timeline);
	put_gpu_tables(json, root, tables);
	put_syscalls(json, root, report);
	put_counters(json, root, report);
	put_tasks(json, root, timeline);
	put_scopes(json, root, timeline);
	put_budget(json, root, report);
	put_quality(json, root, report);
	warnings = put_array(json, root, "warnings");
	for (size_t i = 0; i < report->warning_count; i++)
		append(json, warnings, string_token(report->warnings[i]));
}

int write_json(const struct report *report, struct sink *sink, struct error *err)
{
	struct json json = { .failed = false };
	struct gpu_tables tables;
	cJSON *root;

	if (gpu_tables_read(report, &tables, err) < 0)
		return -1;
	root = cJSON_CreateObject();
	put_root(&json, root, report, &tables);
	gpu_tables_free(&tables);
	return document_write(&json, root, sink, err);
}
