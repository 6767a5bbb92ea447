/* The device's part of the text report. */
#include <math.h>

#include "report/gpu_tables.h"
#include "report/terminal.h"

enum { ROWS_SHOWN = 15, DEVICES_SHOWN = 16 };

static void add_devices(struct terminal *t, const struct timeline *timeline)
{
	for (size_t i = 0; i < timeline->device_count && i < DEVICES_SHOWN; i++) {
		const struct device *device = &timeline->devices[i];
		double whole = timeline->duration_ns ? (double)timeline->duration_ns : NAN;
		struct text line;

		text_init(&line);
		text_printf(&line, "GPU %u", device->id);
		if (device->name[0])
			text_printf(&line, " (%s%s%s)", device->name, device->instance[0] ? ", MIG " : "", device->instance);
		text_printf(&line, ": busy %s%s", device->cut ? "at least " : "", quantity_pct(100 * (double)device->busy_ns / whole, 0).text);
		for (size_t cause = 0; cause < GPU_IDLE_CAUSES; cause++)
			if (device->idle_ns[cause])
				text_printf(&line, ", idle: %s %s", GPU_IDLE_LABELS[cause], quantity_pct(100 * (double)device->idle_ns[cause] / whole, 0).text);
		text_add_string(&t->text, "  ");
		terminal_wrap(t, 0, text_string(&line), 2, 3);
		text_end(&line, &t->text);
	}
}

void text_add_gpu(struct terminal *t, const struct report *report, const struct gpu_tables *tables)
{
	if (!report->timeline->device_count)
		return;
	terminal_heading(t, "Devices");
	add_devices(t, report->timeline);
	for (size_t kind = 0; kind < GPU_TABLES; kind++) {
		const struct gpu_table *table = &tables->of[kind];

		if (!table->count)
			continue;
		terminal_heading(t, GPU_TABLE_WORDS[kind].title);
		terminal_paint(t, SGR_DIM, " Time (%)     Total    Count       Avg       Med       Max  ");
		terminal_paint(t, SGR_DIM, GPU_TABLE_WORDS[kind].name);
		terminal_newline(t);
		for (size_t i = 0; i < table->count && i < ROWS_SHOWN; i++) {
			const struct gpu_row *row = &table->rows[i];

			terminal_right(t, SGR_BOLD, quantity_pct(row->pct, 0).text, 9);
			terminal_right(t, 0, quantity_ns(row->total_ns, t->quantity).text, 10);
			terminal_right(t, 0, quantity_short(row->count, t->quantity).text, 9);
			terminal_right(t, 0, quantity_ns((uint64_t)row->mean_ns, t->quantity).text, 10);
			terminal_right(t, 0, quantity_ns((uint64_t)row->median_ns, t->quantity | (row->median_about ? QUANTITY_ABOUT : 0)).text, 10);
			terminal_right(t, 0, quantity_ns(row->max_ns, t->quantity).text, 10);
			text_add_string(&t->text, "  ");
			terminal_name(t, 0, row->name, t->width - 60, 0, false);
			terminal_newline(t);
		}
		if (table->count + table->omitted > ROWS_SHOWN)
			text_printf(&t->text, "  and %s more\n", quantity_count(table->count + table->omitted - ROWS_SHOWN, 0).text);
	}
}
