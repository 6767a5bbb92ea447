/*
 * What all threads of a process do now: their Python stacks, read from outside; with native frames on request, for which running threads are held one
 * at a time, blocked and stopped ones not at all; and asyncio's tasks. Nothing is put into the process.
 */
#ifndef INFERSCOPE_SESSION_SNAPSHOT_H
#define INFERSCOPE_SESSION_SNAPSHOT_H

#include <stdbool.h>

#include "inject/inject.h"
#include "unwind/join.h"
#include "unwind/pystack.h"

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
	char name[PYTHREAD_NAME_MAX]; /* as threading has it; of others the kernel's */
	enum snapshot_state state;
	char wait[32];       /* the system call it is in, "" = none */
	char object[128];    /* what it does I/O on: "fd 5 (socket:[123])"; "" = not known */
	bool holds_gil, cut; /* cut: outer Python frames are missing */
	enum join_result join;
	enum walk_end native_end;
	uint64_t hold_ns;    /* it was held for so long */
	const char *task;    /* name of asyncio's task that it runs, "" = none */
	const char *note;    /* why something is missing, "" = nothing is */
	const struct snapshot_frame *frames; /* outermost first */
	size_t count;
};

enum snapshot_task_state { SNAPSHOT_TASK_READY, SNAPSHOT_TASK_RUNNING, SNAPSHOT_TASK_WAITING, SNAPSHOT_TASK_STATES };

/* A task of asyncio. */
struct snapshot_task {
	const char *name;
	enum snapshot_task_state state;
	pid_t tid;             /* of the thread that runs it, 0 = none does */
	const char *waits_for; /* type of the future, or "task \"name\""; "" = it does not wait */
	bool cut;
	const struct snapshot_frame *frames; /* its coroutines, outermost first; of a running one they are the thread's */
	size_t count;
};

struct snapshot_totals {
	uint32_t threads, tasks;
	uint32_t tasks_left_out; /* beyond some thousands */
	uint32_t torn; /* Python stacks that could not be read in one piece */
	uint32_t joins[JOIN_RESULTS];
	uint64_t longest_hold_ns;
	char native_why[256];   /* why there are no native frames at all, "" = there are, or none were wanted */
};

struct snapshot_options {
	bool native, locals;
};

/* What it gets lives during the call. */
struct snapshot_teller {
	void (*thread)(void *context, const struct snapshot_thread *thread); /* each, by tid */
	void (*task)(void *context, const struct snapshot_task *task);       /* then each of these */
	void *context;
};

const char *snapshot_state_name(enum snapshot_state state); /* "running", "gil_wait", … */
const char *snapshot_task_state_name(enum snapshot_task_state state); /* "ready", "running", "waiting" */

/* Tells of each thread and each task. ERR_EXITED, ERR_NOT_PYTHON, ERR_PYTHON_VERSION, ERR_TIMEOUT (the interpreter's
 * memory does not hold still), ERR_PERMISSION, ERR_INJECT (it cannot be read), ERR_DESCRIPTORS, ERR_MEMORY. */
int snapshot_take(struct target *target, const struct snapshot_options *options, const struct snapshot_teller *tell, struct snapshot_totals *totals, struct error *err);

#endif
