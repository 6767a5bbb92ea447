/*
 * A table of distinct stacks, most time first: how often each was sampled and called, its own time, in how many threads. Frames from the outside in. What was not
 * counted is an empty cell; the last rows say why.
 */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "report/stack_paths.h"

/* One distinct stack. */
struct row { uint32_t number, threads; uint64_t samples, calls, self_ns, cpu_ns, instructions, memory_bytes; };

struct table {
	const struct timeline *timeline;
	struct sink *sink;
	struct strings *paths;
	struct row *rows;   /* by number */
	struct map threads; /* number << 32 | thread: has it that stack? */
	struct text line, stack, scratch;
	const char *no_instructions, *no_memory; /* why they are not told, NULL: they are */
	bool failed;
};

/* Cut stacks may be the same one several times in a thread. */
static bool is_new_thread(struct table *table, uint32_t number, uint32_t thread)
{
	uint64_t key = (uint64_t)number << 32 | thread;

	if (map_get(&table->threads, key) != MAP_ABSENT)
		return false;
	table->failed |= !map_put(&table->threads, key, 1);
	return true;
}

static void add_memory(void *context, uint32_t number, uint64_t live_bytes)
{
	struct table *table = context;

	table->rows[number].number = number;
	table->rows[number].memory_bytes += live_bytes;
}

static int collect(struct table *table, struct error *err)
{
	const struct timeline *timeline = table->timeline;

	for (size_t i = 1; i < timeline->node_count; i++) {
		const struct tree_node *node = &timeline->nodes[i];
		uint32_t number;
		struct row *row;

		if (!node->samples && !node->calls && !node->estimated_self_ns)
			continue;
		number = stack_path_add(table->paths, timeline, node);
		if (number == UINT32_MAX)
			return fail(err, ERR_MEMORY, "writing stacks");
		row = &table->rows[number];
		row->number = number;
		row->threads += is_new_thread(table, number, node->thread);
		row->samples += node->samples;
		row->calls += node->calls;
		row->self_ns += node->estimated_self_ns;
		row->cpu_ns += node->cpu_self_ns;
		row->instructions += node->instructions;
	}
	if (!table->no_memory && !stack_paths_add_memory(table->paths, timeline, add_memory, table))
		return fail(err, ERR_MEMORY, "writing stacks");
	return 0;
}

static int most_first(const void *left, const void *right)
{
	const struct row *a = left, *b = right;

	if (a->self_ns != b->self_ns)
		return a->self_ns < b->self_ns ? 1 : -1;
	if (a->samples != b->samples)
		return a->samples < b->samples ? 1 : -1;
	if (a->memory_bytes != b->memory_bytes)
		return a->memory_bytes < b->memory_bytes ? 1 : -1;
	return a->number < b->number ? -1 : a->number > b->number;
}

/* A semicolon would be another frame. */
static void add_part(struct text *stack, const struct text *part)
{
	for (size_t i = 0; i < part->length; i++)
		text_add(stack, part->data[i] == ';' ? ":" : part->data + i, 1);
}

static void add_frame(struct table *table, uint32_t function)
{
	struct text *stack = &table->stack;

	export_name(table->timeline, function, &table->scratch);
	add_part(stack, &table->scratch);
	export_file(table->timeline, function, &table->scratch);
	if (!table->scratch.length)
		return;
	text_add_string(stack, " (");
	add_part(stack, &table->scratch);
	if (table->timeline->functions[function].line)
		text_printf(stack, ":%u", table->timeline->functions[function].line);
	text_add_string(stack, ")");
}

static void add_row(struct table *table, const struct row *row)
{
	struct stack_path path;

	stack_path_get(table->paths, row->number, &path);
	text_clear(&table->stack);
	text_add_string(&table->stack, path.cut ? "(outer frames cut)" : "");
	for (uint32_t i = path.count; i-- > 0;) {
		text_add_string(&table->stack, table->stack.length ? ";" : "");
		add_frame(table, path.functions[i]);
	}
	text_clear(&table->line);
	text_printf(&table->line, "%llu,%llu,%llu,%llu,", (unsigned long long)row->samples, (unsigned long long)row->calls, (unsigned long long)row->self_ns, (unsigned long long)row->cpu_ns);
	if (!table->no_instructions)
		text_printf(&table->line, "%llu", (unsigned long long)row->instructions);
	text_add_string(&table->line, ",");
	if (!table->no_memory)
		text_printf(&table->line, "%llu", (unsigned long long)row->memory_bytes);
	text_printf(&table->line, ",%u,%u,%s", row->threads, path.count, path.cut ? "yes" : "no");
	export_cell(&table->line, text_string(&table->stack));
	text_add_string(&table->line, "\n");
	sink_write(table->sink, table->line.data, table->line.length);
}

static int write_rows(struct table *table, struct error *err)
{
	size_t count;

	if (collect(table, err) < 0)
		return -1;
	count = strings_count(table->paths);
	qsort(table->rows, count, sizeof *table->rows, most_first);
	sink_puts(table->sink, "Samples,Calls,Self Time (ns),CPU Time (ns),Instructions,Memory Delta (bytes),Threads,Frames,Cut,Stack\n");
	for (size_t i = 0; i < count && !sink_failed(table->sink) && !table->line.failed && !table->stack.failed && !table->scratch.failed; i++)
		if (table->rows[i].number)
			add_row(table, &table->rows[i]);
	if (table->no_instructions)
		sink_printf(table->sink, ",,,,,,,,,# Instructions: %s\n", table->no_instructions);
	if (table->no_memory)
		sink_printf(table->sink, ",,,,,,,,,# Memory Delta: %s\n", table->no_memory);
	return table->failed || table->line.failed || table->stack.failed || table->scratch.failed ? fail(err, ERR_MEMORY, "writing stacks") : 0;
}

int write_stacks(const struct report *report, struct sink *sink, struct error *err)
{
	struct table table = { .timeline = report->timeline, .sink = sink, .paths = strings_new(), .no_instructions = stacks_no_instructions(report->timeline), .no_memory = stacks_no_memory(report->timeline) };
	int result = -1;

	table.rows = calloc(report->timeline->node_count + timeline_memory(report->timeline)->path_count + 1, sizeof *table.rows);
	text_init(&table.line);
	text_init(&table.stack);
	text_init(&table.scratch);
	if (!table.paths || !table.rows)
		fail(err, ERR_MEMORY, "writing stacks");
	else
		result = write_rows(&table, err);
	strings_free(table.paths);
	free(table.rows);
	map_done(&table.threads);
	text_done(&table.line);
	text_done(&table.stack);
	text_done(&table.scratch);
	return result;
}
