/* The tables of counters, of threads and of functions, in Markdown, text and HTML. */
#include <math.h>

#include "report/counter_rows.h"
#include "report/html.h"
#include "report/md.h"
#include "report/terminal.h"

enum { MD_ROWS = 10, TEXT_ROWS = 10, HTML_ROWS = 60, NAME_SHOWN = 48, PLACE_SHOWN = 40, TEXT_NAME = 26, CELL_COLUMNS = 13 };

struct counter_part { const struct counter_table *table; const char *title, *first; };

static size_t parts_of(const struct report *report, struct counter_part out[2])
{
	size_t count = 0;

	if (report->counted_threads.count)
		out[count++] = (struct counter_part){ &report->counted_threads, "Counters of threads", "Thread" };
	if (report->counted_functions.count)
		out[count++] = (struct counter_part){ &report->counted_functions, "Counters by Python function, estimated from samples", "Function" };
	return count;
}

static size_t shown(const struct counter_table *table, size_t most)
{
	return table->count < most ? table->count : most;
}

/* ---- Markdown ---- */

/* At most five columns, as all tables there: some hold two. */
enum { MD_CELLS = 4, ALONE = COUNTER_COLUMNS };
static const struct { const char *title; unsigned first, second; } md_cells[MD_CELLS] = {
	{ "Switches, CPU moves", 0, 1 }, { "Page faults, from disk", 2, 3 }, { "Instr./cycle", 5, ALONE }, { "Misses/1000", 6, ALONE },
};

static bool md_shown(const struct counter_part *part, size_t cell)
{
	return counter_column_shown(part->table, &COUNTER_COLUMNS_OF[md_cells[cell].first]);
}

static void md_head(struct text *out, const struct counter_part *part)
{
	text_printf(out, "\n## %s\n\n| %s", part->title, part->first);
	for (size_t i = 0; i < MD_CELLS; i++)
		if (md_shown(part, i))
			text_printf(out, " | %s", md_cells[i].title);
	text_add_string(out, " |\n|---");
	for (size_t i = 0; i < MD_CELLS; i++)
		if (md_shown(part, i))
			text_add_string(out, "|---:");
	text_add_string(out, "|\n");
}

static void md_cell(struct text *out, const struct counter_row *row, size_t cell)
{
	text_printf(out, " | %s", counter_shown(row, &COUNTER_COLUMNS_OF[md_cells[cell].first], 0).text);
	if (md_cells[cell].second != ALONE)
		text_printf(out, ", %s", counter_shown(row, &COUNTER_COLUMNS_OF[md_cells[cell].second], 0).text);
}

static void md_part(struct text *out, const struct counter_part *part)
{
	md_head(out, part);
	for (size_t row = 0; row < shown(part->table, MD_ROWS); row++) {
		text_add_string(out, "| ");
		md_add_code(out, part->table->rows[row].name, MD_NAME, 0);
		for (size_t i = 0; i < MD_CELLS; i++)
			if (md_shown(part, i))
				md_cell(out, &part->table->rows[row], i);
		text_add_string(out, " |\n");
	}
	if (part->table->count > MD_ROWS)
		text_printf(out, "\nAnd %zu more.\n", part->table->count - MD_ROWS);
}

void md_add_counters(struct text *out, const struct report *report)
{
	struct counter_part parts[2];
	size_t count = parts_of(report, parts);

	for (size_t i = 0; i < count; i++)
		md_part(out, &parts[i]);
}

/* ---- text ---- */

/* One more column, where it is known and fits; those that do not are left out, the last ones first. */
static bool next_column(const struct terminal *t, const struct counter_table *table, size_t *used, const struct counter_column *column)
{
	if (!counter_column_shown(table, column) || *used + CELL_COLUMNS > t->width)
		return false;
	*used += CELL_COLUMNS;
	return true;
}

static void terminal_part(struct terminal *t, const struct counter_part *part)
{
	size_t used = TEXT_NAME;

	terminal_heading(t, part->title);
	text_add_string(&t->text, "  ");
	terminal_left(t, SGR_DIM, part->first, TEXT_NAME - 2);
	for (size_t i = 0; i < COUNTER_COLUMNS; i++)
		if (next_column(t, part->table, &used, &COUNTER_COLUMNS_OF[i]))
			terminal_right(t, SGR_DIM, COUNTER_COLUMNS_OF[i].title, CELL_COLUMNS);
	terminal_newline(t);
	for (size_t row = 0; row < shown(part->table, TEXT_ROWS); row++) {
		used = TEXT_NAME;
		text_add_string(&t->text, "  ");
		terminal_name(t, 0, part->table->rows[row].name, TEXT_NAME - 2, 0, true);
		for (size_t i = 0; i < COUNTER_COLUMNS; i++)
			if (next_column(t, part->table, &used, &COUNTER_COLUMNS_OF[i]))
				terminal_right(t, 0, counter_shown(&part->table->rows[row], &COUNTER_COLUMNS_OF[i], t->quantity).text, CELL_COLUMNS);
		terminal_newline(t);
	}
	if (part->table->count > TEXT_ROWS)
		text_printf(&t->text, "  and %zu more\n", part->table->count - TEXT_ROWS);
}

void terminal_counters(struct terminal *t, const struct report *report)
{
	struct counter_part parts[2];
	size_t count = parts_of(report, parts);

	for (size_t i = 0; i < count; i++)
		terminal_part(t, &parts[i]);
}

/* ---- HTML ---- */

static void html_row(struct text *out, const struct counter_table *table, const struct counter_row *row)
{
	text_add_string(out, "<tr><td class=\"fn\">");
	html_add_name(out, row->name, NAME_SHOWN);
	if (row->function)
		html_add_place(out, row->function->file, row->function->line, PLACE_SHOWN);
	text_add_string(out, "</td>");
	for (size_t i = 0; i < COUNTER_COLUMNS; i++)
		if (counter_column_shown(table, &COUNTER_COLUMNS_OF[i]))
			html_add_number(out, counter_cell(row, &COUNTER_COLUMNS_OF[i]), counter_shown(row, &COUNTER_COLUMNS_OF[i], 0), false);
	text_add_string(out, "</tr>\n");
}

static void html_part(struct text *out, const struct counter_part *part, const char *id)
{
	struct text heads;

	text_init(&heads);
	text_printf(&heads, "<th scope=\"col\">%s</th>", part->first);
	for (size_t i = 0; i < COUNTER_COLUMNS; i++)
		if (counter_column_shown(part->table, &COUNTER_COLUMNS_OF[i]))
			text_printf(&heads, "<th scope=\"col\" class=\"n\">%s</th>", COUNTER_COLUMNS_OF[i].title);
	text_printf(out, "<section id=\"%s\"><h2>%s</h2>", id, part->title);
	html_begin_table(out, part->title, text_string(&heads));
	for (size_t row = 0; row < shown(part->table, HTML_ROWS); row++)
		html_row(out, part->table, &part->table->rows[row]);
	html_end_table(out, part->table->count, HTML_ROWS);
	text_add_string(out, "</section>\n");
	text_end(&heads, out);
}

void html_add_counters(struct text *out, const struct report *report)
{
	struct counter_part parts[2];
	size_t count = parts_of(report, parts);

	for (size_t i = 0; i < count; i++)
		html_part(out, &parts[i], parts[i].table == &report->counted_threads ? "counters" : "counters-functions");
}
