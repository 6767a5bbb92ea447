/* Counters of threads and functions as tables show them, the same columns in every format. */
#ifndef INFERSCOPE_REPORT_COUNTER_ROWS_H
#define INFERSCOPE_REPORT_COUNTER_ROWS_H

#include "report/model.h"

struct counter_column {
	const char *title;
	enum thread_counter which, per; /* per: THREAD_COUNTERS, or what it is divided by */
	double scale;
};

enum { COUNTER_COLUMNS = 7 };
extern const struct counter_column COUNTER_COLUMNS_OF[COUNTER_COLUMNS];

/* Does any row of TABLE know it? */
bool counter_column_shown(const struct counter_table *table, const struct counter_column *column);
/* The value; NAN where it is not known. */
double counter_cell(const struct counter_row *row, const struct counter_column *column);
struct quantity counter_shown(const struct counter_row *row, const struct counter_column *column, unsigned flags);

struct terminal;
void md_add_counters(struct text *out, const struct report *report);
void terminal_counters(struct terminal *t, const struct report *report);

#endif
