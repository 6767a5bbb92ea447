/* Writes an .iscope file, append-only, chunk by chunk. docs/trace-format.md has the bytes. */
#ifndef INFERSCOPE_TRACE_WRITER_H
#define INFERSCOPE_TRACE_WRITER_H

#include "base/sink.h"
#include "trace/reader.h"

enum trace_codec { CODEC_RAW = 0, CODEC_DELTA_ZSTD = 1 };

struct trace_writer;

/* SINK stays the caller's, and is committed or discarded by it after trace_writer_close(). */
int trace_writer_open(struct sink *sink, enum trace_codec codec, uint64_t created_unix_ns, struct trace_writer **out, struct error *err);
/* Appends CHUNK (at most 16 MiB of events). A failure of the sink is kept there. */
int trace_writer_add(struct trace_writer *writer, const struct chunk *chunk, struct error *err);
/* From the next chunk on. Only a writer opened with CODEC_DELTA_ZSTD may pack: the file says at its head what a reader must know. */
void trace_writer_pack(struct trace_writer *writer, bool pack);
/* The caller has put BYTES of whole chunks into the sink. */
void trace_writer_count(struct trace_writer *writer, uint64_t bytes);
uint64_t trace_writer_bytes(const struct trace_writer *writer);
void trace_writer_close(struct trace_writer *writer);

/* Builds events in memory, e.g. for SESSION lanes: fields in event.def's order, given as the types there (uint32_t, uint64_t,
 * int64_t, const char *). event_add(&builder, ticks, EVENT_COUNTER, ref, flags, "name", (int64_t)3). Strings beyond
 * EVENT_STRING_MAX are cut, with EVENT_FLAG_CUT. */
struct event_builder {
	unsigned char *bytes;
	size_t size, capacity;
	bool failed; /* out of memory */
};
void event_builder_init(struct event_builder *builder);
void event_builder_done(struct event_builder *builder);
void event_builder_clear(struct event_builder *builder);
/* Adds SIZE bytes of whole events. */
void event_builder_append(struct event_builder *builder, const void *events, size_t size);
/* Moves the events of FROM to the end of TO. */
void event_builder_move(struct event_builder *to, struct event_builder *from);
void event_add(struct event_builder *builder, uint64_t ticks, enum event_kind kind, uint32_t ref, unsigned flags, ...);

#endif
