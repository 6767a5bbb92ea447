/*
 * One stack out of two: the interpreter's loop in a native stack is replaced by the Python frames that it runs. Which ones these are tells
 * an address on the C stack (shim frame, cframe), never the name of a function; up to 3.10 every Python frame has a loop of its own.
 */
#ifndef INFERSCOPE_UNWIND_JOIN_H
#define INFERSCOPE_UNWIND_JOIN_H

#include "unwind/pystack.h"
#include "unwind/walk.h"

enum { JOINED_FRAMES_MAX = PYSTACK_FRAMES_MAX + WALK_FRAMES_MAX };

struct joined_frame {
	bool python;
	uint32_t index; /* into pystack.code or native_stack.frames */
};

enum join_result {
	JOIN_WHOLE,    /* every Python frame found its place */
	JOIN_PARTIAL,  /* the native walk was cut: inner part joined, outer Python frames follow */
	JOIN_FAILED,   /* the halves contradict each other: native frames, then Python frames */
	JOIN_NATIVE,   /* a thread without Python frames */
	JOIN_PYTHON,   /* no native stack */
};

struct joined_stack {
	enum join_result result;
	uint32_t count;
	struct joined_frame frames[JOINED_FRAMES_MAX]; /* innermost first */
};

/* EVALUATOR tells whether an address lies in the interpreter's loop where that can be known (3.8 to 3.10 need it); may be NULL. */
void join_stacks(const struct pystack *python, const struct native_stack *native, int python_minor, bool (*evaluator)(void *context, uint64_t ip), void *context,
                 struct joined_stack *out);

#endif
