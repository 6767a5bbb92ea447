/* Memory in the report for a terminal: collections of garbage, and what was allocated where. */
#include <math.h>

#include "report/terminal.h"

enum { TEXT_SITES = 10 };

static void add_collections(struct terminal *t, const struct report *report)
{
	if (!report->collection_count)
		return;
	terminal_heading(t, "Collections of garbage, which stop all Python code");
	terminal_paint(t, SGR_DIM, "     Time     Share    Count    Median  99 of 100   Longest     Freed  Which");
	terminal_newline(t);
	for (size_t i = 0; i < report->collection_count; i++) {
		const struct collection_row *row = &report->collections[i];

		terminal_right(t, SGR_BOLD, quantity_ns(row->time_ns, t->quantity).text, 9);
		terminal_right(t, 0, quantity_pct(row->pct, 0).text, 10);
		terminal_right(t, 0, quantity_short(row->count, t->quantity).text, 9);
		terminal_right(t, 0, quantity_of(row->p50_ns, "ns", t->quantity | QUANTITY_ABOUT).text, 10);
		terminal_right(t, 0, quantity_of(row->p99_ns, "ns", t->quantity | QUANTITY_ABOUT).text, 11);
		terminal_right(t, 0, quantity_ns(row->longest_ns, t->quantity).text, 10);
		terminal_right(t, 0, quantity_short(row->freed, t->quantity).text, 10);
		text_add_string(&t->text, "  ");
		text_add_string(&t->text, row->generation);
		terminal_newline(t);
	}
}

static void add_site(struct terminal *t, const struct site_row *row)
{
	const struct memory_site *site = row->site;
	const struct memory_place *place = site->frame_count ? &site->frames[0] : NULL;
	struct text where;

	text_init(&where);
	if (place)
		location_string(place->file, place->line, &where);
	terminal_right(t, SGR_BOLD, quantity_bytes(site->bytes, t->quantity | QUANTITY_ABOUT).text, 11);
	terminal_right(t, SGR_DIM, quantity_error(row->error_pct).text, 9);
	terminal_right(t, 0, quantity_short(site->count, t->quantity | QUANTITY_ABOUT).text, 9);
	terminal_right(t, 0, quantity_bytes(site->live_bytes, t->quantity | QUANTITY_ABOUT).text, 12);
	terminal_right(t, 0, quantity_of(site->lifetime_p50_ns ? (double)site->lifetime_p50_ns : NAN, "ns", t->quantity).text, 10);
	text_add_string(&t->text, "  ");
	terminal_name(t, 0, place ? place->name : "(no Python function)", 30, 0, false);
	if (site->native)
		text_add_string(&t->text, "  in native code");
	terminal_newline(t);
	if (where.length) {
		text_add_string(&t->text, "             ");
		terminal_name(t, SGR_DIM, where.data, t->width - 13, NAME_PATH, false);
		terminal_newline(t);
	}
	text_end(&where, &t->text);
}

static void add_sites(struct terminal *t, const struct report *report)
{
	if (!report->site_count)
		return;
	terminal_heading(t, "Memory: what was allocated, by samples");
	terminal_paint(t, SGR_DIM, "  Allocated     +/-    Count  Unreleased  Lifetime  Line");
	terminal_newline(t);
	for (size_t i = 0; i < report->site_count && i < TEXT_SITES; i++)
		add_site(t, &report->sites[i]);
	if (report->memory->site_count > TEXT_SITES)
		text_printf(&t->text, "  and %s more lines\n", quantity_count(report->memory->site_count - TEXT_SITES, 0).text);
}

void terminal_memory(struct terminal *t, const struct report *report)
{
	add_collections(t, report);
	add_sites(t, report);
}
