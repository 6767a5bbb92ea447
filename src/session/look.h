/*
 * How a thread of another process is looked at: its Python frames as they stand in the interpreter's memory, and a copy of registers and stack, of a
 * blocked thread by /proc and its memory, of a running one by holding it for some 30 us. What was seen is made sense of elsewhere (joiner.h).
 */
#ifndef INFERSCOPE_SESSION_LOOK_H
#define INFERSCOPE_SESSION_LOOK_H

#include "inject/hold.h"
#include "session/block.h"
#include "unwind/pyglance.h"
#include "unwind/walk.h"

/* Of one thread at one moment. */
struct look {
	struct thread_copy copy; /* known 0: no native part */
	uint32_t glimpse_size;   /* 0: no Python frames */
	uint64_t hold_ns, stood_ns;
	struct pytask_now task;  /* looker_task()'s */
	_Alignas(8) unsigned char glimpse[PYGLANCE_BYTES_MAX]; /* for pyglance_stack() */
};

struct looker;

/* TARGET must outlive it; RUNTIME is where the interpreter's state lies. As pyreader_open(); ERR_MEMORY. */
int looker_open(const struct target *target, const struct procfs *procfs, remote_addr runtime, struct looker **out, struct error *err);
void looker_close(struct looker *looker); /* accepts NULL */
/* Finds out which threads run Python. OUTER as for pyglance_threads(). False: the interpreter could not be read. */
bool looker_threads(struct looker *looker, pid_t (*outer)(void *context, pid_t tid), void *context);
/* Does the thread run Python, as far as is known? */
bool looker_knows(const struct looker *looker, pid_t tid);
/* Threads can be held from now on, by a process that ends with the calling thread. As holder_open(). */
int looker_hold(struct looker *looker, struct error *err);
bool looker_holds(const struct looker *looker);
struct hold_totals looker_hold_totals(const struct looker *looker);
uint64_t looker_torn(const struct looker *looker); /* looks at Python frames that came to nothing */

/* Python frames alone; of a thread that runs on, as nearly of one moment as can be had. */
void looker_python(struct looker *looker, pid_t tid, bool running, struct look *out);
/* The stack of a thread that stands at BLOCK (in a system call), and its Python frames. Whether it stood there all the time the caller finds out. */
void looker_blocked(struct looker *looker, pid_t tid, const struct block *block, struct look *out);
/* Adds the task of asyncio that LOOK's Python frames run, if any: right after the look. */
void looker_task(const struct looker *looker, struct look *look);
/* All of one moment, by a hold. FORCE: also of a blocked thread. *ERROR is errno for HOLD_REFUSED. OUT is filled for HOLD_COPIED alone. */
enum hold_result looker_held(struct looker *looker, pid_t tid, bool force, struct look *out, int *error);
/* Reads what COPY lacks of its stack, so that there are pages for the next one. (Kernels of BLAS keep room that they do not use between their words and their caller's.) */
void looker_touch(struct looker *looker, const struct thread_copy *copy);
/* How far COPY's stack is still what it was: the lowest address from which on all of it is, its end when nothing is. */
uint64_t looker_still(struct looker *looker, const struct thread_copy *copy);

#endif
