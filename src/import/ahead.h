/* A thread that has the next bytes ready while those before are looked at. For this layer alone. */
#ifndef INFERSCOPE_IMPORT_AHEAD_H
#define INFERSCOPE_IMPORT_AHEAD_H

#include <stddef.h>

struct ahead;

/* FILL gives up to SIZE bytes, 0 at the end; from now on it and CONTEXT are the thread's. NULL when there can be no thread: then nothing was taken from FILL. */
struct ahead *ahead_start(size_t (*fill)(void *context, unsigned char *out, size_t size), void *context);
/* Up to SIZE bytes in order; 0 at the end, after which CONTEXT may be looked at again. */
size_t ahead_take(struct ahead *ahead, unsigned char *out, size_t size);
/* Ends the thread, whatever it still had. Accepts NULL. */
void ahead_stop(struct ahead *ahead);

#endif
