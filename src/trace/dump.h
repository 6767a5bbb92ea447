/*
 * A trace as text that a person can read and edit, and back: assemble(dump(trace)) has the same events. Golden tests are this text.
 *
 *   # comment
 *   chunk process=0 lane=2 tid=4711 kind=thread sequence=1 lost=0 depth=0 refs= clock=1000000000/0/0     (per_second/base_ticks/base_ns)
 *   1500 enter ref=1
 *   1800 leave ref=1 flags=exception
 *   0 code ref=1 address=0x10 line=12 code_flags=0x3 name="f" qualname="A.f" file="/srv/app.py"
 */
#ifndef INFERSCOPE_TRACE_DUMP_H
#define INFERSCOPE_TRACE_DUMP_H

#include "trace/writer.h"

int trace_dump(struct trace *trace, struct sink *out, struct error *err);
/* TEXT is NUL-terminated. On failure err says line and column. */
int trace_assemble(const char *text, struct trace_writer *writer, struct error *err);
/* For tests: assembles TEXT into memory (free() it). */
int trace_assemble_memory(const char *text, void **bytes, size_t *size, struct error *err);

#endif
