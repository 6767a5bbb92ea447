/*
 * The report as one self-contained page: no script, no network, readable without style. Sections in the order of questions: what is it, can
 * I trust it, what shall I do, where exactly. Flame graph and call tree are html_tree.c's.
 */
#include <math.h>
#include <string.h>

#include "config.h"
#include "report/html.h"
#include "report/html_style.h"

enum { HTML_FUNCTIONS = 50, HTML_FUNCTIONS_MAX = 2000, HTML_THREADS = 60, HTML_FINDINGS = 50, HTML_FUNCTIONS_FEW = 20, HTML_NAME = 64, HTML_PLACE = 40, HTML_TITLE = 400 };

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
	out->failed |= shown.failed;
	text_done(&shown);
}

void html_add_name(struct text *out, const char *name, size_t columns)
{
	bool cut = strlen(name) > columns;

	text_add_string(out, "<code");
	if (cut) {
		text_add_string(out, " title=\"");
		html_add(out, name, HTML_TITLE, 0);
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
			html_add(out, place.data, HTML_TITLE, 0);
			text_add_string(out, "\"");
		}
		text_add_string(out, ">");
		html_add(out, place.data, columns, NAME_PATH);
		text_add_string(out, "</span>");
	}
	text_done(&place);
}

static void add_column(struct text *out, const char *class_, enum term term)
{
	text_printf(out, "<th scope=\"col\"%s><abbr title=\"%s\">%s</abbr></th>", class_, TERMS[term].meaning, TERMS[term].word);
}

static void add_part_style(struct text *out)
{
	for (size_t part = 0; part < PART_COUNT; part++)
		text_printf(out, ".p-%s{background-color:%s}", PARTS[part].key, PARTS[part].colour);
}

static void add_head(struct text *out, const struct report *report)
{
	text_add_string(out, "<!DOCTYPE html><!-- InferScope report -->\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
			"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
			"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n<title>");
	html_add(out, report->class_label, 40, NAME_HEAD);
	text_printf(out, ": process %u, InferScope report</title>\n<style>", report->pid);
	text_add_string(out, HTML_STYLE);
	add_part_style(out);
	text_add_string(out, "</style></head>\n<body><a class=\"skip\" href=\"#findings\">Skip to findings</a>\n<header class=\"top\"><div><span class=\"brand\"><i aria-hidden=\"true\"><b></b><b></b><b></b></i>InferScope</span>\n<span class=\"soft small\">");
	text_printf(out, "pid %u", report->pid);
	if (*report->command) {
		text_add_string(out, " &nbsp;<code title=\"");
		html_add(out, report->command, HTML_TITLE, NAME_HEAD);
		text_add_string(out, "\">");
		html_add(out, report->command, 36, 0);
		text_add_string(out, "</code>");
	}
	text_add_string(out, "</span>\n<nav aria-label=\"Sections\"><a href=\"#findings\">Findings</a><a href=\"#functions\">Functions</a><a href=\"#threads\">Threads</a>");
	text_add_string(out, report->tree.count ? "<a href=\"#stacks\">Stacks</a>" : "");
	text_add_string(out, "<a href=\"#data\">Data quality</a><a href=\"#environment\">Environment</a><a href=\"#words\">Glossary</a></nav></div></header>\n<main>\n");
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
	text_printf(out, "<p><span>Captured</span><b>%s <small>hooks on %s</small></b></p>", quantity_ns(report->timeline->duration_ns, 0).text, quantity_pct(report->coverage_pct, 0).text);
	if (isnan(report->cpu_cores))
		text_printf(out, "<p><span>Calls seen</span><b>%s</b></p>", quantity_short(report->calls, 0).text);
	else
		text_printf(out, "<p><span>CPU used</span><b>%s <small>cores on average</small></b></p>", quantity_plain(report->cpu_cores, 2).text);
	text_printf(out, "<p><span>Overhead caused</span><b>%s", quantity_pct(report->overhead_pct, 0).text);
	if (!isnan(report->hold_max_ns))
		text_printf(out, " <small>held %s</small>", quantity_of(report->hold_max_ns, "ns", 0).text);
	text_add_string(out, "</b></p></div></section>\n");
}

/* A bar of all parts; its label says the same to those who cannot see it. */
static void add_stack(struct text *out, const double pct[PART_COUNT], bool thin)
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
		text_add_string(out, "<p class=\"soft\">Not known: no thread was seen long enough.</p></section>\n");
		return;
	}
	add_stack(out, report->parts, false);
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

static void add_evidence(struct text *out, const struct finding_report *finding)
{
	if (!finding->evidence_count)
		return;
	text_add_string(out, "<div><h4>Evidence</h4><table><tbody>");
	for (size_t i = 0; i < finding->evidence_count && i < 8; i++) {
		const struct evidence *evidence = &finding->evidence[i];

		text_add_string(out, "<tr><td>");
		html_add(out, evidence->metric, 60, 0);
		text_printf(out, "</td><td class=\"n\"><b>%s</b></td><td class=\"n soft\">", quantity_of(evidence->value, evidence->unit, 0).text);
		if (*evidence->op && isfinite(evidence->threshold)) {
			html_add(out, evidence->op, 4, NAME_HEAD);
			text_printf(out, " %s", quantity_of(evidence->threshold, evidence->unit, 0).text);
		}
		text_add_string(out, "</td></tr>");
	}
	text_add_string(out, "</tbody></table></div>");
}

static void add_finding(struct text *out, const struct finding_report *finding, bool open)
{
	const char *severity = severity_name(finding->severity);

	text_printf(out, "<details class=\"finding\"%s><summary><span class=\"chip s-%s\">%s</span><strong class=\"title\">", open ? " open" : "", severity, severity);
	html_add(out, finding->title, 200, NAME_HEAD);
	text_add_string(out, "</strong><span class=\"win\">");
	if (finding->recoverable_ns)
		text_printf(out, "<b>%s</b><small>%s recoverable</small>", quantity_pct(finding->recoverable_pct, QUANTITY_ABOUT).text, quantity_ns(finding->recoverable_ns, QUANTITY_ABOUT).text);
	text_add_string(out, "</span></summary><div class=\"body\">");
	if (finding->location_count) {
		text_add_string(out, "<div><h4>Where</h4><ul class=\"places\">");
		for (size_t i = 0; i < finding->location_count && i < 5; i++) {
			text_add_string(out, "<li class=\"fn\">");
			html_add_name(out, finding->locations[i].function, HTML_NAME);
			html_add_place(out, finding->locations[i].file, finding->locations[i].line, HTML_NAME);
			text_add_string(out, "</li>");
		}
		text_add_string(out, "</ul></div>");
	}
	add_evidence(out, finding);
	text_add_string(out, "<div class=\"do\"><h4>What to do</h4><p>");
	html_add(out, finding->suggestion, 1000, NAME_HEAD);
	text_add_string(out, "</p></div><p class=\"soft small\">Rule <code>");
	html_add(out, finding->rule, 80, 0);
	text_printf(out, "</code>, version %u, confidence %s</p></div></details>\n", finding->rule_version, quantity_confidence(finding->confidence).text);
}

static void add_findings(struct text *out, const struct report *report)
{
	const struct analysis *analysis = report->analysis;

	text_printf(out, "<section id=\"findings\"><h2>Findings<small>%zu, most severe first</small></h2>", analysis->finding_count);
	if (!analysis->finding_count)
		text_add_string(out, "<p class=\"soft\">None: no rule found anything above its threshold.</p>");
	for (size_t i = 0; i < analysis->finding_count && i < HTML_FINDINGS; i++)
		add_finding(out, &analysis->findings[i], i < 3);
	if (analysis->finding_count > HTML_FINDINGS)
		text_printf(out, "<p class=\"soft\">And %zu more in the JSON report.</p>", analysis->finding_count - HTML_FINDINGS);
	if (analysis->not_evaluated_count) {
		text_printf(out, "<details class=\"more\"><summary>%zu rule%s could not be evaluated</summary><table><tbody>", analysis->not_evaluated_count, analysis->not_evaluated_count == 1 ? "" : "s");
		for (size_t i = 0; i < analysis->not_evaluated_count && i < 200; i++) {
			text_add_string(out, "<tr><td><code>");
			html_add(out, analysis->not_evaluated[i].rule, 80, 0);
			text_add_string(out, "</code></td><td>");
			html_add(out, analysis->not_evaluated[i].reason, 300, NAME_HEAD);
			text_add_string(out, "</td></tr>");
		}
		text_add_string(out, "</tbody></table></details>");
	}
	text_add_string(out, "</section>\n");
}

static void add_function(struct text *out, const struct function_row *row, bool cpu)
{
	static const char *const kinds[] = { [FUNCTION_PYTHON] = "", [FUNCTION_C] = "C", [FUNCTION_NATIVE] = "native", [FUNCTION_UNKNOWN] = "unknown" };
	const struct function *function = row->function;
	const char *kind = (unsigned)function->kind < sizeof kinds / sizeof *kinds ? kinds[function->kind] : "";
	const char *precision = precision_name(function->precision);

	text_add_string(out, "<tr><td class=\"fn\">");
	html_add_name(out, function->name, HTML_NAME);
	if (*kind)
		text_printf(out, "<span class=\"kind\">%s</span>", kind);
	html_add_place(out, function->file, function->line, HTML_PLACE);
	text_printf(out, "</td><td class=\"share\"><div class=\"bar\"><i style=\"width:%s%%\"></i><i class=\"wait\" style=\"width:%s%%\"></i></div></td>", quantity_plain(row->bar_pct * row->cpu_pct / 100, 2).text,
		    quantity_plain(row->bar_pct * (100 - row->cpu_pct) / 100, 2).text);
	text_printf(out, "<td class=\"n\"><b>%s</b></td><td class=\"n\">%s</td>", row_share(row, cpu).text, quantity_ns(function->cpu_self_ns, QUANTITY_ABOUT).text);
	text_printf(out, "<td class=\"n\">%s</td>", row_self(row, 0).text);
	text_printf(out, "<td class=\"n\">%s</td>", row_ns(row, function->total_ns, 0).text);
	text_printf(out, "<td class=\"n\">%s</td>", row_calls(row, 0).text);
	text_printf(out, "<td class=\"n\">%s</td>", function->longest_ns ? quantity_ns(function->longest_ns, 0).text : "–");
	text_printf(out, "<td><span class=\"pr pr-%s\">%s</span>", precision, precision);
	if (function->precision == PRECISION_ESTIMATED)
		text_printf(out, "<br><span class=\"soft small nb\">seen %s</span>", quantity_pct(100 * function->coverage, 0).text);
	text_add_string(out, "</td></tr>\n");
}

static void add_words(struct text *out, const enum term *terms, size_t count)
{
	text_add_string(out, "<details class=\"more columns\"><summary>What the columns mean</summary><dl class=\"words\">");
	for (size_t i = 0; i < count; i++)
		text_printf(out, "<dt>%s</dt><dd>%s</dd>", TERMS[terms[i]].word, TERMS[terms[i]].meaning);
	text_add_string(out, "</dl></details>");
}

static void add_functions(struct text *out, const struct report *report)
{
	static const enum term columns[] = { TERM_CPU, TERM_SELF, TERM_TOTAL, TERM_CALLS, TERM_LONGEST, TERM_PRECISION };
	size_t top = report->options.top ? report->options.top : HTML_FUNCTIONS, shown = 0;

	if (top > HTML_FUNCTIONS_MAX)
		top = HTML_FUNCTIONS_MAX;
	text_printf(out, "<section id=\"functions\"><h2>Functions<small>%s seen, by %s time</small></h2>", quantity_count(report->timeline->function_count, 0).text, report->ranked_by_cpu ? "CPU" : "self");
	if (!report->function_count) {
		text_add_string(out, "<p class=\"soft\">None seen.</p></section>\n");
		return;
	}
	text_add_string(out, "<p class=\"keys\"><span><i class=\"key\" style=\"background:#0072b2\"></i>on a CPU</span><span><i class=\"key hatch\" style=\"background-color:#8fb8d4\"></i>waiting</span></p>"
			"<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Functions\"><table><thead><tr><th scope=\"col\">Function</th><th scope=\"col\" class=\"share\">Share of self time</th>");
	text_printf(out, "<th scope=\"col\" class=\"n\">%s %%</th>", report->ranked_by_cpu ? "CPU" : "Self");
	for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
		add_column(out, columns[i] == TERM_PRECISION ? "" : " class=\"n\"", columns[i]);
	text_add_string(out, "</tr></thead><tbody>\n");
	for (; shown < report->function_count && shown < top; shown++) {
		const struct function_row *row = report->ranked[shown];

		if (!report->options.top && shown >= HTML_FUNCTIONS_FEW && row->self_pct < 0.05 && row->cpu_share_pct < 0.05)
			break;
		add_function(out, row, report->ranked_by_cpu);
	}
	text_add_string(out, "</tbody></table></div>");
	if (report->timeline->function_count > shown)
		text_printf(out, "<p class=\"soft small\">And %s more, smaller ones: ask for them with --top, or take the JSON report.</p>", quantity_count(report->timeline->function_count - shown, 0).text);
	add_words(out, columns, sizeof columns / sizeof *columns);
	text_add_string(out, "</section>\n");
}

static void add_threads(struct text *out, const struct report *report)
{
	text_printf(out, "<section id=\"threads\"><h2>Threads<small>%zu, busiest first</small></h2>", report->thread_count);
	if (!report->thread_count) {
		text_add_string(out, "<p class=\"soft\">None seen.</p></section>\n");
		return;
	}
	text_add_string(out, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Threads\"><table><thead><tr><th scope=\"col\">Thread</th><th scope=\"col\" class=\"n\">CPU</th><th scope=\"col\" style=\"width:38%\">How it spent its time</th><th scope=\"col\">Mostly</th><th scope=\"col\" class=\"n\">Hooked</th></tr></thead><tbody>\n");
	for (size_t i = 0; i < report->thread_count && i < HTML_THREADS; i++) {
		const struct thread_row *row = &report->threads[i];

		text_add_string(out, "<tr><td class=\"fn\">");
		html_add_name(out, *row->thread->name ? row->thread->name : "thread", 40);
		text_printf(out, "<span class=\"at\">%u</span></td><td class=\"n\"><b>%s</b></td><td>", row->thread->tid, quantity_pct(row->cpu_pct, 0).text);
		add_stack(out, row->pct, true);
		text_printf(out, "</td><td class=\"nb\">%s <span class=\"soft\">%s</span></td><td class=\"n\">", PARTS[row->mostly].brief, quantity_pct(row->pct[row->mostly], 0).text);
		if (row->thread->unhooked) {
			text_add_string(out, "<span class=\"chip s-note\">not hooked</span><br><span class=\"soft small\">");
			html_add(out, row->thread->unhooked, 80, NAME_HEAD);
			text_add_string(out, "</span>");
		} else {
			text_printf(out, "%s", quantity_pct(row->covered_pct, 0).text);
		}
		text_add_string(out, "</td></tr>\n");
	}
	text_add_string(out, "</tbody></table></div>");
	if (report->thread_count > HTML_THREADS)
		text_printf(out, "<p class=\"soft small\">And %zu more.</p>", report->thread_count - HTML_THREADS);
	text_add_string(out, "<ul class=\"legend small\">");
	for (size_t part = 0; part < PART_COUNT; part++) {
		bool used = false;

		for (size_t i = 0; i < report->thread_count && i < HTML_THREADS; i++)
			used |= report->threads[i].pct[part] >= 0.05;
		if (used)
			text_printf(out, "<li><span class=\"key p-%s %s\"></span>%s</li>", PARTS[part].key, PARTS[part].pattern, PARTS[part].label);
	}
	text_add_string(out, "</ul></section>\n");
}

static void add_gil(struct text *out, const struct report *report)
{
	struct text name;

	if (!report->gil_count)
		return;
	text_init(&name);
	text_add_string(out, "<section id=\"gil\"><h2>Waiting for the GIL<small>who waited, who held it</small></h2><div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Waiting for the GIL\"><table><thead><tr>"
			"<th scope=\"col\">Waiter</th><th scope=\"col\">Holder</th><th scope=\"col\" class=\"n\">Waited</th><th scope=\"col\" class=\"n\">Of its time</th></tr></thead><tbody>\n");
	for (size_t i = 0; i < report->gil_count; i++) {
		const struct gil_row *row = &report->gil[i];

		gil_thread(row->waiter, &name);
		text_add_string(out, "<tr><td>");
		html_add_name(out, name.data ? name.data : "", 60);
		gil_thread(row->holder, &name);
		text_add_string(out, "</td><td>");
		html_add_name(out, name.data ? name.data : "", 60);
		text_printf(out, "</td><td class=\"n\"><b>%s</b></td><td class=\"n\">%s</td></tr>\n", quantity_ns(row->wait_ns, QUANTITY_ABOUT).text, quantity_pct(row->pct, QUANTITY_ABOUT).text);
	}
	text_add_string(out, "</tbody></table></div></section>\n");
	text_done(&name);
}

static void add_row(struct text *out, const char *key, const char *value)
{
	text_add_string(out, "<tr><td>");
	html_add(out, key, 60, 0);
	text_add_string(out, "</td><td><code>");
	html_add(out, value, 500, NAME_HEAD);
	text_add_string(out, "</code></td></tr>");
}

static void add_environment(struct text *out, const struct report *report)
{
	const struct timeline *timeline = report->timeline;

	text_add_string(out, "<section id=\"environment\"><h2>Environment</h2><div class=\"scroll\"><table><tbody>");
	for (size_t i = 0; i < timeline->process_count && i < 20; i++) {
		const struct process *process = &timeline->processes[i];
		struct text line;

		text_init(&line);
		text_printf(&line, "%u", process->pid);
		add_row(out, "process", line.data ? line.data : "");
		add_row(out, "command", process->command ? process->command : "");
		add_row(out, "executable", process->executable ? process->executable : "");
		text_clear(&line);
		text_printf(&line, "%s user, %s system", quantity_ns(process->user_ns, 0).text, quantity_ns(process->system_ns, 0).text);
		add_row(out, "CPU time", line.data ? line.data : "");
		text_clear(&line);
		text_printf(&line, "%s, at most %s", quantity_bytes(process->rss_last_bytes, 0).text, quantity_bytes(process->rss_max_bytes, 0).text);
		add_row(out, "memory", line.data ? line.data : "");
		text_done(&line);
	}
	if (*report->started)
		add_row(out, "captured from", report->started);
	for (size_t i = 0; i < timeline->capture_count && i < 100; i++)
		add_row(out, timeline->captures[i].key, timeline->captures[i].value);
	text_add_string(out, "</tbody></table></div>");
	if (report->analysis->metric_count) {
		text_printf(out, "<details class=\"more\"><summary>All %zu metrics</summary><div class=\"scroll\"><table><tbody>", report->analysis->metric_count);
		for (size_t i = 0; i < report->analysis->metric_count && i < 500; i++) {
			const struct metric *metric = &report->analysis->metrics[i];

			text_add_string(out, "<tr><td><code>");
			html_add(out, metric->name, 80, 0);
			text_printf(out, "</code></td><td class=\"n\">%s</td><td class=\"soft\">", quantity_of(metric->value, metric->unit, 0).text);
			if (!isfinite(metric->value) && metric->why)
				html_add(out, metric->why, 200, NAME_HEAD);
			text_add_string(out, "</td></tr>");
		}
		text_add_string(out, "</tbody></table></div></details>");
	}
	if (timeline->counter_count) {
		text_printf(out, "<details class=\"more\"><summary>All %zu counters</summary><div class=\"scroll\"><table><tbody>", timeline->counter_count);
		for (size_t i = 0; i < timeline->counter_count && i < 500; i++) {
			text_add_string(out, "<tr><td><code>");
			html_add(out, timeline->counters[i].name, 80, 0);
			text_printf(out, "</code></td><td class=\"n\">%lld</td></tr>", (long long)timeline->counters[i].last);
		}
		text_add_string(out, "</tbody></table></div></details>");
	}
	text_add_string(out, "<h3 class=\"sub\">Measure again</h3><code class=\"again\">");
	html_add(out, report->reproduce, 1000, NAME_HEAD);
	text_add_string(out, "</code></section>\n");
}

static void add_glossary(struct text *out)
{
	text_add_string(out, "<section id=\"words\"><h2>Glossary</h2><dl class=\"words\">");
	for (size_t i = 0; i < TERM_COUNT; i++)
		text_printf(out, "<dt>%s</dt><dd>%s</dd>", TERMS[i].word, TERMS[i].meaning);
	for (size_t i = 0; i < PART_COUNT; i++)
		text_printf(out, "<dt>%s</dt><dd>%s</dd>", PARTS[i].label, PARTS[i].meaning);
	text_add_string(out, "</dl></section>\n");
}

int write_html(const struct report *report, struct sink *sink, struct error *err)
{
	struct text out;
	int result = 0;

	text_init(&out);
	add_head(&out, report);
	add_verdict(&out, report);
	add_parts(&out, report);
	add_quality(&out, report);
	add_findings(&out, report);
	add_functions(&out, report);
	add_threads(&out, report);
	add_gil(&out, report);
	html_add_stacks(&out, report);
	add_environment(&out, report);
	add_glossary(&out);
	text_add_string(&out, "</main>\n<footer>Made by InferScope " PACKAGE_VERSION ". One file, no network, no script: the same trace gives the same page.</footer>\n</body></html>\n");
	if (out.failed)
		result = fail(err, ERR_MEMORY, "writing the report");
	else
		sink_write(sink, out.data, out.length);
	text_done(&out);
	return result;
}
