/* The event: 16 bytes that every lane and every chunk of a trace file is made of. Rows of event.def say what each kind means. */
#ifndef INFERSCOPE_ABI_EVENT_H
#define INFERSCOPE_ABI_EVENT_H

#include <stdint.h>

struct event {
	uint64_t ticks; /* of the lane's clock: enum clock_kind */
	uint32_t ref;
	uint16_t size; /* bytes with header, payload and padding; a multiple of 8, at least 16 */
	uint8_t kind;
	uint8_t flags;
};
_Static_assert(sizeof(struct event) == 16, "events are 16 bytes and a payload");

enum event_kind {
#define EVENT(number, id, name, ref, fields, doc) EVENT_##id = number,
#include "abi/event.def"
#undef EVENT
};

enum event_flag {
	EVENT_FLAG_EXCEPTION = 1, /* leave, c_leave, yield: by an exception */
	EVENT_FLAG_CUT = 2,       /* a string of the payload was cut to fit */
	EVENT_FLAG_LATER = 4,     /* sample: its innermost Python frames were read a moment later than the rest */
	EVENT_FLAG_SAMPLED = 16,  /* cpu_syscall: as looks saw it: one look or several in a row, no result. thread_counter: scaled */
	EVENT_FLAG_GRAPH = 8,     /* gpu_…: a node of a CUDA graph; all nodes of one launch have its correlation */
};

enum window_reason {
	WINDOW_ARM = 1,     /* attach, detach */
	WINDOW_BUDGET = 2,  /* the overhead budget */
	WINDOW_DEADLINE = 3, /* the attacher fell silent */
	WINDOW_STACK = 4,   /* the C stack guard took the evaluator off */
	WINDOW_FOREIGN = 5, /* somebody else took the hook */
	WINDOW_ALTERNATE = 6, /* all is turned on and off by turns, to compare */
};

/* What the overhead budget did; THROTTLE.what. Windows that it ends are WINDOW_OFF with WINDOW_BUDGET. */
enum throttle {
	THROTTLE_COUNTED = 1,    /* function ref is only counted from here */
	THROTTLE_C_CALLS_OFF = 2, /* calls of C function ref are not seen from here */
	THROTTLE_TURN_ON = 3,     /* --alternate: from here hooks may be on … */
	THROTTLE_TURN_OFF = 4,    /* … and from here they are off */
	THROTTLE_LEFT_OUT = 5,    /* function ref is not even counted from here */
	THROTTLE_MEMORY = 6,      /* twice as many bytes between samples of allocations from here */
};

/* How a thread spent a moment; SAMPLE.state. */
enum thread_state {
	THREAD_UNKNOWN = 0,
	THREAD_PYTHON = 1,  /* running Python code */
	THREAD_NATIVE = 2,  /* running native code */
	THREAD_GIL_WAIT = 3,
	THREAD_LOCK_WAIT = 4,
	THREAD_IO_WAIT = 5,
	THREAD_GPU_WAIT = 6,
	THREAD_SLEEP = 7,
	THREAD_RUNNABLE = 8, /* wants a CPU, has none */
	THREAD_IDLE = 9,     /* waits for work: pool worker, event loop */
};

/* Longest string the collector puts into one payload, bytes. Longer ones are cut, with EVENT_FLAG_CUT. */
enum { EVENT_STRING_MAX = 1024 };

#endif
