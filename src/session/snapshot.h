/*
 * What all threads of a process do now: their Python stacks, read from outside; with native frames on request, for which running threads are held one
 * at a time, blocked and stopped ones not at all. Nothing is put into the process.
 */
#ifndef INFERSCOPE_SESSION_SNAPSHOT_H
#define INFERSCOPE_SESSION_SNAPSHOT_H

#include <stdbool.h>

#include "inject/inject.h"
#include "unwind/join.h"

struct snapshot_local {
	const char *name, *value;
};

struct snapshot_frame {
	bool python;
	const char *function; /* qualified name, or a symbol; "" = an address without a name */
	const char *file;     /* "" = not known */
	uint32_t line;        /* 0 = not known */
	/* native */
	const char *module;   /* path, "" = in none */
	uint64_t offset;      /* of the code in its module; an address where there is none */
	bool inlined;         /* into the frame outside of it */
	/* Python, when wanted */
	const struct snapshot_local *locals;
	size_t local_count;
};

enum snapshot_state { SNAPSHOT_RUNNING, SNAPSHOT_GIL_WAIT, SNAPSHOT_LOCK_WAIT, SNAPSHOT_IO_WAIT, SNAPSHOT_IDLE, SNAPSHOT_SLEEP, SNAPSHOT_STOPPED, SNAPSHOT_STATES };

struct snapshot_thread {
	pid_t tid, inner_tid;
	char name[32];
	enum snapshot_state state;
	char wait[32];       /* the system call it is in, "" = none */
	char object[128];    /* what it does I/O on: "fd 5 (socket:[123])"; "" = not known */
	bool holds_gil, cut; /* cut: outer Python frames are missing */
	enum join_result join;
	enum walk_end native_end;
	uint64_t hold_ns;    /* it was held for so long */
	const char *note;    /* why something is missing, "" = nothing is */
	const struct snapshot_frame *frames; /* outermost first */
	size_t count;
};

struct snapshot_totals {
	uint32_t threads, torn; /* Python stacks that could not be read in one piece */
	uint32_t joins[JOIN_RESULTS];
	uint64_t longest_hold_ns;
	char native_why[256];   /* why there are no native frames at all, "" = there are, or none were wanted */
};

struct snapshot_options {
	bool native, locals;
};

const char *snapshot_state_name(enum snapshot_state state); /* "running", "gil_wait", … */

/* Calls EACH for every thread, by tid; what it gets lives during the call. ERR_EXITED, ERR_NOT_PYTHON, ERR_PYTHON_VERSION, ERR_TIMEOUT (the interpreter's
 * memory does not hold still), ERR_MEMORY. */
int snapshot_take(struct target *target, const struct snapshot_options *options, void (*each)(void *context, const struct snapshot_thread *thread), void *context,
            struct snapshot_totals *totals, struct error *err);

#endif
