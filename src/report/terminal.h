/* Lines for a terminal: columns, wrapping, bars, colour. Only what is asked for: without colour there is no ESC byte. */
#ifndef INFERSCOPE_REPORT_TERMINAL_H
#define INFERSCOPE_REPORT_TERMINAL_H

#include "report/model.h"
#include "report/name.h"

enum { SGR_BOLD = 1, SGR_DIM = 2, SGR_RED = 31, SGR_GREEN = 32, SGR_YELLOW = 33, SGR_BLUE = 34 };

struct terminal {
	struct text text;
	size_t width; /* columns */
	bool colour, unicode;
	unsigned quantity; /* flags for quantity_*() */
	unsigned name;     /* flags for name_add() */
};

void terminal_init(struct terminal *terminal, const struct report_options *options);
void terminal_done(struct terminal *terminal);

/* An empty line, then TITLE on one of its own. */
void terminal_heading(struct terminal *terminal, const char *title);
void terminal_newline(struct terminal *terminal);
/* text_memory.c */
void terminal_memory(struct terminal *terminal, const struct report *report);
/* SGR 0 changes nothing. */
void terminal_paint(struct terminal *terminal, int sgr, const char *string);
/* STRING (valid, from us) at the left or right of COLUMNS, then nothing; longer ones are not cut. */
void terminal_left(struct terminal *terminal, int sgr, const char *string, size_t columns);
void terminal_right(struct terminal *terminal, int sgr, const char *string, size_t columns);
/* A foreign name cut and padded to COLUMNS. */
void terminal_name(struct terminal *terminal, int sgr, const char *bytes, size_t columns, unsigned name_flags, bool pad);
/* Foreign text wrapped between INDENT and the width; the first line is already at column INDENT. At most LINES lines, ends with a newline. Returns lines. */
size_t terminal_wrap(struct terminal *terminal, int sgr, const char *bytes, size_t indent, size_t lines);
/* One bar of all parts, COLUMNS wide. */
void terminal_parts(struct terminal *terminal, const double parts[PART_COUNT], size_t columns);
/* One bar of one value. */
void terminal_bar(struct terminal *terminal, int sgr, double pct, size_t columns);

struct gpu_tables;
/* text_gpu.c: the section of devices; nothing where none was seen. */
void text_add_gpu(struct terminal *terminal, const struct report *report, const struct gpu_tables *tables);

#endif
