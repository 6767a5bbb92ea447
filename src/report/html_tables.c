/* The tables: functions, threads, waits for the GIL. Cells carry the plain number (data-v) that the page sorts by. */
#include <math.h>
#include <string.h>

#include "report/html.h"

enum { FUNCTIONS_FEW = 20, FUNCTIONS_SHOWN = 50, FUNCTIONS_SHOWN_MAX = 2000, THREADS_SHOWN = 60, NAME_SHOWN = 64, PLACE_SHOWN = 40 };

static void add_column(struct text *out, const char *class_, enum term term)
{
	text_printf(out, "<th scope=\"col\"%s><abbr title=\"%s\">%s</abbr></th>", class_, TERMS[term].meaning, TERMS[term].word);
}

void html_add_number(struct text *out, double value, struct quantity shown, bool strong)
{
	text_printf(out, "<td class=\"n\" data-v=\"%s\">", isfinite(value) ? quantity_plain(value, 4).text : "-1");
	text_printf(out, strong ? "<b>%s</b></td>" : "%s</td>", shown.text);
}

void html_begin_table(struct text *out, const char *label, const char *heads)
{
	text_printf(out, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"%s\"><table><thead><tr>%s</tr></thead><tbody>\n", label, heads);
}

void html_end_table(struct text *out, size_t all, size_t shown)
{
	text_add_string(out, "</tbody></table></div>");
	if (all > shown)
		text_printf(out, "<p class=\"soft small\">And %zu more: JSON has them.</p>", all - shown);
}

static void add_function(struct text *out, const struct function_row *row, bool cpu)
{
	static const char *const kinds[] = { [FUNCTION_PYTHON] = "", [FUNCTION_C] = "C", [FUNCTION_NATIVE] = "native", [FUNCTION_UNKNOWN] = "unknown" };
	const struct function *function = row->function;
	const char *kind = (unsigned)function->kind < sizeof kinds / sizeof *kinds ? kinds[function->kind] : "";
	const char *precision = precision_name(function->precision);

	text_add_string(out, "<tr><td class=\"fn\">");
	html_add_name(out, function->name, NAME_SHOWN);
	if (*kind)
		text_printf(out, "<span class=\"kind\">%s</span>", kind);
	html_add_place(out, function->file, function->line, PLACE_SHOWN);
	text_printf(out, "</td><td class=\"share\"><div class=\"bar\"><i style=\"width:%s%%\"></i><i class=\"wait\" style=\"width:%s%%\"></i></div></td>", quantity_plain(row->bar_pct * row->cpu_pct / 100, 2).text,
		    quantity_plain(row->bar_pct * (100 - row->cpu_pct) / 100, 2).text);
	html_add_number(out, cpu ? row->cpu_share_pct : row->self_pct, row_share(row, cpu), true);
	html_add_number(out, (double)function->cpu_self_ns, quantity_ns(function->cpu_self_ns, QUANTITY_ABOUT), false);
	html_add_number(out, (double)function->self_ns, row_self(row, 0), false);
	html_add_number(out, (double)function->total_ns, row_ns(row, function->total_ns, 0), false);
	html_add_number(out, row->calls_known ? (double)function->calls : NAN, row_calls(row, 0), false);
	html_add_number(out, function->longest_ns ? (double)function->longest_ns : NAN, quantity_of(function->longest_ns ? (double)function->longest_ns : NAN, "ns", 0), false);
	text_printf(out, "<td><span class=\"pr pr-%s\">%s</span>", precision, precision);
	if (function->precision == PRECISION_ESTIMATED)
		text_printf(out, "<br><span class=\"soft small nb\">seen %s</span>", quantity_pct(100 * function->coverage, 0).text);
	if (isfinite(row->self_error_pct))
		text_printf(out, "<br><span class=\"soft small nb\">self ±%s</span>", quantity_error(row->self_error_pct).text);
	text_add_string(out, "</td></tr>\n");
}

static void add_words(struct text *out, const enum term *terms, size_t count)
{
	text_add_string(out, "<details class=\"more columns\"><summary>What the columns mean</summary><dl class=\"words\">");
	for (size_t i = 0; i < count; i++)
		text_printf(out, "<dt>%s</dt><dd>%s</dd>", TERMS[terms[i]].word, TERMS[terms[i]].meaning);
	text_add_string(out, "</dl></details>");
}

void html_add_functions(struct text *out, const struct report *report)
{
	static const enum term columns[] = { TERM_CPU, TERM_SELF, TERM_TOTAL, TERM_CALLS, TERM_LONGEST, TERM_PRECISION };
	size_t top = report->options.top ? report->options.top : FUNCTIONS_SHOWN, shown = 0;

	if (top > FUNCTIONS_SHOWN_MAX)
		top = FUNCTIONS_SHOWN_MAX;
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

		if (!report->options.top && shown >= FUNCTIONS_FEW && row->self_pct < 0.05 && row->cpu_share_pct < 0.05)
			break;
		add_function(out, row, report->ranked_by_cpu);
	}
	text_add_string(out, "</tbody></table></div>");
	if (report->timeline->function_count > shown)
		text_printf(out, "<p class=\"soft small whole\">And %s more, smaller ones: ask for them with --top, or take the JSON report.</p>", quantity_count(report->timeline->function_count - shown, 0).text);
	add_words(out, columns, sizeof columns / sizeof *columns);
	text_add_string(out, "</section>\n");
}

void html_add_threads(struct text *out, const struct report *report)
{
	text_printf(out, "<section id=\"threads\"><h2>Threads<small>%zu, busiest first</small></h2>", report->thread_count);
	if (!report->thread_count) {
		text_add_string(out, "<p class=\"soft\">None seen.</p></section>\n");
		return;
	}
	text_add_string(out, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Threads\"><table><thead><tr><th scope=\"col\">Thread</th><th scope=\"col\" class=\"n\">CPU</th><th scope=\"col\" class=\"share\" style=\"width:38%\">How it spent its time</th><th scope=\"col\">Mostly</th><th scope=\"col\" class=\"n\">Hooked</th></tr></thead><tbody>\n");
	for (size_t i = 0; i < report->thread_count && i < THREADS_SHOWN; i++) {
		const struct thread_row *row = &report->threads[i];

		text_add_string(out, "<tr><td class=\"fn\">");
		html_add_name(out, *row->thread->name ? row->thread->name : "thread", 40);
		text_printf(out, "<span class=\"at\">%u</span></td>", row->thread->tid);
		html_add_number(out, row->cpu_pct, quantity_pct(row->cpu_pct, 0), true);
		text_add_string(out, "<td>");
		html_add_stack(out, row->pct, true);
		text_printf(out, "</td><td class=\"nb\">%s <span class=\"soft\">%s</span></td><td class=\"n\" data-v=\"%s\">", PARTS[row->mostly].brief, quantity_pct(row->pct[row->mostly], 0).text, quantity_plain(row->covered_pct, 4).text);
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
	if (report->thread_count > THREADS_SHOWN)
		text_printf(out, "<p class=\"soft small whole\">And %zu more.</p>", report->thread_count - THREADS_SHOWN);
	text_add_string(out, "<ul class=\"legend small\">");
	for (size_t part = 0; part < PART_COUNT; part++) {
		bool used = false;

		for (size_t i = 0; i < report->thread_count && i < THREADS_SHOWN; i++)
			used |= report->threads[i].pct[part] >= 0.05;
		if (used)
			text_printf(out, "<li><span class=\"key p-%s %s\"></span>%s</li>", PARTS[part].key, PARTS[part].pattern, PARTS[part].label);
	}
	text_add_string(out, "</ul></section>\n");
}

void html_add_gil(struct text *out, const struct report *report)
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
		html_add_name(out, text_string(&name), 60);
		gil_thread(row->holder, &name);
		text_add_string(out, "</td><td>");
		html_add_name(out, text_string(&name), 60);
		text_add_string(out, "</td>");
		html_add_number(out, (double)row->wait_ns, quantity_ns(row->wait_ns, QUANTITY_ABOUT), true);
		html_add_number(out, row->pct, quantity_pct(row->pct, QUANTITY_ABOUT), false);
		text_add_string(out, "</tr>\n");
	}
	text_add_string(out, "</tbody></table></div></section>\n");
	text_end(&name, out);
}

void html_add_collections(struct text *out, const struct report *report)
{
	if (!report->collection_count)
		return;
	text_add_string(out, "<section id=\"garbage\"><h2>Collections of garbage<small>they stop all Python code</small></h2>");
	html_begin_table(out, "Collections of garbage", "<th scope=\"col\">Which</th><th scope=\"col\" class=\"n\">Time</th><th scope=\"col\" class=\"n\">Share</th><th scope=\"col\" class=\"n\">Count</th>"
			 "<th scope=\"col\" class=\"n\">Median</th><th scope=\"col\" class=\"n\">99 of 100</th><th scope=\"col\" class=\"n\">Longest</th><th scope=\"col\" class=\"n\">Objects freed</th>");
	for (size_t i = 0; i < report->collection_count; i++) {
		const struct collection_row *row = &report->collections[i];

		text_printf(out, "<tr><td>%s</td>", row->generation);
		html_add_number(out, (double)row->time_ns, quantity_ns(row->time_ns, 0), true);
		html_add_number(out, row->pct, quantity_pct(row->pct, 0), false);
		html_add_number(out, (double)row->count, quantity_count(row->count, 0), false);
		html_add_number(out, row->p50_ns, quantity_of(row->p50_ns, "ns", QUANTITY_ABOUT), false);
		html_add_number(out, row->p99_ns, quantity_of(row->p99_ns, "ns", QUANTITY_ABOUT), false);
		html_add_number(out, (double)row->longest_ns, quantity_ns(row->longest_ns, 0), false);
		html_add_number(out, (double)row->freed, quantity_count(row->freed, 0), false);
		text_add_string(out, "</tr>\n");
	}
	text_add_string(out, "</tbody></table></div></section>\n");
}

static void add_site(struct text *out, const struct site_row *row)
{
	const struct memory_site *site = row->site;

	text_add_string(out, "<tr><td class=\"fn\">");
	html_add_name(out, site->frame_count ? site->frames[0].name : "(no Python function)", NAME_SHOWN);
	if (site->native)
		text_add_string(out, " <span class=\"soft\">in native code</span>");
	if (site->frame_count)
		html_add_place(out, site->frames[0].file, site->frames[0].line, PLACE_SHOWN);
	if (site->frame_count > 1) {
		text_add_string(out, "<details class=\"more\"><summary>called by</summary>");
		for (uint32_t i = 1; i < site->frame_count; i++) {
			html_add_name(out, site->frames[i].name, NAME_SHOWN);
			html_add_place(out, site->frames[i].file, site->frames[i].line, PLACE_SHOWN);
		}
		text_add_string(out, "</details>");
	}
	text_add_string(out, "</td>");
	html_add_number(out, (double)site->bytes, quantity_bytes(site->bytes, QUANTITY_ABOUT), true);
	html_add_number(out, row->error_pct, quantity_error(row->error_pct), false);
	html_add_number(out, (double)site->count, quantity_count(site->count, QUANTITY_ABOUT), false);
	html_add_number(out, (double)site->live_bytes, quantity_bytes(site->live_bytes, QUANTITY_ABOUT), false);
	html_add_number(out, site->lifetime_p50_ns ? (double)site->lifetime_p50_ns : NAN, quantity_of(site->lifetime_p50_ns ? (double)site->lifetime_p50_ns : NAN, "ns", 0), false);
	text_add_string(out, "</tr>\n");
}

void html_add_allocations(struct text *out, const struct report *report)
{
	enum { SITES_SHOWN = 50 };

	if (!report->site_count)
		return;
	text_printf(out, "<section id=\"memory\"><h2>Memory<small>what was allocated, by %s samples</small></h2>", quantity_count(report->memory->all.samples, 0).text);
	html_begin_table(out, "Memory", "<th scope=\"col\">Line</th><th scope=\"col\" class=\"n\">Allocated</th><th scope=\"col\" class=\"n\">±</th><th scope=\"col\" class=\"n\">Count</th>"
			 "<th scope=\"col\" class=\"n\">Not released</th><th scope=\"col\" class=\"n\">Lifetime</th>");
	for (size_t i = 0; i < report->site_count && i < SITES_SHOWN; i++)
		add_site(out, &report->sites[i]);
	text_add_string(out, "</tbody></table></div>");
	if (report->memory->site_count > SITES_SHOWN)
		text_printf(out, "<p class=\"soft small\">And %zu more lines.</p>", report->memory->site_count - SITES_SHOWN);
	text_add_string(out, "</section>\n");
}
