/*
 * The report as one self-contained page, without network, that can be read and printed without script or style. Sections in the order of questions: what is
 * it, can I trust it, what shall I do, where exactly. The script (src/report/html/) adds time line and flame graph and makes tables sort.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "config.h"
#include "report/html.h"

enum { TITLE_COLUMNS = 400, STATIC_BYTES = 4 << 20, REPORT_MB = 25 };

void html_add(struct text *out, const char *bytes, size_t columns, unsigned flags)
{
	struct text shown;

	text_init(&shown);
	name_add(&shown, bytes, columns, flags);
	for (size_t at = 0, from = 0; at < shown.length; at++) {
		bool glue = at + 1 < shown.length && shown.data[at] == ' ' && shown.data[at + 1] == '%'; /* "12 %" stays together */

		if (glue || at + 1 == shown.length)
			text_add_html(out, shown.data + from, at + !glue - from);
		if (glue) {
			text_add_string(out, "&nbsp;");
			from = at + 1;
		}
	}
	text_end(&shown, out);
}

void html_add_name(struct text *out, const char *name, size_t columns)
{
	bool cut = strlen(name) > columns;

	text_add_string(out, "<code");
	if (cut) {
		text_add_string(out, " title=\"");
		html_add(out, name, TITLE_COLUMNS, 0);
		text_add_string(out, "\"");
	}
	text_add_string(out, ">");
	html_add(out, *name ? name : "(no name)", columns, 0);
	text_add_string(out, "</code>");
}

void html_add_place(struct text *out, const char *file, uint32_t line, size_t columns)
{
	struct text place;

	text_init(&place);
	location_string(file, line, &place);
	if (place.length) {
		text_add_string(out, "<span class=\"at\"");
		if (place.length > columns) {
			text_add_string(out, " title=\"");
			html_add(out, place.data, TITLE_COLUMNS, 0);
			text_add_string(out, "\"");
		}
		text_add_string(out, ">");
		html_add(out, place.data, columns, NAME_PATH);
		text_add_string(out, "</span>");
	}
	text_end(&place, out);
}

void html_add_range(struct text *out, uint64_t at_ns, uint64_t length_ns)
{
	double from = (double)at_ns / 1e9, length = (double)length_ns / 1e9, margin = length / 4;

	text_printf(out, "<a class=\"range\" href=\"#t=%s,%s&amp;v=%s,%s\">%s</a>", quantity_plain(from, 9).text, quantity_plain(from + length, 9).text,
		    quantity_plain(from > margin ? from - margin : 0, 9).text, quantity_plain(from + length + margin, 9).text, quantity_ns(length_ns, 0).text);
}

static void add_part_style(struct text *out)
{
	for (size_t part = 0; part < PART_COUNT; part++)
		text_printf(out, ".p-%s{background-color:%s}", PARTS[part].key, PARTS[part].colour);
}

void html_begin(struct text *out, const char *title)
{
	text_add_string(out, "<!DOCTYPE html><!-- InferScope report -->\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
			"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:\">\n"
			"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n<title>");
	html_add(out, title, 120, NAME_HEAD);
	text_add_string(out, "</title>\n<style>");
	text_add_string(out, HTML_CSS);
	add_part_style(out);
	text_add_string(out, "</style></head>\n<body><a class=\"skip\" href=\"#findings\">Skip to findings</a>\n<header class=\"top\"><div><span class=\"brand\"><i aria-hidden=\"true\"><b></b><b></b><b></b></i>InferScope</span>\n<span class=\"soft small\">");
}

static void add_head(struct text *out, const struct report *report)
{
	char title[120];

	snprintf(title, sizeof title, "%s: process %u, InferScope report", report->class_label, report->pid);
	html_begin(out, title);
	text_printf(out, "pid %u", report->pid);
	if (*report->command) {
		text_add_string(out, " &nbsp;<code title=\"");
		html_add(out, report->command, TITLE_COLUMNS, NAME_HEAD);
		text_add_string(out, "\">");
		html_add(out, report->command, 36, 0);
		text_add_string(out, "</code>");
	}
	text_add_string(out, "</span>\n<nav aria-label=\"Sections\"><a href=\"#findings\">Findings</a><a href=\"#timeline\" class=\"js\">Timeline</a><a href=\"#flame\" class=\"js\">Flame graph</a><a href=\"#functions\">Functions</a><a href=\"#threads\">Threads</a>");
	text_add_string(out, report->timeline->device_count ? "<a href=\"#idle\">GPU idle</a>" : "");
	text_add_string(out, report->timeline->gpu.events ? "<a href=\"#kernels\">Kernels</a>" : "");
	text_add_string(out, report->timeline->scope_count ? "<a href=\"#requests\">Requests</a>" : "");
	text_add_string(out, report->tree.count ? "<a href=\"#stacks\">Stacks</a>" : "");
	text_add_string(out, "<a href=\"#data\">Data</a><a href=\"#environment\">Environment</a><a href=\"#words\">Glossary</a></nav></div></header>\n<main>\n");
}

/* How busy devices were, and the two causes of idling that the program can do something about. */
static void add_gpu_tile(struct text *out, const struct report *report)
{
	const struct analysis *analysis = report->analysis;

	if (!report->timeline->device_count)
		return;
	text_printf(out, "<p class=\"wide\"><span>GPU busy</span><b>%s", quantity_pct(analysis_metric(analysis, "gpu.busy_pct"), 0).text);
	text_printf(out, " <small>idle while the host was late %s, ", quantity_pct(analysis_metric(analysis, "gpu.idle.host_late_pct"), 0).text);
	text_printf(out, "after waits %s</small></b></p>", quantity_pct(analysis_metric(analysis, "gpu.idle.sync_caused_pct"), 0).text);
}

static void add_verdict(struct text *out, const struct report *report)
{
	const struct verdict *verdict = &report->analysis->verdict;

	text_printf(out, "<section class=\"verdict v-%s\" aria-label=\"Verdict\"><div><p class=\"eyebrow\">Verdict", verdict_name(verdict->class_));
	if (*report->reason) {
		text_add_string(out, ": ");
		html_add(out, report->reason, 60, NAME_HEAD);
	}
	text_add_string(out, "</p><h1>");
	html_add(out, report->class_label, 60, NAME_HEAD);
	text_add_string(out, "</h1><p class=\"sentence\">");
	html_add(out, report->sentence, 600, NAME_HEAD);
	text_add_string(out, "</p>");
	if (verdict->gpu && *verdict->gpu) {
		text_add_string(out, "<p class=\"soft small\">No GPU data: ");
		html_add(out, verdict->gpu, 200, NAME_HEAD);
		text_add_string(out, "</p>");
	}
	text_printf(out, "</div>\n<div class=\"tiles\"><p><span>Confidence</span><b>%s<span class=\"meter\"><i style=\"width:%s%%\"></i></span></b></p>", quantity_confidence(verdict->confidence).text, quantity_plain(100 * verdict->confidence, 1).text);
	text_printf(out, "<p><span>Captured</span><b>%s", quantity_ns(report->timeline->duration_ns, 0).text);
	if (report->imported)
		text_add_string(out, " <small>imported</small></b></p>");
	else
		text_printf(out, " <small>hooks on %s</small></b></p>", quantity_pct(report->coverage_pct, 0).text);
	if (isnan(report->cpu_cores))
		text_printf(out, "<p><span>Calls seen</span><b>%s</b></p>", quantity_short(report->calls, 0).text);
	else
		text_printf(out, "<p><span>CPU used</span><b>%s <small>cores on average</small></b></p>", quantity_plain(report->cpu_cores, 2).text);
	text_printf(out, "<p><span>Overhead caused</span><b>%s", quantity_pct(report->overhead_pct, 0).text);
	if (!isnan(report->hold_max_ns))
		text_printf(out, " <small>held %s</small>", quantity_of(report->hold_max_ns, "ns", 0).text);
	text_add_string(out, "</b></p>");
	add_gpu_tile(out, report);
	text_add_string(out, "</div></section>\n");
}

/* A bar of all parts; its label says the same to those who cannot see it. */
void html_add_stack(struct text *out, const double pct[PART_COUNT], bool thin)
{
	bool first = true;

	text_printf(out, "<div class=\"stack%s\" role=\"img\" aria-label=\"", thin ? " thin" : "");
	for (size_t part = 0; part < PART_COUNT; part++) {
		if (pct[part] < 0.05)
			continue;
		text_printf(out, "%s%s %s", first ? "" : ", ", PARTS[part].label, quantity_pct(pct[part], 0).text);
		first = false;
	}
	text_add_string(out, first ? "not known\">" : "\">");
	for (size_t part = 0; part < PART_COUNT; part++) {
		if (pct[part] < 0.05)
			continue;
		text_printf(out, "<span class=\"p-%s %s\" style=\"width:%s%%\" title=\"%s %s\">", PARTS[part].key, PARTS[part].pattern, quantity_plain(pct[part], 2).text, PARTS[part].label, quantity_pct(pct[part], 0).text);
		if (!thin && pct[part] >= 9)
			text_add_string(out, PARTS[part].brief);
		text_add_string(out, "</span>");
	}
	text_add_string(out, "</div>");
}

static void add_parts(struct text *out, const struct report *report)
{
	text_add_string(out, "<section id=\"time\"><h2>Where the time went</h2>");
	if (!report->parts_known) {
		text_add_string(out, "<p class=\"soft\">Not known: the trace does not show what the threads did.</p></section>\n");
		return;
	}
	html_add_stack(out, report->parts, false);
	text_add_string(out, "<ul class=\"legend\">");
	for (size_t part = 0; part < PART_COUNT; part++)
		if (report->parts[part] >= 0.05)
			text_printf(out, "<li title=\"%s\"><span class=\"key p-%s %s\"></span>%s<b>%s</b></li>", PARTS[part].meaning, PARTS[part].key, PARTS[part].pattern, PARTS[part].label, quantity_pct(report->parts[part], 0).text);
	text_add_string(out, "</ul></section>\n");
}

static void add_quality(struct text *out, const struct report *report)
{
	static const char *const states[] = { [QUALITY_FINE] = "ok", [QUALITY_NOTE] = "note", [QUALITY_BAD] = "bad" };
	bool bad = report->quality_count && report->quality[0].state == QUALITY_BAD;

	text_printf(out, "<section id=\"data\"%s><h2>How good the data are</h2><ul class=\"facts\">", bad ? " class=\"q-bad\"" : "");
	for (size_t i = 0; i < report->warning_count && i < 16; i++) {
		text_add_string(out, "<li><span class=\"chip s-note\">note</span><div><strong>Warning</strong>: ");
		html_add(out, report->warnings[i], 400, NAME_HEAD);
		text_add_string(out, "</div></li>");
	}
	for (size_t i = 0; i < report->quality_count; i++) {
		const struct quality_row *row = &report->quality[i];

		text_printf(out, "<li><span class=\"chip s-%s\">%s</span><div><strong>%s</strong>: ", states[row->state], states[row->state], row->label);
		html_add(out, row->value, 120, NAME_HEAD);
		if (*row->meaning) {
			text_add_string(out, "<p>");
			html_add(out, row->meaning, 400, NAME_HEAD);
			text_add_string(out, "</p>");
		}
		text_add_string(out, "</div></li>");
	}
	text_add_string(out, "</ul></section>\n");
}

static void add_around(struct text *out, const struct report *report)
{
	if (!report->around_count)
		return;
	text_add_string(out, "<section id=\"around\"><h2>Around the process</h2><ul class=\"facts\">");
	for (size_t i = 0; i < report->around_count; i++) {
		text_printf(out, "<li><span></span><div><strong>%s</strong>: ", report->around[i].label);
		html_add(out, report->around[i].value, 600, NAME_HEAD);
		text_add_string(out, "</div></li>");
	}
	text_add_string(out, "</ul></section>\n");
}

/* Filled by the script; without one they do not show. */
static void add_views(struct text *out)
{
	text_add_string(out, "<section id=\"timeline\" class=\"js\" aria-label=\"Timeline\"></section>\n<section id=\"flame\" class=\"js\" aria-label=\"Flame graph\"></section>\n");
}

static void add_body(struct text *out, const struct report *report, const struct gpu_tables *tables)
{
	add_head(out, report);
	add_verdict(out, report);
	add_parts(out, report);
	add_quality(out, report);
	html_add_findings(out, report);
	add_views(out);
	html_add_idle(out, report);
	html_add_requests(out, report);
	html_add_functions(out, report);
	html_add_threads(out, report);
	html_add_gil(out, report);
	html_add_tasks(out, report);
	html_add_collections(out, report);
	html_add_allocations(out, report);
	html_add_sites(out, report);
	html_add_gpu_tables(out, report, tables);
	html_add_syscalls(out, report);
	html_add_counters(out, report);
	add_around(out, report);
	html_add_stacks(out, report);
	html_add_environment(out, report);
	html_add_glossary(out);
	text_add_string(out, "</main>\n<footer>Made by InferScope " PACKAGE_VERSION ". One file, no network: the same trace gives the same page.</footer>\n");
}

/* Slices go to the sink as they come, so that memory does not grow with them. */
static int write_data(const struct report *report, struct sink *sink, struct text *out, uint64_t room, struct error *err)
{
	struct slices_said said;
	struct slices *slices;
	struct pack pack;
	size_t nodes_left_out;

	if (!pack_begin(&pack, sink))
		return fail(err, ERR_MEMORY, "writing the report");
	sink_puts(sink, "<script type=\"application/octet-stream;inferscope-v1\" id=\"slices\">");
	nodes_left_out = html_pack_tree(report, &pack);
	slices = slices_write(report, &pack, pack.bytes + room / 4 * 3, &said, err);
	if (!pack_end(&pack) || !slices) {
		slices_free(slices);
		return slices ? fail(err, ERR_MEMORY, "writing the report") : -1;
	}
	text_clear(out);
	text_add_string(out, "</script>\n<script type=\"application/json\" id=\"model\">");
	html_add_model(out, report, &said, nodes_left_out);
	text_add_string(out, "</script>\n<script>\n");
	text_add_string(out, HTML_JS);
	text_add_string(out, "</script>\n</body></html>\n");
	slices_free(slices);
	return 0;
}

int write_html(const struct report *report, struct sink *sink, struct error *err)
{
	uint64_t room = (report->options.max_report_mb ? report->options.max_report_mb : REPORT_MB) * (uint64_t)1000000;
	struct gpu_tables tables;
	struct text out;
	int result;

	if (gpu_tables_read(report, &tables, err) < 0)
		return -1;
	text_init(&out);
	add_body(&out, report, &tables);
	gpu_tables_free(&tables);
	sink_write(sink, text_string(&out), out.length);
	room = room > STATIC_BYTES + out.length ? room - STATIC_BYTES - out.length : 0;
	result = write_data(report, sink, &out, room, err);
	if (!result && out.failed)
		result = fail(err, ERR_MEMORY, "writing the report");
	if (!result)
		sink_write(sink, out.data, out.length);
	text_done(&out);
	return result;
}
