/* What collecting rows and writing them as a trace share. Nobody outside the two includes it. */
#ifndef INFERSCOPE_IMPORT_GATHER_PRIVATE_H
#define INFERSCOPE_IMPORT_GATHER_PRIVATE_H

#include "base/arena.h"
#include "base/list.h"
#include "base/map.h"
#include "base/sink.h"
#include "import/gather.h"
#include "import/pairs.h"
#include "trace/writer.h"

enum { OPEN_MAX = 1 << 16 /* calls inside each other */ };

struct row {
	int64_t start_ns, end_ns; /* end: GATHER_OPEN while it is not told; of scopes that stays where nobody tells */
	uint32_t ref;   /* function id; of scopes and instants the name, a string id */
	uint32_t extra; /* of scopes and instants the metadata, a string id */
	uint32_t order : 30, kind : 2; /* as it came: equal ones stay in order */
};

struct function { uint32_t process, name, file, line, python; };
struct process {
	int64_t pid;
	uint32_t shown, name;  /* its number for people, and what it is called */
	uint32_t number;       /* in our trace, once it has rows or work; what has a name alone is a device: those stand at pids, too */
	bool numbered;
	bool word;             /* its name is what the file calls it */
	bool calls;            /* the runtime or driver of devices */
	uint32_t first, last;  /* of all rows those that are its own lie between them; from 1, 0 = none */
};
struct device { uint32_t number, name, uuid, multiprocessors, compute; uint64_t memory_bytes; };
struct thread { uint32_t process, name; int64_t tid; uint32_t number; /* in our trace, where no two threads of all processes have the same */ LIST(struct row) rows; LIST(uint32_t) open; /* rows without an end, innermost last */ };

/* Work whose owner is not told. What only kernels have, and only others. */
struct kept {
	int64_t start_ns, end_ns, pid;
	uint64_t place;
	union { struct { uint32_t grid[3], block[3]; } of_kernel; struct { uint64_t bytes; uint32_t detail; } of_other; };
	uint32_t name, device, stream, correlation;
	uint32_t flow;   /* number of the arrow that ends at it, or MAP_ABSENT */
	uint32_t before; /* rows that stood in the file before it */
	uint8_t kind;
	bool has_pid;
};
struct owners {
	LIST(struct kept) works;
	LIST(uint32_t) flows; /* by number: the process in which the arrow begins, or one of the two below */
	struct map flows_by_id, flows_by_place, calls_by_correlation, users_by_device;
	bool flows_shared;    /* processes number their arrows alike */
};
enum { OF_NONE = UINT32_MAX - 1, OF_SEVERAL = UINT32_MAX - 2 };

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
	struct owners owners;
	struct pairs pairs;
	struct map devices_by_identity, devices_by_number;
	LIST(struct device) devices; /* of which something is known */
	LIST(struct stream *) streams;
	size_t row_count;
	struct { int64_t pid, tid; uint32_t thread; bool known; } asked; /* for last: most events are of the same thread as the one before */
	int64_t first_ns, last_ns;
	uint32_t lane_count, process_count;
	struct gather_totals totals;
	bool failed; /* out of memory */
	struct error error;
};

static inline const char *string_of(const struct gather *gather, uint32_t id)
{
	return strings_get(gather->strings, id);
}

/* gather.c */
uint32_t string_id(struct gather *gather, const char *text);
uint32_t process_number(struct gather *gather, uint32_t index); /* in our trace; 0 of one that is not known */
void put_device(struct gather *gather, const struct device_work *work);

/* owners.c */
void owners_call(struct gather *gather, uint32_t process, uint32_t correlation); /* PROCESS makes calls; 0: none that asks for work */
void owners_keep(struct gather *gather, const struct device_work *work);
void owners_settle(struct gather *gather); /* puts all that was kept */
void owners_done(struct owners *owners);

/* gather_write.c: events on their way into the trace; a failure to write is kept in gather->error. */
void lane_begin(struct gather *gather, struct lane *lane, uint32_t process, uint32_t tid, uint32_t kind);
void lane_keep_small(struct gather *gather, struct lane *lane); /* puts what the lane has into the trace when it is much */
/* Foreign clocks may be negative; ours begins at 1 or later. */
static inline uint64_t ticks_of(int64_t ns) { return ns > 0 ? (uint64_t)ns : 1; }

#endif
