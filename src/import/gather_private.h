/* What collecting rows and writing them as a trace share. Nobody outside the two includes it. */
#ifndef INFERSCOPE_IMPORT_GATHER_PRIVATE_H
#define INFERSCOPE_IMPORT_GATHER_PRIVATE_H

#include "base/arena.h"
#include "base/list.h"
#include "base/map.h"
#include "base/sink.h"
#include "import/gather.h"
#include "trace/writer.h"

enum { OPEN_MAX = 1 << 16 /* calls inside each other */ };

struct row {
	int64_t start_ns, end_ns;
	uint32_t ref;   /* function id; of scopes and instants the name, a string id */
	uint32_t extra; /* of scopes and instants the metadata, a string id */
	uint32_t order : 30, kind : 2; /* as it came: equal ones stay in order */
};

struct function { uint32_t process, name, file, line, python; };
struct process { int64_t pid; uint32_t name; };
struct thread { uint32_t process, name; int64_t tid; uint32_t number; /* in our trace, where no two threads of all processes have the same */ LIST(struct row) rows; LIST(uint32_t) open; /* rows without an end, innermost last */ };

/* Events of one lane on their way into the trace. */
struct lane { struct event_builder events; uint32_t number, process, tid, kind; uint64_t sequence; };
struct stream { struct lane lane; };

struct gather {
	struct sink *sink;
	struct trace_writer *writer;
	const char *format;
	struct gather_about about;
	struct strings *strings;
	struct map functions_by_key, threads_by_key, threads_by_number, processes_by_pid, streams_by_key;
	uint32_t numbers_taken; /* of threads whose own was not free, from the highest down */
	LIST(struct function) functions;
	LIST(struct process) processes;
	LIST(struct thread) threads;
	bool unowned; /* whose process some device's work is was not told */
	LIST(struct stream *) streams;
	size_t row_count;
	struct { int64_t pid, tid; uint32_t thread; bool known; } asked; /* for last: most events are of the same thread as the one before */
	int64_t first_ns, last_ns;
	uint32_t lane_count;
	struct gather_totals totals;
	bool failed; /* out of memory */
	struct error error;
};

static inline const char *string_of(const struct gather *gather, uint32_t id)
{
	return strings_get(gather->strings, id);
}

/* gather.c */

/* gather_write.c: events on their way into the trace; a failure to write is kept in gather->error. */
void lane_begin(struct gather *gather, struct lane *lane, uint32_t process, uint32_t tid, uint32_t kind);
void lane_keep_small(struct gather *gather, struct lane *lane); /* puts what the lane has into the trace when it is much */
/* Foreign clocks may be negative; ours begins at 1 or later. */
static inline uint64_t ticks_of(int64_t ns) { return ns > 0 ? (uint64_t)ns : 1; }

#endif
