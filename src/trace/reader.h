/*
 * Reads an .iscope file chunk by chunk, streaming; works on pipes. A truncated file is a shorter valid one; a damaged chunk costs
 * that chunk and is counted. Nothing in the file is trusted: every event handed out lies inside its chunk and is well-formed.
 */
#ifndef INFERSCOPE_TRACE_READER_H
#define INFERSCOPE_TRACE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "abi/event.h"
#include "abi/lane.h"
#include "base/clock.h"
#include "base/error.h"

/* One run of events of one lane, oldest first. */
struct chunk {
	uint32_t process;  /* number of the process in this file, from 0 */
	uint32_t lane;     /* number of the lane in this process: never reused within a file */
	uint32_t tid;      /* outer (attacher's) thread id; 0 for META and SESSION */
	uint32_t lane_kind; /* enum lane_kind */
	uint64_t sequence; /* per lane, from 1; a gap is a loss */
	uint64_t lost_before; /* events of this lane lost before this chunk, in total */
	uint32_t depth;    /* of the thread's stack before the first event */
	uint32_t ref_count;
	uint32_t refs[LANE_DEPTH_REFS]; /* its innermost functions, innermost last */
	struct clock_map clock;
	const void *events; /* whole events; the reader's, until the next call */
	size_t size;       /* bytes of events */
};

struct trace;

struct trace_info {
	uint32_t version;
	uint64_t created_unix_ns;
	uint64_t chunks, damaged_chunks, damaged_bytes;
	bool truncated; /* ended inside a chunk */
};

/* PATH "-" is stdin. */
int trace_open(const char *path, struct trace **out, struct error *err);
/* The same, called NAME in what is said of it. */
int trace_open_as(const char *path, const char *name, struct trace **out, struct error *err);
/* Reads BYTES, which stay the caller's and must outlive the trace. */
int trace_open_memory(const void *bytes, size_t size, struct trace **out, struct error *err);
/* Reads BYTES, a mapping of a file that we have just written and nobody else writes: its check sums are not looked at. trace_close() unmaps it, and so does a failure. */
int trace_open_mapping(void *bytes, size_t size, struct trace **out, struct error *err);
/* 1 and *out, 0 at the end, -1 on a read failure (damage is no failure). */
int trace_next(struct trace *trace, struct chunk *out, struct error *err);
/* Back to the first chunk. -1 on a pipe. */
int trace_rewind(struct trace *trace, struct error *err);
struct trace_info trace_info(const struct trace *trace);
void trace_close(struct trace *trace);

/* The events of a chunk or of any bytes from a lane: `for (struct event_cursor c = …; event_next(&c); )`. */
struct event_cursor {
	const unsigned char *at, *end;
	struct event event;           /* the current one */
	const unsigned char *payload; /* its payload, event.size - 16 bytes, unaligned */
	bool damaged;                 /* ended early at an event of impossible size or unknown kind's size */
};
struct event_cursor event_cursor(const void *events, size_t size);
/* Inline: every pass over a trace calls it for each event. */
static inline bool event_next(struct event_cursor *cursor)
{
	size_t left = (size_t)(cursor->end - cursor->at);

	if (left == 0 || cursor->damaged)
		return false;
	if (left < sizeof cursor->event) {
		cursor->damaged = true;
		return false;
	}
	memcpy(&cursor->event, cursor->at, sizeof cursor->event);
	if (cursor->event.size < sizeof cursor->event || cursor->event.size % 8 || cursor->event.size > left) {
		cursor->damaged = true;
		return false;
	}
	cursor->payload = cursor->at + sizeof cursor->event;
	cursor->at += cursor->event.size;
	return true;
}

/* Payload fields by their position in event.def's list; missing or cut fields give 0 and "". */
uint64_t event_u64(const struct event_cursor *cursor, unsigned field);
uint32_t event_u32(const struct event_cursor *cursor, unsigned field);
int64_t event_i64(const struct event_cursor *cursor, unsigned field);
/* Points into the chunk, not NUL-terminated. */
const char *event_str(const struct event_cursor *cursor, unsigned field, size_t *length);

#endif
