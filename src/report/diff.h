/* The comparison of two captures in words: text, Markdown and HTML for people, JSON for programs. */
#ifndef INFERSCOPE_REPORT_DIFF_H
#define INFERSCOPE_REPORT_DIFF_H

#include "analyze/diff.h"
#include "base/sink.h"

struct diff_view { const struct diff *diff; struct diff_side before, after; };

struct diff_format {
	const char *name;
	int (*write)(const struct diff_view *view, struct sink *sink, struct error *err);
};
/* html_diff_tree.c: the data of the differential flame graph, for the page's script */
int html_write_diff_tree(const struct diff_view *view, struct sink *sink, struct error *err);
int diff_write_html(const struct diff_view *view, struct sink *sink, struct error *err); /* html_diff.c */
/* By name, alias or extension of a report's format; NULL when differences have none such. */
const struct diff_format *diff_format_find(const char *name);

#endif
