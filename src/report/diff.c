#include "report/diff.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/document.h"
#include "report/name.h"
#include "report/quantity.h"
#include "report/report.h"

enum { ROWS_SHOWN = 10, NAME_SHOWN = 200, JSON_ROWS_MAX = 5000 };

static const char *const TITLES[DIFF_KINDS] = { "Latencies", "CPU time of functions", "Kernels", "Device idle" };

static const char *per(const struct diff *diff)
{
	return diff->unit == DIFF_PER_REQUEST ? "request" : "second";
}

static void add_name(struct text *line, const char *name, bool markdown)
{
	name_add_prose(line, name, NAME_SHOWN, 0, markdown);
}

static void add_ns(struct text *line, double ns)
{
	text_add_string(line, isnan(ns) ? "–" : quantity_ns((uint64_t)(ns + 0.5), 0).text);
}

static void add_change(struct text *line, const struct diff_row *row)
{
	double before = isnan(row->before_ns) ? 0 : row->before_ns, after = isnan(row->after_ns) ? 0 : row->after_ns;

	if (before > 0 && after > 0)
		text_printf(line, "%+.0f %%", 100 * (after - before) / before);
	else
		text_add_string(line, after > 0 ? "new" : "gone");
}

static void add_row(struct text *line, const struct diff_row *row, bool markdown)
{
	text_add_string(line, markdown ? "| " : row->worse ? "  slower  " : "  faster  ");
	add_ns(line, row->before_ns);
	text_add_string(line, markdown ? " | " : " -> ");
	add_ns(line, row->after_ns);
	text_add_string(line, markdown ? " | " : "  ");
	add_change(line, row);
	text_add_string(line, markdown ? " | " : "  ");
	add_name(line, row->name, markdown);
	if (*row->file && row->line) {
		text_add_string(line, " ");
		add_name(line, row->file, markdown);
		text_printf(line, ":%u", row->line);
	}
	text_add_string(line, markdown ? " |\n" : "\n");
}

/* A kind's changed rows. */
static void add_rows(struct text *out, const struct diff *diff, enum diff_kind kind, bool markdown)
{
	size_t shown = 0, left = 0;

	for (size_t i = 0; i < diff->row_count; i++) {
		const struct diff_row *row = &diff->rows[i];

		if (row->kind != kind || !row->changed)
			continue;
		if (shown == ROWS_SHOWN) {
			left++;
			continue;
		}
		if (!shown++) {
			text_printf(out, markdown ? "\n## %s%s%s\n\n" : "\n%s%s%s\n", TITLES[kind], kind == DIFF_LATENCY ? "" : " per ", kind == DIFF_LATENCY ? "" : per(diff));
			text_add_string(out, markdown ? "| before | after | change | what |\n|---|---|---|---|\n" : "");
		}
		add_row(out, row, markdown);
	}
	if (left)
		text_printf(out, markdown ? "\n%zu more changed.\n" : "  %zu more changed\n", left);
}

static void add_findings(struct text *out, const char *title, const struct finding_report *const *findings, size_t count, bool markdown)
{
	if (!count)
		return;
	text_printf(out, markdown ? "\n## %s\n\n" : "\n%s\n", title);
	for (size_t i = 0; i < count; i++) {
		text_printf(out, markdown ? "- **%s** " : "  %-7s ", severity_name(findings[i]->severity));
		name_add_prose(out, findings[i]->title, NAME_SHOWN, NAME_HEAD, markdown);
		text_printf(out, " (%s)\n", findings[i]->rule);
	}
}

static void add_head(struct text *out, const struct diff_view *view, bool markdown)
{
	const struct diff *diff = view->diff;
	const struct diff_side *sides[] = { &view->before, &view->after };
	size_t changed = 0, worse = 0;

	for (size_t i = 0; i < diff->row_count; i++) {
		changed += diff->rows[i].changed;
		worse += diff->rows[i].worse;
	}
	text_add_string(out, markdown ? "# InferScope report: what changed\n\n" : "InferScope report: what changed\n\n");
	for (int side = 0; side < 2; side++) {
		const struct verdict *verdict = &sides[side]->analysis->verdict;

		text_printf(out, "%s%s ", markdown ? "- " : "", side ? "after: " : "before:");
		add_name(out, sides[side]->name, markdown);
		text_printf(out, ", %s, %s (confidence %s)", quantity_ns(sides[side]->timeline->duration_ns, 0).text, verdict_label(verdict->class_), quantity_confidence(verdict->confidence).text);
		if (diff->unit == DIFF_PER_REQUEST)
			text_printf(out, ", %.0f requests", side ? diff->after_units : diff->before_units);
		text_add_string(out, "\n");
	}
	text_add_string(out, "\n");
	if (diff->class_changed)
		text_printf(out, "The verdict changed from %s to %s.\n", verdict_label(view->before.analysis->verdict.class_), verdict_label(view->after.analysis->verdict.class_));
	if (changed)
		text_printf(out, "%zu %s slower and %zu faster, per %s%s, beyond the noise.\n", worse, worse == 1 ? "thing is" : "things are", changed - worse, per(diff), *diff->request ? " by scope" : "");
	else
		text_add_string(out, "Nothing changed beyond the noise.\n");
}

static int write_words(const struct diff_view *view, bool markdown, struct sink *sink, struct error *err)
{
	struct text out;
	bool failed;

	text_init(&out);
	add_head(&out, view, markdown);
	for (int kind = 0; kind < DIFF_KINDS; kind++)
		add_rows(&out, view->diff, (enum diff_kind)kind, markdown);
	add_findings(&out, "Findings that appeared", view->diff->appeared, view->diff->appeared_count, markdown);
	add_findings(&out, "Findings that vanished", view->diff->vanished, view->diff->vanished_count, markdown);
	failed = out.failed;
	sink_write(sink, text_string(&out), out.length);
	text_done(&out);
	return failed ? fail(err, ERR_MEMORY, "writing the differences") : 0;
}

static int write_text_diff(const struct diff_view *view, struct sink *sink, struct error *err)
{
	return write_words(view, false, sink, err);
}

static int write_md_diff(const struct diff_view *view, struct sink *sink, struct error *err)
{
	return write_words(view, true, sink, err);
}

/* ---- JSON ---- */

static void put_side(struct json *json, cJSON *root, const char *key, const struct diff_side *side, double units)
{
	cJSON *object = put_object(json, root, key);

	put_string(json, object, "trace", side->name);
	put_u64(json, object, "duration_ns", side->timeline->duration_ns);
	put_string(json, object, "class", verdict_name(side->analysis->verdict.class_));
	put_known(json, object, "reason", side->analysis->verdict.reason);
	put_number(json, object, "confidence", side->analysis->verdict.confidence, 3);
	put_number(json, object, "units", units, 6);
}

static void put_rows(struct json *json, cJSON *root, const struct diff *diff)
{
	cJSON *rows = put_array(json, root, "rows");

	for (size_t i = 0; i < diff->row_count && i < JSON_ROWS_MAX && !json->failed; i++) {
		const struct diff_row *row = &diff->rows[i];
		cJSON *object = append_object(json, rows);

		put_string(json, object, "kind", diff_kind_name(row->kind));
		put_string(json, object, "name", row->name);
		put_known(json, object, "file", row->file);
		if (row->line)
			put_u64(json, object, "line", row->line);
		else
			put(json, object, "line", cJSON_CreateNull());
		put_number(json, object, "before_ns", row->before_ns, 3);
		put_number(json, object, "after_ns", row->after_ns, 3);
		put_number(json, object, "noise_ns", row->noise_ns, 3);
		put_bool(json, object, "changed", row->changed);
		put_bool(json, object, "worse", row->worse);
	}
}

static void put_findings(struct json *json, cJSON *root, const char *key, const struct finding_report *const *findings, size_t count)
{
	cJSON *array = put_array(json, root, key);

	for (size_t i = 0; i < count; i++) {
		cJSON *object = append_object(json, array);

		put_string(json, object, "id", findings[i]->id);
		put_string(json, object, "rule", findings[i]->rule);
		put_string(json, object, "severity", severity_name(findings[i]->severity));
		put_string(json, object, "title", findings[i]->title);
	}
}

static int write_json_diff(const struct diff_view *view, struct sink *sink, struct error *err)
{
	const struct diff *diff = view->diff;
	struct json json = { .failed = false };
	cJSON *root = cJSON_CreateObject();

	put_string(&json, root, "schema", "inferscope.diff/1");
	put_string(&json, root, "unit", per(diff));
	put_known(&json, root, "request", diff->request);
	put_side(&json, root, "before", &view->before, diff->before_units);
	put_side(&json, root, "after", &view->after, diff->after_units);
	put_bool(&json, root, "class_changed", diff->class_changed);
	put_rows(&json, root, diff);
	put_findings(&json, root, "appeared", diff->appeared, diff->appeared_count);
	put_findings(&json, root, "vanished", diff->vanished, diff->vanished_count);
	return document_write(&json, root, sink, err);
}

const struct diff_format *diff_format_find(const char *name)
{
	static const struct diff_format formats[] = { { "text", write_text_diff }, { "md", write_md_diff }, { "html", diff_write_html }, { "json", write_json_diff } };
	const struct report_format *report = report_format_find(name);

	for (size_t i = 0; report && i < sizeof formats / sizeof *formats; i++)
		if (strcmp(formats[i].name, report->name) == 0)
			return &formats[i];
	return NULL;
}
