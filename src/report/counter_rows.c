/* Rows of threads are what was counted of each; rows of functions what was gained between samples, so that they are estimates. */
#include "report/counter_rows.h"

#include <math.h>

const struct counter_column COUNTER_COLUMNS_OF[COUNTER_COLUMNS] = {
	{ "Switches", COUNTER_SWITCHES, THREAD_COUNTERS, 1 },
	{ "CPU moves", COUNTER_MIGRATIONS, THREAD_COUNTERS, 1 },
	{ "Page faults", COUNTER_MINOR_FAULTS, THREAD_COUNTERS, 1 },
	{ "From disk", COUNTER_MAJOR_FAULTS, THREAD_COUNTERS, 1 },
	{ "Cycles", COUNTER_CYCLES, THREAD_COUNTERS, 1 },
	{ "Instr./cycle", COUNTER_INSTRUCTIONS, COUNTER_CYCLES, 1 },
	{ "Misses/1000", COUNTER_CACHE_MISSES, COUNTER_INSTRUCTIONS, 1000 },
};

static bool knows(uint32_t known, const struct counter_column *column)
{
	return known >> column->which & 1 && (column->per == THREAD_COUNTERS || known >> column->per & 1);
}

bool counter_column_shown(const struct counter_table *table, const struct counter_column *column)
{
	return knows(table->known, column);
}

double counter_cell(const struct counter_row *row, const struct counter_column *column)
{
	double value = (double)row->counters[column->which] * column->scale;

	if (!knows(row->known, column))
		return NAN;
	if (column->per == THREAD_COUNTERS)
		return value;
	return row->counters[column->per] ? value / (double)row->counters[column->per] : NAN;
}

struct quantity counter_shown(const struct counter_row *row, const struct counter_column *column, unsigned flags)
{
	double value = counter_cell(row, column);

	if (isnan(value))
		return quantity_of(NAN, "count", flags);
	if (column->per != THREAD_COUNTERS)
		return quantity_plain(value, 2);
	return quantity_short((uint64_t)value, flags | (row->about >> column->which & 1 ? QUANTITY_ABOUT : 0));
}

static void add_thread(struct counter_table *table, const struct thread *thread)
{
	struct counter_row *row;

	if (!thread->counters_known || thread->ours)
		return;
	row = &table->rows[table->count++];
	row->name = thread->name;
	row->tid = thread->tid;
	row->known = thread->counters_known;
	row->about = thread->counters_scaled;
	memcpy(row->counters, thread->counters, sizeof row->counters);
	table->known |= row->known;
}

static void add_site(struct counter_table *table, const struct timeline *timeline, const struct counter_site *site)
{
	struct counter_row *row = &table->rows[table->count++];

	row->function = site->function < timeline->function_count ? &timeline->functions[site->function] : NULL;
	row->name = row->function ? row->function->name : "(stack not known)";
	row->known = row->about = timeline->counters_known & ~((1u << COUNTERS_SAMPLED) - 1);
	memcpy(row->counters + COUNTERS_SAMPLED, site->gained, sizeof site->gained);
	table->known |= row->known;
}

int counter_rows_build(struct report *report, struct error *err)
{
	const struct timeline *timeline = report->timeline;
	size_t sites = timeline->counter_site_count < COUNTER_FUNCTIONS_MAX ? timeline->counter_site_count : COUNTER_FUNCTIONS_MAX;
	struct counter_table *threads = &report->counted_threads, *functions = &report->counted_functions;

	threads->rows = arena_alloc(&report->arena, (timeline->thread_count + 1) * sizeof *threads->rows);
	functions->rows = arena_alloc(&report->arena, (sites + 1) * sizeof *functions->rows);
	if (!threads->rows || !functions->rows)
		return fail(err, ERR_MEMORY, "building the report");
	memset(threads->rows, 0, (timeline->thread_count + 1) * sizeof *threads->rows);
	memset(functions->rows, 0, (sites + 1) * sizeof *functions->rows);
	for (size_t i = 0; i < report->thread_count; i++)
		add_thread(threads, report->threads[i].thread);
	for (size_t i = 0; i < sites; i++)
		add_site(functions, timeline, &timeline->counter_sites[i]);
	return 0;
}
