/*
 * Ids of functions. A table by pointer, mapped at arm, bounded; each code object in it is kept alive until disarm, because a
 * pointer alone is reused. The first sight of a function writes its names to META.
 */
#ifndef INFERSCOPE_COLLECTOR_CODE_H
#define INFERSCOPE_COLLECTOR_CODE_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/event.h"
#include "collector/python.h"

enum { CODES_BITS = 18, CODES_SLOTS = 1 << CODES_BITS, CODES_MAX = CODES_SLOTS / 2 };
enum { CODE_GENERATOR = 1, CODE_OWNED = 2 /* we hold a reference */, CODE_CHEAP = 4 /* C function: not worth an event */, CODE_LEFT_OUT = 8 /* not even counted */ };

struct code {
	uint64_t key;   /* the object; C functions: their PyMethodDef or type, plus 1 or 2 */
	uint32_t ref;   /* 0: left out by --skip */
	uint32_t flags;
	uint64_t ticks; /* C functions: time seen in them … */
	uint32_t calls; /* … in so many calls */
	uint32_t counted; /* row of page.counted, plus 1: only counted, or left out. 0 = traced */
};

struct codes {
	struct code *slots;
	uint32_t *by_ref; /* index in slots; rooms for refs that stand for no slot stay 0 */
	uint32_t *taken;  /* the same, of all COUNT: a walk over the whole table takes 1.5 ms, with the GIL */
	uint32_t count;
	uint32_t next_ref;
	struct code other; /* stands for all that found no place */
	bool other_named;
	/* Work space, so that a first sight needs little of a stack that may be small. */
	char name[EVENT_STRING_MAX + 1], qualname[EVENT_STRING_MAX + 1], file[EVENT_STRING_MAX + 1];
};

int codes_open(void);    /* maps the table; 0 or errno */
void codes_close(void);  /* drops all references and the table; under the GIL */
void codes_forget(void); /* drops the table alone: in a forked child nobody may hold the GIL, the functions live on there */

/* Adds what is not there yet. Never NULL. */
struct code *code_add(PyObject *code, uint64_t key);
struct code *code_c_function(PyObject *callable);
struct code *code_overflow(void);
/* NULL when REF stands for none in the table. */
struct code *code_of_ref(uint32_t ref);

static inline uint32_t code_slot(uint64_t key)
{
	return (uint32_t)((key >> 4) * 0x9e3779b97f4a7c15ull >> (64 - CODES_BITS));
}

static inline struct code *code_find_in(struct codes *codes, PyObject *object)
{
	uint64_t key = (uint64_t)(uintptr_t)object;
	uint32_t i = code_slot(key);

	for (;; i = (i + 1) & (CODES_SLOTS - 1)) {
		struct code *code = &codes->slots[i];

		if (__builtin_expect(code->key == key, 1))
			return code;
		if (!code->key)
			return code_add(object, key);
	}
}

#endif
