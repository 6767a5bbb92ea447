/* Rows, found by group. What is written on them is the writers'. */
#include "report/rows.h"

#include <stdlib.h>

#include "report/export.h"

enum { BUCKETS = 4096, ROWS_LIMIT = 65536, GROUP_LIMIT = 2048 };

struct rows {
	struct row *buckets[BUCKETS]; /* chains of rows, by group; those of one group in order of their numbers */
	struct row **calls;           /* by lane of the trace */
	size_t calls_count;
	uint32_t count;
	uint64_t refused;
	bool failed;
};

struct rows *rows_new(void)
{
	return calloc(1, sizeof(struct rows));
}

void rows_free(struct rows *rows)
{
	if (!rows)
		return;
	for (size_t i = 0; i < BUCKETS; i++)
		for (struct row *row = rows->buckets[i], *next; row; row = next) {
			next = row->next;
			free(row);
		}
	free(rows->calls);
	free(rows);
}

struct group { enum row_group kind; uint32_t a, b, process; };

static struct row **bucket_of(struct rows *rows, const struct group *group)
{
	uint64_t key = ((uint64_t)group->a << 32 | group->b) * 0x9e3779b97f4a7c15u + (group->kind + 16ull * group->process) * 0xc2b2ae3d27d4eb4fu;

	return &rows->buckets[key >> 32 & (BUCKETS - 1)];
}

static bool in_group(const struct row *row, const struct group *group)
{
	return row->group == group->kind && row->a == group->a && row->b == group->b && row->process == group->process;
}

static struct row *row_add(struct rows *rows, struct row **end, const struct group *group, uint32_t number)
{
	struct row *row = rows->count < ROWS_LIMIT ? calloc(1, sizeof *row) : NULL;

	if (!row) {
		rows->failed |= rows->count < ROWS_LIMIT;
		rows->refused++;
		return NULL;
	}
	row->group = group->kind;
	row->a = group->a;
	row->b = group->b;
	row->process = group->process;
	row->number = number;
	row->id = rows->count++;
	*end = row;
	return row;
}

/* Where two slices meet, or begin together, the order in the file decides: a later line must be later, or outside. */
static bool row_fits(const struct row *row, uint64_t start_ns, uint64_t end_ns)
{
	if (start_ns >= row->last_ns)
		return true;
	if (start_ns < row->floor_ns)
		return false;
	for (uint32_t i = 0; i < row->span_count; i++) {
		const struct row_span *span = &row->spans[i];
		bool before = span->end_ns <= start_ns, after = end_ns < span->start_ns, inside = start_ns < span->start_ns && span->end_ns <= end_ns;

		if (!before && !after && !inside)
			return false;
	}
	return true;
}

static void row_take(struct row *row, uint64_t start_ns, uint64_t end_ns)
{
	uint32_t kept = 0, oldest = 0;

	for (uint32_t i = 0; i < row->span_count; i++)
		if (row->spans[i].start_ns < start_ns || row->spans[i].end_ns > end_ns)
			row->spans[kept++] = row->spans[i];
	row->span_count = kept;
	if (row->span_count == ROW_SPANS) {
		for (uint32_t i = 1; i < ROW_SPANS; i++)
			if (row->spans[i].end_ns < row->spans[oldest].end_ns)
				oldest = i;
		if (row->spans[oldest].end_ns > row->floor_ns)
			row->floor_ns = row->spans[oldest].end_ns;
		row->spans[oldest] = row->spans[--row->span_count];
	}
	row->spans[row->span_count++] = (struct row_span){ start_ns, end_ns };
	if (end_ns > row->last_ns)
		row->last_ns = end_ns;
}

static struct group group_of(const struct interval *interval)
{
	switch (interval->kind) {
	case EVENT_SCOPE_ENTER:
		return (struct group){ ROWS_SCOPES, interval->thread, 0, 0 };
	case EVENT_CPU_SYSCALL:
		return (struct group){ ROWS_SYSCALLS, interval->thread, 0, 0 };
	case EVENT_GC:
		return (struct group){ ROWS_COLLECTIONS, interval->thread, 0, 0 };
	case EVENT_GPU_API:
		return (struct group){ ROWS_DRIVER, interval->thread, 0, 0 };
	default:
		return (struct group){ interval->kind == EVENT_GPU_SYNC ? ROWS_SYNC : ROWS_STREAM, interval->device, interval->stream, interval->process };
	}
}

struct row *rows_place(struct rows *rows, const struct interval *interval, bool *fresh)
{
	const struct group group = group_of(interval);
	struct row **at = bucket_of(rows, &group), *row;
	uint32_t number = 0;

	*fresh = false;
	for (; (row = *at); at = &row->next)
		if (in_group(row, &group)) {
			number++;
			if (row_fits(row, interval->start_ns, interval->end_ns))
				break;
		}
	if (!row && number < GROUP_LIMIT) {
		row = row_add(rows, at, &group, number);
		*fresh = row != NULL;
	} else if (!row) {
		rows->refused++;
	}
	if (row)
		row_take(row, interval->start_ns, interval->end_ns);
	return row;
}

struct row *rows_of_calls(struct rows *rows, uint32_t lane, uint32_t thread, bool *fresh)
{
	const struct group group = { ROWS_CALLS, thread, 0, 0 };
	struct row **at = bucket_of(rows, &group), **calls;
	uint32_t number = 0;

	*fresh = false;
	if (lane < rows->calls_count && rows->calls[lane])
		return rows->calls[lane];
	if (lane >= rows->calls_count) {
		calls = realloc(rows->calls, (lane + (size_t)64) * sizeof *calls);
		if (!calls) {
			rows->failed = true;
			return NULL;
		}
		for (size_t i = rows->calls_count; i < lane + (size_t)64; i++)
			calls[i] = NULL;
		rows->calls = calls;
		rows->calls_count = lane + (size_t)64;
	}
	for (; *at; at = &(*at)->next)
		number += in_group(*at, &group);
	rows->calls[lane] = row_add(rows, at, &group, number);
	*fresh = rows->calls[lane] != NULL;
	return rows->calls[lane];
}

bool rows_failed(const struct rows *rows)
{
	return rows->failed;
}

uint64_t rows_refused(const struct rows *rows)
{
	return rows->refused;
}

void row_name(const struct row *row, const struct timeline *timeline, struct text *out)
{
	static const char *const suffixes[] = { [ROWS_CALLS] = "", [ROWS_SCOPES] = " scopes", [ROWS_SYSCALLS] = " system calls", [ROWS_COLLECTIONS] = " collections of garbage", [ROWS_DRIVER] = " CUDA API" };

	if (row->group == ROWS_STREAM || row->group == ROWS_SYNC) {
		text_clear(out);
		text_printf(out, "stream %u%s%s", row->b, export_stream_owner(timeline, row->a, row->b, row->process, " of process ").text, row->group == ROWS_SYNC ? " sync" : "");
	} else {
		export_thread(timeline, row->a, out);
		text_add_string(out, suffixes[row->group]);
	}
	if (row->number)
		text_printf(out, " · %u", row->number + 1);
}
