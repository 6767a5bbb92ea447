/*
 * The rows of a timeline. Viewers want the slices of a row to nest as brackets do, and drop what overlaps; so a slice goes to the first
 * row of its group on which it nests. Memory is bounded: a row remembers its last outermost slices and takes nothing that is older.
 */
#ifndef INFERSCOPE_REPORT_ROWS_H
#define INFERSCOPE_REPORT_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "report/model.h"

enum row_group { ROWS_CALLS, ROWS_SCOPES, ROWS_SYSCALLS, ROWS_COLLECTIONS, ROWS_DRIVER, ROWS_STREAM, ROWS_SYNC };

enum { ROW_SPANS = 16 };

struct row {
	enum row_group group;
	uint32_t a, b;      /* thread, or device and stream */
	uint32_t process;   /* index; of a thread's row 0 */
	uint32_t number;    /* in its group, from 0 */
	uint32_t id;        /* of all rows, from 0 */
	struct row *next;   /* rows.c's own */
	uint64_t last_ns;   /* nothing on it ends later */
	uint64_t floor_ns;  /* nothing goes before it any more */
	uint32_t span_count;
	struct row_span { uint64_t start_ns, end_ns; } spans[ROW_SPANS];
};

struct rows;
struct rows *rows_new(void);
void rows_free(struct rows *rows);

/* The row for INTERVAL, which is no call; *fresh when it is a new one. NULL when out of memory, or of rows. */
struct row *rows_place(struct rows *rows, const struct interval *interval, bool *fresh);
/* The row for the calls of trace lane LANE of THREAD: they nest already. */
struct row *rows_of_calls(struct rows *rows, uint32_t lane, uint32_t thread, bool *fresh);
/* Was there no memory for one? Then what was written is not whole. */
bool rows_failed(const struct rows *rows);
/* How many slices found no row. */
uint64_t rows_refused(const struct rows *rows);

/* "MainThread (4121) scopes", "stream 7 · 2": clears OUT first. */
void row_name(const struct row *row, const struct timeline *timeline, struct text *out);

#endif
