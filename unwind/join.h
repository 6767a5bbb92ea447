/*
 * One stack out of two: the interpreter's loop in a native stack is replaced by the Python frames that it runs. Which ones these are tells
 * an address on the C stack (shim frame, cframe), never the name of a function; up to 3.9 every Python frame has a loop of its own, and they are counted.
 */
#ifndef INFERSCOPE_UNWIND_JOIN_H
#define INFERSCOPE_UNWIND_JOIN_H

#include "unwind/pystack.h"
#include "unwind/walk.h"

enum { JOINED_FRAMES_MAX = PYSTACK_FRAMES_MAX + WALK_FRAMES_MAX };

struct joined_frame {
	bool python;
	uint32_t index; /* into the arrays of struct pystack, or native_stack.frames */
};

enum join_result {
	JOIN_WHOLE,    /* every Python frame found its place */
	JOIN_PARTIAL,  /* inner part joined, outer Python frames follow: the native walk was cut, or they run on another C stack (greenlets) */
	JOIN_FAILED,   /* the halves contradict each other: native frames, then Python frames */
	JOIN_NATIVE,   /* a thread without Python frames */
	JOIN_PYTHON,   /* no native stack */
	JOIN_LATER,    /* the Python frames were read a moment later, and the native frames inside of them may be those of another call */
	JOIN_RECALLED, /* whole; the Python frames were read a moment later, but the copy itself tells which functions ran (pymoment.h) */
	JOIN_RESULTS,
};

struct joined_stack {
	enum join_result result;
	bool later;                              /* the innermost Python frames may be of a moment later than the native ones */
	uint32_t count;
	struct joined_frame frames[JOINED_FRAMES_MAX]; /* innermost first */
};

/* What only the caller knows. The functions may be NULL; WHICH is an index into native_stack.frames. */
struct join_rules {
	int python_minor;
	/* 0: both stacks are of one moment. Else the Python frames were read a little later, and from this address on the C stack was still the same then (its
	 * begin when all was). Python frames that were not there before are left out. */
	uint64_t still_above;
	/* Is it a call of the interpreter's loop, as far as can be known? 3.8 and 3.9 cannot be joined without; later ones ask for frames whose entry is not known. */
	bool (*evaluator)(void *context, const struct native_stack *native, uint32_t which);
	/* Is it no frame of the program's, but of the collector's own evaluator? Then it is left out. */
	bool (*hidden)(void *context, const struct native_stack *native, uint32_t which);
	/* Told of each native frame that Python frames stand for: it is a call of the interpreter's loop, whatever its name. */
	void (*runs)(void *context, const struct native_stack *native, uint32_t which);
	void *context;
};

/* PYTHON or NATIVE may be NULL: not there. */
void join_stacks(const struct pystack *python, const struct native_stack *native, const struct join_rules *rules, struct joined_stack *out);
const char *join_result_name(enum join_result result); /* "whole", "partial", "failed", "native only", "python only", "later", "recalled" */

#endif
