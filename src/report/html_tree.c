/* The section of stacks: flame graphs drawn as positioned boxes, and the call tree as nested <details>. Both from the model's rows. */
#include <string.h>

#include "report/html.h"

enum { FLAME_THREADS = 4, FLAME_ROW_PX = 19 };

/* Neighbours of the same file share a tint. */
static const char *flame_class(const struct tree_row *row)
{
	static const char *const tints[] = { "k0", "k1", "k2", "k3" };
	uint32_t hash = 2166136261u;

	if (row->thread)
		return "kt";
	if (!row->function || row->function->kind == FUNCTION_UNKNOWN)
		return "ku";
	if (row->function->kind != FUNCTION_PYTHON)
		return row->function->kind == FUNCTION_C ? "kc" : "kn";
	for (const char *at = row->function->file; *at; at++)
		hash = (hash ^ (unsigned char)*at) * 16777619u;
	return tints[hash % 4];
}

static const char *row_name(const struct tree_row *row)
{
	if (row->thread)
		return *row->thread->name ? row->thread->name : "thread";
	if (!row->function)
		return "(unknown)";
	return *row->function->name ? row->function->name : "(no name)";
}

/* Rows FIRST to the next thread's. */
static size_t thread_end(const struct report *report, size_t first)
{
	size_t at = first + 1;

	while (at < report->tree_count && report->tree[at].depth > 0)
		at++;
	return at;
}

static void add_flame(struct text *out, const struct report *report, size_t first, size_t end)
{
	uint32_t deepest = 0;

	for (size_t i = first; i < end; i++)
		if (report->tree[i].pct >= 0.25 && !report->tree[i].omitted && report->tree[i].depth > deepest)
			deepest = report->tree[i].depth;
	text_printf(out, "<div class=\"flame\" style=\"height:%upx\" role=\"img\" aria-label=\"Flame graph of thread %u; the call tree below says the same in words\">", (deepest + 1) * FLAME_ROW_PX, report->tree[first].thread->tid);
	for (size_t i = first; i < end; i++) {
		const struct tree_row *row = &report->tree[i];

		if (row->pct < 0.25 || row->omitted)
			continue;
		text_printf(out, "<span class=\"%s\" style=\"top:%upx;left:%s%%;width:%s%%\" title=\"", flame_class(row), row->depth * FLAME_ROW_PX, quantity_plain(row->left_pct, 2).text, quantity_plain(row->pct, 2).text);
		html_add(out, row_name(row), 120, 0);
		if (row->function && *row->function->file) {
			struct text place;

			text_init(&place);
			location_string(row->function->file, row->function->line, &place);
			text_add_string(out, " &#10;");
			html_add(out, place.data ? place.data : "", 120, NAME_PATH);
			text_done(&place);
		}
		text_printf(out, " &#10;%s, %s\">", quantity_ns(row->total_ns, 0).text, quantity_pct(row->pct, 0).text);
		if (row->pct >= 2)
			html_add(out, row_name(row), 60, 0);
		if (row->thread)
			text_printf(out, " %u, %s", row->thread->tid, quantity_ns(row->total_ns, 0).text);
		text_add_string(out, "</span>");
	}
	text_add_string(out, "</div>\n");
}

static void add_line(struct text *out, const struct tree_row *row)
{
	text_printf(out, "<b>%s</b><u>%s</u>", quantity_pct(row->pct, 0).text, quantity_ns(row->total_ns, 0).text);
	if (row->omitted) {
		text_printf(out, "<span class=\"soft\">%u more, smaller</span>", row->omitted);
		return;
	}
	html_add_name(out, row_name(row), 90);
	if (row->thread)
		text_printf(out, " <span class=\"at\">%u</span>", row->thread->tid);
	else if (row->function) {
		text_add_string(out, " ");
		html_add_place(out, row->function->file, row->function->line, 60);
	}
}

/* Rows come in the order of printing: a row closes what is as deep as it or deeper. */
static void add_tree(struct text *out, const struct report *report)
{
	uint32_t open = 0; /* <details> not closed yet: those of depth 0 … open - 1 */

	text_add_string(out, "<details class=\"more\" open><summary>Call tree</summary><div class=\"tree\">\n");
	for (size_t i = 0; i < report->tree_count; i++) {
		const struct tree_row *row = &report->tree[i];
		struct quantity width = quantity_plain(row->pct, 1);

		for (; open > row->depth; open--)
			text_add_string(out, "</details>\n");
		if (row->children) {
			text_printf(out, "<details%s><summary style=\"--w:%s%%\">", row->pct >= 20 && row->depth < 12 && i < 60 ? " open" : "", width.text);
			add_line(out, row);
			text_add_string(out, "</summary>\n");
			open++;
		} else {
			text_printf(out, "<div class=\"leaf\" style=\"--w:%s%%\">", width.text);
			add_line(out, row);
			text_add_string(out, "</div>\n");
		}
	}
	for (; open; open--)
		text_add_string(out, "</details>\n");
	text_add_string(out, "</div></details>");
}

void html_add_stacks(struct text *out, const struct report *report)
{
	size_t threads = 0;

	if (!report->tree_count)
		return;
	text_add_string(out, "<section id=\"stacks\"><h2>Stacks<small>as seen while hooks were on, by thread; wide is much time, below is called by above</small></h2>"
			"<p class=\"keys\"><span><i class=\"key\" style=\"background:#8ec5e8\"></i>Python, tinted by file</span><span><i class=\"key\" style=\"background:#f0b74a\"></i>C function called from Python</span><span><i class=\"key\" style=\"background:#7fd1b9\"></i>native</span></p>\n");
	for (size_t at = 0, end; at < report->tree_count && threads < FLAME_THREADS; at = end) {
		end = thread_end(report, at);
		if (report->tree[at].thread && end - at > 1) {
			add_flame(out, report, at, end);
			threads++;
		}
	}
	add_tree(out, report);
	if (report->tree_omitted)
		text_printf(out, "<p class=\"soft small\">%s smaller or deeper paths are not shown.</p>", quantity_count(report->tree_omitted, 0).text);
	text_add_string(out, "</section>\n");
}
