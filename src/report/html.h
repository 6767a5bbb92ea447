/* What the parts of the HTML writer share. Everything foreign goes through html_add(). */
#ifndef INFERSCOPE_REPORT_HTML_H
#define INFERSCOPE_REPORT_HTML_H

#include "report/model.h"
#include "report/name.h"

/* BYTES cut to COLUMNS and escaped, for text or a quoted attribute. */
void html_add(struct text *out, const char *bytes, size_t columns, unsigned flags);
/* A function's name as code, the longer form of a cut one as tooltip. */
void html_add_name(struct text *out, const char *name, size_t columns);
/* file:line, small; nothing when it is not known. */
void html_add_place(struct text *out, const char *file, uint32_t line, size_t columns);
/* Flame graphs of the busiest threads and the call tree: html_tree.c. */
void html_add_stacks(struct text *out, const struct report *report);

#endif
