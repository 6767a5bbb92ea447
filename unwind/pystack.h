/*
 * Python stacks of another process, read from its memory without stopping it: thread states, frames, code objects. Torn reads
 * are expected; a walk that contradicts itself is dropped and counted, never guessed. Layouts: src/abi/cpython.def.
 */
#ifndef INFERSCOPE_UNWIND_PYSTACK_H
#define INFERSCOPE_UNWIND_PYSTACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct iovec;

/* How to read the other process: 0 or -1. Lets a test hand in recorded memory. */
struct remote_memory {
	int (*read)(void *context, uint64_t addr, void *buffer, size_t size);
	void *context;
	/* NULL: only one by one. Many places in one system call, in this order, up to the first one that cannot be read: returns how many were. THERE[I] is as large as HERE[I]. */
	size_t (*read_many)(void *context, const struct iovec *here, const struct iovec *there, size_t count);
};

enum { PYSTACK_FRAMES_MAX = 256 };

struct pystack {
	pid_t tid;            /* as the target sees it */
	bool holds_gil;       /* as far as the interpreter's memory tells */
	bool cut;             /* deeper than PYSTACK_FRAMES_MAX: outer frames are missing */
	uint32_t count;
	uint64_t code[PYSTACK_FRAMES_MAX]; /* code objects, innermost first */
	uint32_t stamp[PYSTACK_FRAMES_MAX]; /* changes when another code object has taken the address: remember names by (code, stamp) */
	uint64_t entry[PYSTACK_FRAMES_MAX]; /* an address on the C stack, in the native frame of the evaluator call that runs the frame (frames of one call have the
	                                       same); 0 = not known, as always up to 3.9, where each frame has a call of its own */
	uint64_t instr[PYSTACK_FRAMES_MAX]; /* where it is: for pyreader_line(); may be kept and asked later, with its code */
	uint64_t frame[PYSTACK_FRAMES_MAX]; /* the frame itself, for pyreader_locals() */
};

struct pycode {
	char name[256], qualname[512], file[1024]; /* UTF-8, cut */
	uint32_t line;
};

struct pyreader;

/* ERR_PYTHON_VERSION or ERR_FREE_THREADED: the process says of itself that its layout is another than the known one; ERR_NOT_PYTHON: no runtime there.
 * RUNTIME is the address of _PyRuntime, PYTHON_HEX the target's PY_VERSION_HEX, TID_OFFSET that of tid in its libc's
 * struct pthread (3.8 to 3.10 need it). MEMORY is copied; its context must live as long as the reader. */
int pyreader_open(const struct remote_memory *memory, uint64_t runtime, uint32_t python_hex, uint32_t tid_offset, struct pyreader **out, struct error *err);
void pyreader_close(struct pyreader *reader);
/* Reads the stacks of all threads, of all interpreters: calls EACH for every one that has Python frames. Returns how many, or -1 when the
 * interpreter could not be read now. Frames of the interpreter's own making (shims) are left out. */
int pyreader_stacks(struct pyreader *reader, void (*each)(void *context, const struct pystack *stack), void *context);
/* Names of a code object; -1 when it is not (any longer) one. Before 3.11 it has no qualified name: then that is the name. */
int pyreader_code(struct pyreader *reader, uint64_t code, struct pycode *out);
/* The line that a frame is at, by its code and instr. 0: not known, or code of the compiler's own that has no line. */
uint32_t pyreader_line(struct pyreader *reader, uint64_t code, uint64_t instr);

enum { PYLOCALS_MAX = 64, PYLOCAL_NAME_MAX = 128, PYLOCAL_VALUE_MAX = 256 };
/* Local variables that have a value, as they are now: calls EACH with name and value (UTF-8, cut; simple values as Python writes them, lengths of containers,
 * else the type) of at most PYLOCALS_MAX. Nothing of the target is run. Returns how many, -1: the frame is no longer that function's. */
int pyreader_locals(struct pyreader *reader, const struct pystack *stack, uint32_t index, void (*each)(void *context, const char *name, const char *value), void *context);

enum { PYTHREADS_MAX = 1 << 16, PYTHREAD_NAME_MAX = 128 };
/* Names of threads as the threading module has them: calls EACH with the tid that the target knows each by, and its name (UTF-8, cut). Of the main
 * interpreter's. Returns how many; 0 without that module; -1: they cannot be read now. */
int pyreader_names(struct pyreader *reader, void (*each)(void *context, pid_t tid, const char *name), void *context);

/* Is the variable NAME of MODULE, as the main interpreter has imported it, the constant True? */
bool pyreader_is_true(struct pyreader *reader, const char *module, const char *name);

enum { PYTASK_NAME_MAX = 128 };
/* A task of asyncio that is not done. */
struct pytask {
	uint64_t address, coroutine;
	char name[PYTASK_NAME_MAX];
	bool waits;                          /* for a future; else it runs, or is about to */
	char waits_for[PYTASK_NAME_MAX + 32]; /* that future's type, or "task \"its name\"" */
	struct pystack stack;                /* the coroutines that it is suspended in; of one that does not wait only the outermost */
};
/* Calls EACH with the tasks of the main interpreter that asyncio's C implementation made. Returns how many; 0 without asyncio. */
int pyreader_tasks(struct pyreader *reader, void (*each)(void *context, const struct pytask *task), void *context);
/* Finds out whether the main interpreter has imported asyncio: three reads while no module is new. */
bool pyreader_knows_tasks(struct pyreader *reader);

/* The task that a thread runs; pyglance_task() finds it. */
struct pytask_now {
	uint64_t code; /* of its coroutine; 0: no task, and nothing else is set */
	uint64_t address, coroutine, frame; /* the task, its coroutine, that one's frame */
	char name[PYTASK_NAME_MAX];
};

uint64_t pyreader_torn(const struct pyreader *reader); /* walks dropped */

#endif
