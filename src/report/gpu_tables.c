#include "report/gpu_tables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "report/export.h"
#include "report/durations.h"

enum { NAMES_LIMIT = 1 << 16 };

const struct gpu_table_words GPU_TABLE_WORDS[GPU_TABLES] = {
	[GPU_TABLE_KERNELS] = { "Kernels", "kernels", "Instances", "Name" },
	[GPU_TABLE_MEMORY] = { "Copies and memory set", "gpu_memory_operations", "Count", "Operation" },
	[GPU_TABLE_CALLS] = { "CUDA calls", "cuda_calls", "Num Calls", "Name" },
};

const char *const GPU_IDLE_LABELS[GPU_IDLE_CAUSES] = {
	[GPU_NO_DEMAND] = "no demand", [GPU_HOST_LATE] = "host late", [GPU_SYNC_CAUSED] = "sync caused", [GPU_DEVICE_DEPENDENCY] = "device dependency", [GPU_IDLE_UNKNOWN] = "unknown",
};

const char *const GPU_CALL_LABELS[GPU_CALL_CLASSES] = { "other", "launch", "graph launch", "sync", "copy", "allocation", "module" };

struct name_spread { struct durations times; uint64_t bytes; };

struct table_build {
	struct strings *names;
	LIST(struct name_spread) spreads; /* by the number of the name */
	LIST(struct gpu_row) rows;
};

struct gpu_tables_private {
	struct table_build of[GPU_TABLES];
	bool failed;
};

void copies_name(enum event_kind kind, uint32_t memory_kinds, char out[COPIES_NAME])
{
	static const char *const memory[] = {
#define MEMORY(number, name) [number] = name,
#include "abi/memory.def"
#undef MEMORY
	};
	unsigned from = memory_kinds & 255, to = memory_kinds >> 8 & 255, count = sizeof memory / sizeof *memory;
	const char *way = memory_kinds >> 16 & 1 ? "PtoP" : kind == EVENT_H2D_COPY ? "HtoD" : kind == EVENT_D2H_COPY ? "DtoH" : "DtoD";

	snprintf(out, COPIES_NAME, "Memcpy %s (%s -> %s)", way, memory[from < count ? from : 0], memory[to < count ? to : 0]);
}

/* ---- what the trace has ---- */

static struct name_spread *spread_of(struct table_build *table, const char *name)
{
	uint32_t id = strings_add(table->names, name, strlen(name));

	while (id != UINT32_MAX && id >= table->spreads.count)
		if (!list_add(&table->spreads, NAMES_LIMIT + 1))
			return NULL;
	return id == UINT32_MAX ? NULL : &table->spreads.items[id];
}

static enum gpu_table_kind table_of(unsigned kind)
{
	switch (kind) {
	case EVENT_GPU_KERNEL:
		return GPU_TABLE_KERNELS;
	case EVENT_H2D_COPY:
	case EVENT_D2H_COPY:
	case EVENT_D2D_COPY:
	case EVENT_GPU_MEMSET:
		return GPU_TABLE_MEMORY;
	case EVENT_GPU_API:
		return GPU_TABLE_CALLS;
	default:
		return GPU_TABLES;
	}
}

static bool take(void *context, const struct interval *interval)
{
	struct gpu_tables_private *p = context;
	enum gpu_table_kind kind = table_of(interval->kind);
	struct table_build *table = &p->of[kind < GPU_TABLES ? kind : 0];
	const char *name = export_label(interval);
	struct name_spread *spread;
	char copies[COPIES_NAME];

	if (kind == GPU_TABLES)
		return true;
	if (kind == GPU_TABLE_MEMORY && interval->kind != EVENT_GPU_MEMSET) {
		copies_name((enum event_kind)interval->kind, interval->memory_kinds, copies);
		name = copies;
	}
	spread = spread_of(table, strings_count(table->names) < NAMES_LIMIT ? name : "(other)");
	if (!spread || !durations_add(&spread->times, interval->end_ns - interval->start_ns)) {
		p->failed = true;
		return false;
	}
	spread->bytes += interval->bytes;
	return true;
}

/* ---- rows ---- */

static int longest_first(const void *left, const void *right)
{
	const struct gpu_row *a = left, *b = right;

	if (a->total_ns != b->total_ns)
		return a->total_ns < b->total_ns ? 1 : -1;
	return strcmp(a->name, b->name);
}

static void row_fill(struct gpu_row *row, const char *name, struct name_spread *spread, uint64_t whole_ns)
{
	struct durations *times = &spread->times;

	*row = (struct gpu_row){ name, times->count, times->total, times->min, times->max, spread->bytes, times->mean, durations_median(times), durations_deviation(times),
		whole_ns ? 100 * (double)times->total / (double)whole_ns : 0, !durations_median_is_exact(times) };
}

static bool table_finish(struct table_build *table, struct gpu_table *out)
{
	uint64_t whole_ns = 0;

	for (size_t i = 0; i < table->spreads.count; i++)
		whole_ns += table->spreads.items[i].times.total;
	for (size_t i = 0; i < table->spreads.count; i++) {
		struct gpu_row *row = table->spreads.items[i].times.count ? list_add(&table->rows, NAMES_LIMIT + 1) : NULL;

		if (row)
			row_fill(row, strings_get(table->names, (uint32_t)i), &table->spreads.items[i], whole_ns);
		else if (table->spreads.items[i].times.count)
			return false;
		durations_done(&table->spreads.items[i].times);
	}
	if (table->rows.count)
		qsort(table->rows.items, table->rows.count, sizeof *table->rows.items, longest_first);
	out->rows = table->rows.items;
	out->count = table->rows.count < GPU_ROWS_MAX ? table->rows.count : GPU_ROWS_MAX;
	out->omitted = table->rows.count - out->count;
	return true;
}

int gpu_tables_read(const struct report *report, struct gpu_tables *out, struct error *err)
{
	struct gpu_tables_private *p;
	int result = 0;

	*out = (struct gpu_tables){ 0 };
	if (!report->trace || !report->timeline->gpu.events)
		return 0;
	p = calloc(1, sizeof *p);
	if (!p)
		return fail(err, ERR_MEMORY, "gathering kernels");
	out->private_ = p;
	for (size_t i = 0; i < GPU_TABLES; i++)
		p->failed |= !(p->of[i].names = strings_new());
	if (!p->failed)
		result = timeline_device_work(report->timeline, report->trace, take, p, err);
	for (size_t i = 0; i < GPU_TABLES && result == 0 && !p->failed; i++)
		p->failed |= !table_finish(&p->of[i], &out->of[i]);
	if (result == 0 && p->failed)
		result = fail(err, ERR_MEMORY, "gathering kernels");
	if (result < 0)
		gpu_tables_free(out);
	return result;
}

void gpu_tables_free(struct gpu_tables *tables)
{
	struct gpu_tables_private *p = tables->private_;

	if (!p)
		return;
	for (size_t i = 0; i < GPU_TABLES; i++) {
		for (size_t j = 0; j < p->of[i].spreads.count; j++)
			durations_done(&p->of[i].spreads.items[j].times);
		list_done(&p->of[i].spreads);
		list_done(&p->of[i].rows);
		strings_free(p->of[i].names);
	}
	free(p);
	*tables = (struct gpu_tables){ 0 };
}
