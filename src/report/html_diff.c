/* The comparison of two captures as a page: what became slower (red) or faster (blue), each with both values as bars. */
#include <math.h>

#include "config.h"
#include "report/diff.h"
#include "report/html.h"

enum { ROWS_SHOWN = 500, NAME_SHOWN = 64 };

static const struct { const char *id, *title, *meaning; } KINDS[DIFF_KINDS] = {
	[DIFF_LATENCY] = { "latency", "Latencies", "how long requests took" },
	[DIFF_FUNCTION] = { "functions", "CPU time of functions", "of their own, without what they called" },
	[DIFF_KERNEL] = { "kernels", "Kernels", "time on the device" },
	[DIFF_IDLE] = { "idle", "Device idle", "by cause" },
};

static double known(double ns)
{
	return isfinite(ns) && ns > 0 ? ns : 0;
}

static void add_side(struct text *out, const struct diff *diff, const struct diff_side *side, bool after)
{
	const struct verdict *verdict = &side->analysis->verdict;

	text_printf(out, "<p><span>%s</span><b>%s <small>confidence %s</small></b><small><code>", after ? "After" : "Before", verdict_label(verdict->class_), quantity_confidence(verdict->confidence).text);
	html_add(out, side->name, 60, NAME_PATH);
	text_printf(out, "</code>, %s", quantity_ns(side->timeline->duration_ns, 0).text);
	if (diff->unit == DIFF_PER_REQUEST)
		text_printf(out, ", %s requests", quantity_count((uint64_t)(after ? diff->after_units : diff->before_units), 0).text);
	text_add_string(out, "</small></p>");
}

static void add_verdict(struct text *out, const struct diff_view *view)
{
	const struct diff *diff = view->diff;
	size_t changed = 0, worse = 0;

	for (size_t i = 0; i < diff->row_count; i++) {
		changed += diff->rows[i].changed;
		worse += diff->rows[i].worse;
	}
	text_printf(out, "<section class=\"verdict v-%s\" aria-label=\"Verdict\"><div><p class=\"eyebrow\">What changed</p><h1>", verdict_name(view->after.analysis->verdict.class_));
	if (!changed)
		text_add_string(out, "Nothing");
	else
		text_printf(out, "%zu slower, %zu faster", worse, changed - worse);
	text_printf(out, "</h1><p class=\"sentence\">%s per %s", changed ? "Beyond the noise," : "Nothing beyond the noise,", diff->unit == DIFF_PER_REQUEST ? "request" : "second");
	if (*diff->request) {
		text_add_string(out, ", counted by <code>");
		html_add(out, diff->request, NAME_SHOWN, 0);
		text_add_string(out, "</code>");
	}
	if (diff->class_changed)
		text_printf(out, ". The verdict changed from %s to %s", verdict_label(view->before.analysis->verdict.class_), verdict_label(view->after.analysis->verdict.class_));
	text_add_string(out, ".</p></div><div class=\"tiles\">");
	add_side(out, diff, &view->before, false);
	add_side(out, diff, &view->after, true);
	text_add_string(out, "</div></section>\n");
}

static void add_row(struct text *out, const struct diff_row *row, double most)
{
	double before = known(row->before_ns), after = known(row->after_ns), change = before > 0 && after > 0 ? 100 * (after - before) / before : NAN;
	const char *class_ = !row->changed ? "" : row->worse ? " worse" : " better";

	text_add_string(out, "<tr><td class=\"fn\">");
	html_add_name(out, row->name, NAME_SHOWN);
	html_add_place(out, row->file, row->line, NAME_SHOWN);
	text_printf(out, "</td><td class=\"share\"><div class=\"bar before\"><i style=\"width:%s%%\"></i></div><div class=\"bar after%s\"><i style=\"width:%s%%\"></i></div></td>", quantity_plain(100 * before / most, 2).text, class_, quantity_plain(100 * after / most, 2).text);
	html_add_number(out, row->before_ns, quantity_of(row->before_ns, "ns", 0), false);
	html_add_number(out, row->after_ns, quantity_of(row->after_ns, "ns", 0), false);
	text_printf(out, "<td class=\"n%s\" data-v=\"%s\"><b>%s%s</b></td>", class_, quantity_plain(after - before, 0).text, after >= before ? "+" : "−", quantity_ns((uint64_t)(fabs(after - before) + 0.5), 0).text);
	text_printf(out, "<td class=\"n%s\" data-v=\"%s\">", class_, quantity_plain(isfinite(change) ? change : after > 0 ? 1e9 : -100, 1).text);
	if (isfinite(change))
		text_printf(out, "%+.0f %%</td></tr>\n", change);
	else
		text_add_string(out, after > 0 ? "new</td></tr>\n" : "gone</td></tr>\n");
}

/* Changed rows, and of latencies all. */
static void add_kind(struct text *out, const struct diff *diff, enum diff_kind kind)
{
	size_t shown = 0, changed = 0;
	double most = 1;

	for (size_t i = 0; i < diff->row_count; i++) {
		const struct diff_row *row = &diff->rows[i];

		if (row->kind != kind || !(row->changed || kind == DIFF_LATENCY))
			continue;
		changed++;
		most = fmax(most, fmax(known(row->before_ns), known(row->after_ns)));
	}
	if (!changed)
		return;
	text_printf(out, "<section id=\"%s\"><h2>%s<small>%s%s</small></h2>", KINDS[kind].id, KINDS[kind].title, KINDS[kind].meaning, kind == DIFF_LATENCY ? "" : diff->unit == DIFF_PER_REQUEST ? ", per request" : ", per second");
	html_begin_table(out, KINDS[kind].title, "<th scope=\"col\">What</th><th scope=\"col\" class=\"share\">Before, after</th><th scope=\"col\" class=\"n\">Before</th><th scope=\"col\" class=\"n\">After</th><th scope=\"col\" class=\"n\">Change</th><th scope=\"col\" class=\"n\">%</th>");
	for (size_t i = 0; i < diff->row_count && shown < ROWS_SHOWN; i++)
		if (diff->rows[i].kind == kind && (diff->rows[i].changed || kind == DIFF_LATENCY)) {
			add_row(out, &diff->rows[i], most);
			shown++;
		}
	html_end_table(out, changed, shown);
	text_add_string(out, "</section>\n");
}

static void add_findings(struct text *out, const char *title, const struct finding_report *const *findings, size_t count)
{
	if (!count)
		return;
	text_printf(out, "<section><h2>%s</h2><ul class=\"places\">", title);
	for (size_t i = 0; i < count && i < ROWS_SHOWN; i++) {
		text_printf(out, "<li><span class=\"chip s-%s\">%s</span> ", severity_name(findings[i]->severity), severity_name(findings[i]->severity));
		html_add(out, findings[i]->title, 200, NAME_HEAD);
		text_add_string(out, " <span class=\"soft small\">");
		html_add(out, findings[i]->rule, 80, 0);
		text_add_string(out, "</span></li>");
	}
	text_add_string(out, "</ul></section>\n");
}

int diff_write_html(const struct diff_view *view, struct sink *sink, struct error *err)
{
	struct text out;
	bool failed;

	text_init(&out);
	html_begin(&out, "What changed, InferScope report");
	text_add_string(&out, "</span>\n<nav aria-label=\"Sections\"><a href=\"#flame\" class=\"js\">Flame graph</a>");
	for (int kind = 0; kind < DIFF_KINDS; kind++)
		for (size_t i = 0; i < view->diff->row_count; i++)
			if (view->diff->rows[i].kind == (enum diff_kind)kind && (view->diff->rows[i].changed || kind == DIFF_LATENCY)) {
				text_printf(&out, "<a href=\"#%s\">%s</a>", KINDS[kind].id, KINDS[kind].title);
				break;
			}
	text_add_string(&out, "</nav></div></header>\n<main>\n");
	add_verdict(&out, view);
	text_add_string(&out, "<section id=\"flame\" class=\"js\" aria-label=\"Flame graph\"></section>\n");
	for (int kind = 0; kind < DIFF_KINDS; kind++)
		add_kind(&out, view->diff, (enum diff_kind)kind);
	add_findings(&out, "Findings that appeared", view->diff->appeared, view->diff->appeared_count);
	add_findings(&out, "Findings that vanished", view->diff->vanished, view->diff->vanished_count);
	text_add_string(&out, "</main>\n<footer>Made by InferScope " PACKAGE_VERSION ". One file, no network.</footer>\n");
	sink_write(sink, text_string(&out), out.length);
	failed = out.failed;
	text_done(&out);
	if (failed)
		return fail(err, ERR_MEMORY, "writing the comparison");
	if (html_write_diff_tree(view, sink, err) < 0)
		return -1;
	sink_puts(sink, "<script>\n");
	sink_puts(sink, HTML_JS);
	sink_puts(sink, "</script>\n</body></html>\n");
	return 0;
}
