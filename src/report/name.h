/* Names that nobody vouches for, on one line of a bounded number of columns. */
#ifndef INFERSCOPE_REPORT_NAME_H
#define INFERSCOPE_REPORT_NAME_H

#include "base/text.h"

enum name_flag {
	NAME_ASCII = 1, /* everything beyond ASCII as \u{…} */
	NAME_HEAD = 2,  /* cut at the end instead of the beginning: for sentences and command lines */
	NAME_PATH = 4,  /* cut between folders where one is near */
};

/*
 * Adds BYTES as text_add_visible() would, cut to COLUMNS with an ellipsis. The tail is kept: it is what tells
 * `package.module.Class.method` and long paths apart. Works on the first or last 4 × COLUMNS bytes only, whatever the length.
 */
void name_add(struct text *out, const char *bytes, size_t columns, unsigned flags);

/* The same in prose, which may be Markdown's. */
void name_add_prose(struct text *out, const char *bytes, size_t columns, unsigned flags, bool markdown);

/* Columns that valid UTF-8 takes on a terminal: wide characters two, combining ones none. */
size_t name_columns(const char *utf8, size_t length);

#endif
