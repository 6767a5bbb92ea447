/* The section of findings: one card each, those of weight open, with evidence, places and their source, moments of the time line, and advice. */
#include <math.h>
#include <string.h>

#include "report/html.h"

enum { FINDINGS_MAX = SOURCE_FINDINGS, FINDINGS_OPEN = 3, FINDING_NAME = 64, EXAMPLES_SHOWN = 5 };

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

/* The first lines of the function, each with its number. */
static void add_source(struct text *out, const struct source *source)
{
	struct text line;

	if (!source)
		return;
	text_init(&line);
	text_add_string(out, "<pre class=\"source\" tabindex=\"0\">");
	for (size_t i = 0; i < source->count; i++) {
		text_clear(&line);
		name_add(&line, source->lines[i], SOURCE_COLUMNS, NAME_HEAD);
		text_printf(out, "<span><b>%zu</b>", source->first + i);
		text_add_html(out, text_string(&line), line.length);
		text_add_string(out, "\n</span>");
	}
	text_add_string(out, "</pre>");
	text_end(&line, out);
}

/* What the page's script knows it by: its number among the functions. */
static void add_function_number(struct text *out, const struct timeline *timeline, const struct location *location)
{
	for (size_t i = 0; i < timeline->function_count && i < FUNCTIONS_MAX; i++) {
		const struct function *function = &timeline->functions[i];

		if (function->line == location->line && strcmp(function->name, location->function) == 0 && strcmp(function->file, location->file) == 0) {
			text_printf(out, " data-f=\"%zu\"", i);
			return;
		}
	}
}

static void add_places(struct text *out, const struct report *report, size_t index)
{
	const struct finding_report *finding = &report->analysis->findings[index];

	if (!finding->location_count)
		return;
	text_add_string(out, "<div class=\"where\"><h4>Where</h4><ul class=\"places\">");
	for (size_t i = 0; i < finding->location_count && i < SOURCE_PLACES; i++) {
		const struct location *location = &finding->locations[i];

		text_add_string(out, "<li class=\"fn\"");
		add_function_number(out, report->timeline, location);
		text_add_string(out, ">");
		html_add_name(out, location->function, FINDING_NAME);
		html_add_place(out, location->file, location->line, FINDING_NAME);
		add_source(out, report_source(report, index, i));
		text_add_string(out, "</li>");
	}
	text_add_string(out, "</ul></div>");
}

/* Moments that show it, each a link to its stretch of the time line. */
static void add_examples(struct text *out, const struct finding_report *finding)
{
	if (!finding->example_count)
		return;
	text_add_string(out, "<div class=\"moments\"><h4>Moments</h4><ul class=\"places\">");
	for (size_t i = 0; i < finding->example_count && i < EXAMPLES_SHOWN; i++) {
		const struct example *example = &finding->examples[i];

		text_add_string(out, "<li>");
		html_add_range(out, example->at_ns, example->duration_ns);
		text_printf(out, " at %s s, ", quantity_plain((double)example->at_ns / 1e9, 3).text);
		html_add_name(out, example->what, FINDING_NAME);
		text_add_string(out, "</li>");
	}
	text_add_string(out, "</ul></div>");
}

static void add_finding(struct text *out, const struct report *report, size_t index)
{
	const struct finding_report *finding = &report->analysis->findings[index];
	bool open = index < FINDINGS_OPEN;
	const char *severity = severity_name(finding->severity);

	text_printf(out, "<details class=\"finding\"%s><summary><span class=\"chip s-%s\">%s</span><strong class=\"title\">", open ? " open" : "", severity, severity);
	html_add(out, finding->title, 200, NAME_HEAD);
	text_add_string(out, "</strong><span class=\"win\">");
	if (finding->recoverable_ns)
		text_printf(out, "<b>%s</b><small>%s recoverable</small>", quantity_pct(finding->recoverable_pct, QUANTITY_ABOUT).text, quantity_ns(finding->recoverable_ns, QUANTITY_ABOUT).text);
	text_add_string(out, "</span></summary><div class=\"body\">");
	add_places(out, report, index);
	add_evidence(out, finding);
	add_examples(out, finding);
	text_add_string(out, "<div class=\"do\"><h4>What to do</h4><p>");
	html_add(out, finding->suggestion, 1000, NAME_HEAD);
	text_add_string(out, "</p></div><p class=\"soft small\">Rule <code>");
	html_add(out, finding->rule, 80, 0);
	text_printf(out, "</code>, version %u, confidence %s</p></div></details>\n", finding->rule_version, quantity_confidence(finding->confidence).text);
}

void html_add_findings(struct text *out, const struct report *report)
{
	const struct analysis *analysis = report->analysis;

	text_printf(out, "<section id=\"findings\"><h2>Findings<small>%zu, most severe first</small></h2>", analysis->finding_count);
	if (!analysis->finding_count)
		text_add_string(out, "<p class=\"soft\">None: no rule found anything above its threshold.</p>");
	for (size_t i = 0; i < analysis->finding_count && i < FINDINGS_MAX; i++)
		add_finding(out, report, i);
	if (analysis->finding_count > FINDINGS_MAX)
		text_printf(out, "<p class=\"soft\">And %zu more in the JSON report.</p>", analysis->finding_count - FINDINGS_MAX);
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
