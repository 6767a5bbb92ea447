/* What the parts of the Markdown writer share. */
#ifndef INFERSCOPE_REPORT_MD_H
#define INFERSCOPE_REPORT_MD_H

#include "report/gpu_tables.h"

enum { MD_NAME = 60 };

/* BYTES, cut to COLUMNS, as a code span in a table's cell, where a | would end it. */
void md_add_code(struct text *out, const char *bytes, size_t columns, unsigned flags);
/* The same outside of tables, where a backslash before the | would be shown. */
void md_add_span(struct text *out, const char *bytes, size_t columns, unsigned flags);
/* A cell's `file:line`; nothing when it is not known. */
void md_add_place(struct text *out, const char *file, uint32_t line);
/* The section of devices; nothing where none was seen. */
void md_add_gpu(struct text *out, const struct report *report, const struct gpu_tables *tables);

#endif
