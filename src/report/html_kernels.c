/* What devices did, by name: kernels, and copies by where from and where to. */
#include "report/html.h"

enum { KERNELS_SHOWN = 50, NAME_SHOWN = 72 };

static void add_kernel(struct text *out, const struct kernel_row *row, double most_pct)
{
	text_add_string(out, "<tr><td class=\"fn\">");
	html_add_name(out, row->name, NAME_SHOWN);
	text_printf(out, "</td><td class=\"share\"><div class=\"bar gpu\"><i style=\"width:%s%%\"></i></div></td>", quantity_plain(most_pct > 0 ? 100 * row->pct / most_pct : 0, 2).text);
	html_add_number(out, row->pct, quantity_pct(row->pct, 0), true);
	html_add_number(out, (double)row->total_ns, quantity_ns(row->total_ns, 0), false);
	html_add_number(out, (double)row->count, quantity_count(row->count, 0), false);
	html_add_number(out, (double)row->total_ns / (double)row->count, quantity_ns(row->total_ns / row->count, 0), false);
	html_add_number(out, (double)row->longest_ns, quantity_ns(row->longest_ns, 0), false);
	text_add_string(out, "</tr>\n");
}

static void add_copies(struct text *out, const struct gpu_facts *gpu)
{
	if (!gpu->copies_count)
		return;
	text_add_string(out, "<h3 class=\"sub whole\">Copies</h3>");
	html_begin_table(out, "Copies", "<th scope=\"col\">From, to</th><th scope=\"col\" class=\"n\">Time</th><th scope=\"col\" class=\"n\">Copies</th><th scope=\"col\" class=\"n\">Bytes</th><th scope=\"col\" class=\"n\">GB/s</th>");
	for (size_t i = 0; i < gpu->copies_count; i++) {
		const struct gpu_copies *copies = &gpu->copies[i];
		double speed = copies->time_ns ? (double)copies->bytes / (double)copies->time_ns : 0;
		char name[COPIES_NAME];

		copies_name(copies, name);
		text_add_string(out, "<tr><td class=\"fn\">");
		html_add_name(out, name, NAME_SHOWN);
		text_add_string(out, "</td>");
		html_add_number(out, (double)copies->time_ns, quantity_ns(copies->time_ns, 0), true);
		html_add_number(out, (double)copies->count, quantity_count(copies->count, 0), false);
		html_add_number(out, (double)copies->bytes, quantity_bytes(copies->bytes, 0), false);
		html_add_number(out, speed, quantity_plain(speed, 2), false);
		text_add_string(out, "</tr>\n");
	}
	text_add_string(out, "</tbody></table></div>");
}

void html_add_kernels(struct text *out, const struct report *report, const struct kernels *kernels)
{
	size_t shown = kernels->count < KERNELS_SHOWN ? kernels->count : KERNELS_SHOWN;

	if (!kernels->count && !report->timeline->gpu.copies_count)
		return;
	text_printf(out, "<section id=\"kernels\"><h2>Kernels<small>%s name%s, most time first; times are sums, also of those that ran at once</small></h2>", quantity_count(kernels->count + kernels->omitted, 0).text,
		    kernels->count + kernels->omitted == 1 ? "" : "s");
	if (kernels->count) {
		html_begin_table(out, "Kernels", "<th scope=\"col\">Kernel</th><th scope=\"col\" class=\"share\">Share</th><th scope=\"col\" class=\"n\">Time %</th><th scope=\"col\" class=\"n\">Time</th><th scope=\"col\" class=\"n\">Runs</th>"
				 "<th scope=\"col\" class=\"n\">Mean</th><th scope=\"col\" class=\"n\">Longest</th>");
		for (size_t i = 0; i < shown; i++)
			add_kernel(out, &kernels->rows[i], kernels->rows[0].pct);
		text_add_string(out, "</tbody></table></div>");
	}
	if (kernels->count + kernels->omitted > shown)
		text_printf(out, "<p class=\"soft small whole\">And %s more, smaller ones: JSON and CSV have them.</p>", quantity_count(kernels->count + kernels->omitted - shown, 0).text);
	add_copies(out, &report->timeline->gpu);
	text_add_string(out, "</section>\n");
}
