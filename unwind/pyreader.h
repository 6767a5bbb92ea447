/* The reader behind pystack.h, for the files of unwind/ alone. */
#ifndef INFERSCOPE_UNWIND_PYREADER_H
#define INFERSCOPE_UNWIND_PYREADER_H

#include "unwind/pyframes.h"
#include "unwind/pystack.h"

struct cpython_layout;

/* A code object that was looked at: by address, so that a frame costs no read of its code most of the time. */
struct known_code {
	uint64_t addr;    /* 0 = free */
	uint64_t looked_ns; /* clock_monotonic_ns() before it was looked at last */
	uint32_t stamp;
	bool internal;    /* of the interpreter's own making, in no traceback */
};

enum { KNOWN_CODES = 4096 };
#define KNOWN_NS 50000000ull /* then it is looked at again */

struct pyreader {
	struct pywalk walk; /* its memory, layout and version are the reader's own */
	uint64_t code_type; /* address of PyCode_Type, once seen */
	uint64_t torn;
	uint64_t modules; /* how many were imported when asyncio was looked for */
	uint64_t running; /* asyncio's dict of the tasks that loops run, which is there as long as the interpreter; from 3.14 on any object of asyncio's. 0: it is not imported */
	struct known_code codes[KNOWN_CODES];
	size_t code_count;
	struct pystack stack;
};

/* The code object at ADDR as it was at SINCE_NS (clock_monotonic_ns()) or later: remembered, or looked at. NULL when there is none. */
const struct known_code *reader_code_since(struct pyreader *reader, uint64_t addr, uint64_t since_ns);
/* The same within the last KNOWN_NS. */
const struct known_code *reader_code(struct pyreader *reader, uint64_t addr);

/* Makes a stack of what a walk found: code objects looked at, frames of the interpreter's own making left out. -1: torn. */
int reader_finish(struct pyreader *reader, const struct pyframes *frames, struct pystack *out);

/* Every thread state of every interpreter. EACH returns how many stacks it made of it, and sets *NEXT to the one after it (0 = none).
 * Returns the sum, -1: nothing could be read. */
int reader_threads(struct pyreader *reader, int (*each)(void *context, uint64_t tstate, uint64_t interp, uint64_t *next), void *context);

/* The text of the str at ADDR as UTF-8, cut to SIZE with its NUL. -1 when it cannot be read as one. *WHOLE (may be NULL): it was not cut. */
int reader_str(const struct pyreader *reader, uint64_t addr, char *out, size_t size, bool *whole);

static inline int reader_read(const struct pyreader *reader, uint64_t addr, void *buffer, size_t size)
{
	return walk_read(&reader->walk, addr, buffer, size);
}

static inline int reader_word(const struct pyreader *reader, uint64_t addr, uint64_t *out)
{
	return walk_word(&reader->walk, addr, out);
}

#endif
