#include "report/kernels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "report/export.h"

enum { NAMES_LIMIT = 1 << 16 };

struct kernels_private {
	struct strings *names;
	LIST(struct kernel_row) rows; /* by the number of the name, until they are sorted */
	bool failed;
};

static struct kernel_row *row_of(struct kernels_private *p, const char *name)
{
	uint32_t id = strings_add(p->names, name, strlen(name));
	struct kernel_row *row;

	while (id != UINT32_MAX && id >= p->rows.count) {
		row = list_add(&p->rows, NAMES_LIMIT);
		if (!row)
			return NULL;
		row->name = strings_get(p->names, (uint32_t)p->rows.count - 1);
	}
	return id == UINT32_MAX ? NULL : &p->rows.items[id];
}

static bool take(void *context, const struct interval *interval)
{
	struct kernels_private *p = context;
	uint64_t took_ns = interval->end_ns - interval->start_ns;
	struct kernel_row *row;

	if (interval->kind != EVENT_GPU_KERNEL && interval->kind != EVENT_GPU_MEMSET)
		return true;
	row = row_of(p, strings_count(p->names) < NAMES_LIMIT ? export_label(interval) : "(other)");
	if (!row) {
		p->failed = true;
		return false;
	}
	row->count++;
	row->total_ns += took_ns;
	row->longest_ns = took_ns > row->longest_ns ? took_ns : row->longest_ns;
	return true;
}

static int longest_first(const void *left, const void *right)
{
	const struct kernel_row *a = left, *b = right;

	if (a->total_ns != b->total_ns)
		return a->total_ns < b->total_ns ? 1 : -1;
	return strcmp(a->name, b->name);
}

static void sort(struct kernels_private *p, struct kernels *out)
{
	uint64_t whole = 0;
	size_t used = 0;

	for (size_t i = 0; i < p->rows.count; i++) {
		whole += p->rows.items[i].total_ns;
		if (p->rows.items[i].count)
			p->rows.items[used++] = p->rows.items[i];
	}
	for (size_t i = 0; i < used; i++)
		p->rows.items[i].pct = whole ? 100 * (double)p->rows.items[i].total_ns / (double)whole : 0;
	if (used)
		qsort(p->rows.items, used, sizeof *p->rows.items, longest_first);
	out->rows = p->rows.items;
	out->count = used < KERNELS_MAX ? used : KERNELS_MAX;
	out->omitted = used - out->count;
	out->private_ = p;
}

int kernels_read(const struct report *report, struct kernels *out, struct error *err)
{
	struct kernels_private *p;
	int result = 0;

	*out = (struct kernels){ 0 };
	if (!report->trace || !report->timeline->gpu.events)
		return 0;
	p = calloc(1, sizeof *p);
	if (!p || !(p->names = strings_new())) {
		free(p);
		return fail(err, ERR_MEMORY, "gathering kernels");
	}
	result = timeline_intervals(report->timeline, report->trace, take, p, err);
	if (result == 0 && p->failed)
		result = fail(err, ERR_MEMORY, "gathering kernels");
	sort(p, out);
	if (result < 0)
		kernels_free(out);
	return result;
}

void kernels_free(struct kernels *kernels)
{
	struct kernels_private *p = kernels->private_;

	if (!p)
		return;
	list_done(&p->rows);
	strings_free(p->names);
	free(p);
	*kernels = (struct kernels){ 0 };
}

void copies_name(const struct gpu_copies *copies, char out[COPIES_NAME])
{
	static const char *const memory[] = {
#define MEMORY(number, name) [number] = name,
#include "abi/memory.def"
#undef MEMORY
	};
	unsigned from = copies->memory_kinds & 255, to = copies->memory_kinds >> 8 & 255, count = sizeof memory / sizeof *memory;
	const char *way = copies->memory_kinds >> 16 & 1 ? "PtoP" : copies->kind == EVENT_H2D_COPY ? "HtoD" : copies->kind == EVENT_D2H_COPY ? "DtoH" : "DtoD";

	snprintf(out, COPIES_NAME, "Memcpy %s (%s -> %s)", way, memory[from < count ? from : 0], memory[to < count ? to : 0]);
}
