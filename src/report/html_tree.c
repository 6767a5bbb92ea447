/* The section of stacks: flame graphs drawn as positioned boxes, and the call tree as nested <details>. Both from the model's rows. */
#include <string.h>

#include "report/html.h"

enum { FLAME_THREADS = 8, FLAME_ROW_PX = 19 };

/* Neighbours of the same file share a tint. */
static const char *flame_class(const struct tree_row *row)
{
	static const char *const tints[] = { "k0", "k1", "k2", "k3" };
	uint32_t hash = 2166136261u;

	if (row->depth == 0)
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
	if (row->depth == 0)
		return !row->thread ? "all threads" : *row->thread->name ? row->thread->name : "thread";
	if (!row->function)
		return "(unknown)";
	return *row->function->name ? row->function->name : "(no name)";
}

/* Rows FIRST to the next thread's. */
static size_t thread_end(const struct tree_rows *tree, size_t first)
{
	size_t at = first + 1;

	while (at < tree->count && tree->rows[at].depth > 0)
		at++;
	return at;
}

static void add_flame(struct text *out, const struct tree_row *rows, size_t count)
{
	uint32_t deepest = 0;

	for (size_t i = 0; i < count; i++)
		if (rows[i].pct >= 0.25 && !rows[i].omitted && rows[i].depth > deepest)
			deepest = rows[i].depth;
	text_printf(out, "<div class=\"flame\" style=\"height:%upx\" role=\"img\" aria-label=\"Flame graph; the call tree below says the same in words\">", (deepest + 1) * FLAME_ROW_PX);
	for (size_t i = 0; i < count; i++) {
		const struct tree_row *row = &rows[i];

		if (row->pct < 0.25 || row->omitted)
			continue;
		text_printf(out, "<span class=\"%s\" style=\"top:%upx;left:%s%%;width:%s%%\" title=\"", flame_class(row), row->depth * FLAME_ROW_PX, quantity_plain(row->left_pct, 2).text, quantity_plain(row->pct, 2).text);
		html_add(out, row_name(row), 120, 0);
		if (row->function && *row->function->file) {
			struct text place;

			text_init(&place);
			location_string(row->function->file, row->function->line, &place);
			text_add_string(out, " &#10;");
			html_add(out, text_string(&place), 120, NAME_PATH);
			text_end(&place, out);
		}
		text_printf(out, " &#10;%s, %s\">", quantity_ns(row->total_ns, 0).text, quantity_pct(row->pct, 0).text);
		if (row->pct >= 2)
			html_add(out, row_name(row), 60, 0);
		if (row->thread)
			text_printf(out, " %u", row->thread->tid);
		if (row->depth == 0)
			text_printf(out, ", %s", quantity_ns(row->total_ns, 0).text);
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
static void add_tree(struct text *out, const struct tree_rows *tree)
{
	uint32_t open = 0; /* <details> not closed yet: those of depth 0 … open - 1 */

	text_add_string(out, "<details class=\"more\" open><summary>Call tree</summary><div class=\"tree\">\n");
	for (size_t i = 0; i < tree->count; i++) {
		const struct tree_row *row = &tree->rows[i];
		struct quantity width = quantity_plain(row->pct, 1);

		for (; open > row->depth; open--)
			text_add_string(out, "</details>\n");
		if (row->children) {
			text_printf(out, "<details%s><summary style=\"--w:%s%%\">", row->pct >= 10 && row->depth < 16 && i < 60 ? " open" : "", width.text);
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

static void add_thread_flames(struct text *out, const struct tree_rows *trees)
{
	size_t threads = 0, all = 0;

	for (size_t at = 0; at < trees->count; at++)
		all += trees->rows[at].depth == 0;
	if (all < 2)
		return;
	text_printf(out, "<details class=\"more\"><summary>By thread%s</summary>\n", all > FLAME_THREADS ? ", the busiest" : "");
	for (size_t at = 0, end; at < trees->count && threads < FLAME_THREADS; at = end, threads++) {
		end = thread_end(trees, at);
		add_flame(out, trees->rows + at, end - at);
	}
	text_add_string(out, "</details>\n");
}

void html_add_stacks(struct text *out, const struct report *report)
{
	if (!report->tree.count)
		return;
	text_add_string(out, "<section id=\"stacks\"><h2>Stacks<small>as seen while hooks were on; wide is much time, below is called by above</small></h2>"
			"<p class=\"keys\"><span><i class=\"key\" style=\"background:#8ec5e8\"></i>Python, tinted by file</span><span><i class=\"key\" style=\"background:#f0b74a\"></i>C function called from Python</span><span><i class=\"key\" style=\"background:#7fd1b9\"></i>native</span></p>\n");
	add_flame(out, report->tree.rows, report->tree.count);
	add_thread_flames(out, &report->thread_trees);
	add_tree(out, &report->tree);
	if (report->tree.omitted)
		text_printf(out, "<p class=\"soft small\">%s smaller or deeper path%s not shown.</p>", quantity_count(report->tree.omitted, 0).text, report->tree.omitted == 1 ? " is" : "s are");
	text_add_string(out, "</section>\n");
}
