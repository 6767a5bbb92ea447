/* The table of system calls. */
#include "report/html.h"

#include <math.h>

enum { CALLS_SHOWN = 60, NAME_SHOWN = 48, PLACE_SHOWN = 40 };

static void add_syscall(struct text *out, const struct syscall_row *row)
{
	const struct syscall_summary *summary = row->summary;
	unsigned about = summary->sampled ? QUANTITY_ABOUT : 0;

	text_add_string(out, "<tr><td class=\"fn\">");
	html_add_name(out, summary->name, NAME_SHOWN);
	text_add_string(out, "</td>");
	html_add_number(out, summary->sampled ? NAN : (double)summary->count, syscall_calls(row, 0), false);
	html_add_number(out, (double)summary->time_ns, quantity_ns(summary->time_ns, about), true);
	html_add_number(out, (double)summary->p50_ns, quantity_ns(summary->p50_ns, QUANTITY_ABOUT), false);
	html_add_number(out, (double)summary->p95_ns, quantity_ns(summary->p95_ns, QUANTITY_ABOUT), false);
	html_add_number(out, (double)summary->longest_ns, quantity_ns(summary->longest_ns, about), false);
	html_add_number(out, summary->bytes ? (double)summary->bytes : NAN, quantity_of(summary->bytes ? (double)summary->bytes : NAN, "bytes", 0), false);
	text_add_string(out, "<td class=\"fn\">");
	if (row->caller) {
		html_add_name(out, row->caller->name, NAME_SHOWN);
		html_add_place(out, row->caller->file, row->caller->line, PLACE_SHOWN);
	}
	text_add_string(out, "</td></tr>\n");
}

void html_add_syscalls(struct text *out, const struct report *report)
{
	size_t shown = report->syscall_count < CALLS_SHOWN ? report->syscall_count : CALLS_SHOWN;

	if (!report->syscall_count)
		return;
	text_printf(out, "<section id=\"syscalls\"><h2>System calls<small>%s</small></h2>", report->syscalls[0].summary->sampled ? "estimated: those that threads were seen blocked in; --syscalls trace sees every one" : "every one");
	html_begin_table(out, "System calls", "<th scope=\"col\">Call</th><th scope=\"col\" class=\"n\">Calls</th><th scope=\"col\" class=\"n\">Total</th><th scope=\"col\" class=\"n\">p50</th>"
		"<th scope=\"col\" class=\"n\">p95</th><th scope=\"col\" class=\"n\">Longest</th><th scope=\"col\" class=\"n\">Moved</th><th scope=\"col\">Most from</th>");
	for (size_t i = 0; i < shown; i++)
		add_syscall(out, &report->syscalls[i]);
	html_end_table(out, report->syscall_count, shown);
	text_add_string(out, "</section>\n");
}
