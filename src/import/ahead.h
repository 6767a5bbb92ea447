/* A thread that has the next buffer ready while the one before is looked at. For this layer alone. */
#ifndef INFERSCOPE_IMPORT_AHEAD_H
#define INFERSCOPE_IMPORT_AHEAD_H

#include <stddef.h>

struct ahead;

enum { AHEAD_BYTES = 1 << 18 /* of a buffer */ };

/* FILL puts up to SIZE bytes into OUT, 0 at the end; from now on CONTEXT is its own. Where there can be no thread, it is called when its bytes are wanted. NULL: out of memory. */
struct ahead *ahead_start(size_t (*fill)(void *context, unsigned char *out, size_t size), void *context);
/* The next buffer, aligned for anything, the reader's until the next call; with LENGTH 0 at the end, after which CONTEXT may be looked at again. */
unsigned char *ahead_take(struct ahead *ahead, size_t *length);
/* Ends the thread, whatever it still had. Accepts NULL. */
void ahead_stop(struct ahead *ahead);

#endif
