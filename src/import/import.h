/*
 * Traces of other tools, told by their content and turned into ours: Chrome's trace event format (torch.profiler's Kineto, viztracer and others) and event
 * JSON, both also gzipped, and SQLite databases that nsys exports. A document that breaks off gives what came before, and says where it broke.
 */
#ifndef INFERSCOPE_IMPORT_IMPORT_H
#define INFERSCOPE_IMPORT_IMPORT_H

#include "trace/reader.h"

/* Opens the trace at PATH ("-" is stdin): ours as it is, a foreign one by way of an unnamed file in TMPDIR (as large as ours would be), with what was left
 * out in its counters and captures "import.*". Can always be rewound. */
int import_open(const char *path, struct trace **out, struct error *err);
/* A foreign document in memory. */
int import_open_memory(const void *bytes, size_t size, struct trace **out, struct error *err);

#endif
