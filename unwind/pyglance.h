/*
 * A look at the frames of one thread while it is held: nothing is allocated or locked, and nothing but its frames is read; what they mean is found
 * out afterwards, with the thread running again. The table of threads lies in shared memory, so that the process that holds
 * sees what the attacher brings up to date.
 */
#ifndef INFERSCOPE_UNWIND_PYGLANCE_H
#define INFERSCOPE_UNWIND_PYGLANCE_H

#include "unwind/pystack.h"

enum { PYGLANCE_BYTES_MAX = 12 << 10, PYGLANCE_THREADS_MAX = 1 << 14 };

struct pyglance;

/* Of the process that READER reads; keeps nothing of READER but its memory, whose context must live as long. ERR_MEMORY. */
int pyglance_open(const struct pyreader *reader, struct pyglance **out, struct error *err);
void pyglance_close(struct pyglance *glance); /* accepts NULL */
/* Finds the thread states of all threads. OUTER translates the target's thread ids to those that pyglance_look() gets; NULL: they are the same.
 * Returns how many are known, -1: the interpreter could not be read. Threads beyond PYGLANCE_THREADS_MAX are left out. */
int pyglance_threads(struct pyglance *glance, struct pyreader *reader, pid_t (*outer)(void *context, pid_t tid), void *context);
/* Has TID a thread state, as far as was found? */
bool pyglance_knows(const struct pyglance *glance, pid_t tid);
/* Fits hold_extra of inject/hold.h: GLANCE is the context. Writes at most SIZE bytes (PYGLANCE_BYTES_MAX are enough) and returns how many:
 * 0 for a thread that runs no Python, or is not the known one any longer. */
uint32_t pyglance_look(void *glance, pid_t tid, void *out, uint32_t size);
/* The same of a thread that runs on: looks again, a few times, when it moved meanwhile; then it is as it was read last. *TORN counts looks that came to nothing. */
uint32_t pyglance_look_running(struct pyglance *glance, pid_t tid, void *out, uint32_t size, uint64_t *torn);
/* Did the thread hold the GIL, as far as the interpreter's memory told that look? */
bool pyglance_holds_gil(const void *bytes, uint32_t size);
/* Which task of asyncio, made by its C implementation, do the frames of a look run? To be asked right after the look, whose bytes begin at a multiple of 8. True: one
 * whose coroutine is among the frames. Needs pyreader_knows_tasks() now and then. */
bool pyglance_task(const struct pyreader *reader, const void *bytes, uint32_t size, struct pytask_now *out);
/* Makes a stack of what a look wrote: 0, or -1 (counted as torn, unless SIZE is 0) when it does not fit together. */
int pyglance_stack(struct pyreader *reader, const void *bytes, uint32_t size, struct pystack *out);

#endif
