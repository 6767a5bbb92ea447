/*
 * The program's own lines beside a finding's places. They are read when the report is made, and shown only where they can be trusted to be those that ran: of a regular
 * .py file below SOURCE_BYTES_MAX that is no newer than the process and names the function where the trace says it begins. Nothing leads out of the root that is given.
 */
#ifndef INFERSCOPE_REPORT_SOURCE_H
#define INFERSCOPE_REPORT_SOURCE_H

#include "analyze/analysis.h"
#include "base/arena.h"

enum { SOURCE_LINES = 9, SOURCE_BYTES_MAX = 4 << 20, SOURCE_COLUMNS = 160 };

/* LINES: raw but for tabs, which are spaces; without the lines' ends. The first one is FIRST. */
struct source { uint32_t first; size_t count; const char *lines[SOURCE_LINES]; };

/* The beginning of LOCATION's function below the folder ROOT ("/"), or NULL. NEWEST_NS: Unix time after which it must not have been changed. In ARENA. */
const struct source *source_read(struct arena *arena, const char *root, const struct location *location, uint64_t newest_ns);

#endif
