/*
 * What an importer finds, in any order: kept as small rows per thread, put into order and written as a trace of ours at the end. Calls that overlap without
 * nesting are cut at the end of the outer one; scopes may overlap each other and calls. Work of devices whose process is not told is kept, too, until it is known what else may tell (owners.c). For this layer alone.
 */
#ifndef INFERSCOPE_IMPORT_GATHER_H
#define INFERSCOPE_IMPORT_GATHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/event.h"
#include "base/error.h"
#include "import/json.h"

enum { GATHER_ROWS_MAX = 24 << 20, GATHER_THREADS_MAX = 1 << 16, GATHER_STREAMS_MAX = 4096 };

/* As an end: not yet known, gather_end() tells. */
#define GATHER_OPEN INT64_MAX

enum row_kind { ROW_PYTHON, ROW_C, ROW_SCOPE, ROW_INSTANT };

struct gather;

struct gather_totals {
	uint64_t events;   /* taken over */
	uint64_t ignored;  /* of kinds that say nothing here */
	uint64_t bad;      /* without what they need: a time, a name */
	uint64_t left_out; /* beyond GATHER_ROWS_MAX and the other bounds */
	uint64_t cut;      /* overlapping calls that were cut … */
	uint64_t cut_ns;   /* … by so much together */
	uint64_t unowned;  /* work of devices that any of several processes may have asked for */
	uint64_t shared_devices; /* that several processes use, unless each means another by the same number */
};

/* Writes to FD at the end, which stays the caller's. FORMAT: noted in the trace. */
int gather_open(int fd, const char *format, struct gather **out, struct error *err);
void gather_close(struct gather *gather);
struct gather_totals *gather_totals(struct gather *gather);
void gather_fail(struct gather *gather); /* out of memory: gather_finish() says so */

/* What a document says of itself: the word there, and the capture's key. */
static const struct { const char *word, *key; } about_rows[] = { { "rank", "rank" }, { "world_size", "world_size" }, { "numSms", "gpu.multiprocessors" } };
enum { ABOUT_ROWS = sizeof about_rows / sizeof *about_rows };
/* What it says of a device, whatever else has the same number. */
struct described_device { struct number id, memory_bytes, compute_major, compute_minor, multiprocessors; char name[80]; };
enum { DESCRIBED_MAX = 128 };
struct gather_about { struct number numbers[ABOUT_ROWS]; struct described_device devices[DESCRIBED_MAX]; size_t device_count; };
void gather_set_about(struct gather *gather, const struct gather_about *about);

/* A thread's number for the calls below, UINT32_MAX when there can be no more. */
uint32_t gather_thread(struct gather *gather, int64_t pid, int64_t tid);
/* The same of one that was asked for before; else UINT32_MAX. */
uint32_t gather_known_thread(const struct gather *gather, int64_t pid, int64_t tid);
void gather_thread_name(struct gather *gather, uint32_t thread, const char *name);
uint32_t gather_process(struct gather *gather, int64_t pid); /* its number; UINT32_MAX: there are too many */
/* Of a process that the file calls by a word: PID stands for the word, NUMBER is the one in it. */
void gather_process_word(struct gather *gather, int64_t pid, const char *word, uint32_t number);
void gather_process_name(struct gather *gather, int64_t pid, const char *name);

/* Times in ns of the foreign clock. FILE and LINE of Python functions; the module of C functions; of scopes and instants FILE is the metadata. */
void gather_row(struct gather *gather, uint32_t thread, enum row_kind kind, const char *name, const char *file, uint32_t line, int64_t start_ns, int64_t end_ns);
/* The same of calls in two steps, for who has many of few functions: the function's number in the process of THREAD, and a call of it. */
uint32_t gather_function(struct gather *gather, uint32_t thread, bool python, const char *name, const char *file, uint32_t line);
void gather_call(struct gather *gather, uint32_t thread, uint32_t function, int64_t start_ns, int64_t end_ns);
uint32_t gather_process_of(const struct gather *gather, uint32_t thread); /* its number */
/* The last row of THREAD that is open ends. */
void gather_end(struct gather *gather, uint32_t thread, int64_t end_ns);
/* A scope whose end comes apart, and that end: by ID, or without (0) that of the oldest open one of THREAD with that name and METADATA, else with that name (pairs.h). */
void gather_scope_begin(struct gather *gather, uint32_t thread, const char *name, const char *metadata, int64_t id, int64_t start_ns);
void gather_scope_end(struct gather *gather, uint32_t thread, const char *name, const char *metadata, int64_t id, int64_t end_ns);
/* A runtime or driver call; also as a row of C. */
void gather_api(struct gather *gather, uint32_t thread, const char *name, int64_t start_ns, int64_t end_ns, uint32_t correlation);

struct device_work {
	enum event_kind kind;    /* GPU_KERNEL, H2D_COPY, D2H_COPY, D2D_COPY, GPU_MEMSET, GPU_SYNC */
	const char *name;        /* of kernels */
	int64_t start_ns, end_ns;
	uint32_t device, stream, correlation;
	uint32_t owner;          /* 1 + the process that asked for it (gather_process()); 0 = not told */
	struct number pid;       /* that it stands at, where that may be the process's; without an owner */
	uint64_t place;          /* where it stands in the file, as gather_flow_end() calls it; without an owner, 0 = nowhere */
	uint32_t grid[3], block[3];
	uint64_t bytes;
	uint32_t detail;         /* memory_kinds or sync_kind */
};
void gather_device(struct gather *gather, const struct device_work *work);
/* An arrow from a call of process PID to work of a device: both ends have its ID. */
void gather_flow_begin(struct gather *gather, uint64_t id, int64_t pid);
void gather_flow_end(struct gather *gather, uint64_t id, uint64_t place);

/* What is known of a device; strings as long as the call, empty ones and 0 where it is not. */
struct device_facts { uint64_t memory_bytes; uint32_t multiprocessors, compute; const char *name, *uuid; };
/* A device's number in our trace. IDENTITY: the same for the same device, whoever calls it what. UINT32_MAX: it has none yet. */
uint32_t gather_device_known(const struct gather *gather, uint64_t identity);
/* As the document describes its device ID, where it does that in one way; strings as long as GATHER. */
struct device_facts gather_described(const struct gather *gather, uint32_t id);
/* Gives it one: WANTED, or the lowest that is free where another device has that. */
uint32_t gather_device_add(struct gather *gather, uint64_t identity, uint32_t wanted, const struct device_facts *facts);

/* Puts everything in order and writes the trace. BROKEN: where and how the document broke, or NULL. */
int gather_finish(struct gather *gather, const char *broken, struct error *err);

#endif
