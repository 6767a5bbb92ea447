/*
 * Ids of functions. A table, mapped at arm, bounded. A Python function is what a reader of the report takes for one: its name, file and first line, by the str
 * objects themselves, which are kept alive until disarm, because a pointer alone is reused. Its code object is not: a program that makes code all the time (templates,
 * exec, data frames' queries) would never be rid of it, nor of what stands in it. The first sight of a function writes its names to META.
 */
#ifndef INFERSCOPE_COLLECTOR_CODE_H
#define INFERSCOPE_COLLECTOR_CODE_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/event.h"
#include "collector/python.h"

enum { CODES_BITS = 18, CODES_SLOTS = 1 << CODES_BITS, CODES_MAX = CODES_SLOTS / 2, CODES_RECENT_BITS = 11, CODES_RECENT = 1 << CODES_RECENT_BITS };
enum { CODE_GENERATOR = 1, CODE_PYTHON = 2 /* we hold references to its names */, CODE_CHEAP = 4 /* C function: not worth an event */, CODE_LEFT_OUT = 8 /* not even counted */ };

struct code_id {
	const void *name, *file, *qualname; /* str objects; up to 3.10 qualname is name. C functions: name alone, which tells apart those that lay at the same place, one after the other */
	uint32_t line, flags;
};

struct code {
	uint64_t key;   /* a hash of its id; C functions: their PyMethodDef or type, plus 1 or 2 */
	uint32_t ref;   /* 0: left out by --skip */
	uint32_t flags;
	struct code_id id;
	uint64_t ticks; /* C functions: time seen in them … */
	uint32_t calls; /* … in so many calls */
	uint32_t counted; /* row of page.counted, plus 1: only counted, or left out. 0 = traced */
};
_Static_assert(sizeof(struct code) == 64, "no row lies in two cache lines");

struct codes {
	struct code *slots;
	uint32_t *by_ref; /* index in slots; rooms for refs that stand for no slot stay 0 */
	uint32_t *taken;  /* the same, of all COUNT: a walk over the whole table takes 1.5 ms, with the GIL */
	uint32_t count;
	uint32_t next_ref;
	struct { const PyObject *object; struct code *code; } recent[CODES_RECENT]; /* by address: a guess, that the names confirm */
	int at_name, at_file, at_qualname, at_line, at_flags; /* in a code object */
	struct code other; /* stands for all that found no place */
	bool other_named;
	/* Work space, so that a first sight needs little of a stack that may be small. */
	char name[EVENT_STRING_MAX + 1], qualname[EVENT_STRING_MAX + 1], file[EVENT_STRING_MAX + 1];
};

int codes_open(void);    /* maps the table; 0 or errno */
void codes_close(void);  /* drops all references and the table; under the GIL */
void codes_forget(void); /* drops the table alone: in a forked child nobody may hold the GIL, the functions live on there */

/* Both add what is not there yet. Never NULL. */
struct code *code_find_slow(PyObject *code, uint32_t recent);
struct code *code_c_function(PyObject *callable);
struct code *code_overflow(void);
/* NULL when REF stands for none in the table. */
struct code *code_of_ref(uint32_t ref);

static inline struct code_id code_id_of(const struct codes *codes, const PyObject *object)
{
	return (struct code_id){
		at_pointer(object, codes->at_name), at_pointer(object, codes->at_file), at_pointer(object, codes->at_qualname),
		(uint32_t)at_int(object, codes->at_line), (uint32_t)at_int(object, codes->at_flags),
	};
}

static inline bool code_id_same(const struct code_id *a, const struct code_id *b)
{
	return !(((uintptr_t)a->name ^ (uintptr_t)b->name) | ((uintptr_t)a->file ^ (uintptr_t)b->file) | ((uintptr_t)a->qualname ^ (uintptr_t)b->qualname) |
	         (a->line ^ b->line) | (a->flags ^ b->flags));
}

/* Neither 0, nor one of a C function's. */
static inline uint64_t code_key(const struct code_id *id)
{
	uint64_t file = (uint64_t)(uintptr_t)id->file, qualname = (uint64_t)(uintptr_t)id->qualname;
	uint64_t all = ((uint64_t)(uintptr_t)id->name ^ (file << 21 | file >> 43)) + (qualname << 42 | qualname >> 22) + ((uint64_t)id->line << 32 | id->flags);

	return (all * 0x9e3779b97f4a7c15ull & ~(uint64_t)7) | 4;
}

static inline uint32_t code_slot(uint64_t key)
{
	return (uint32_t)(key >> (64 - CODES_BITS));
}

static inline struct code *code_find_in(struct codes *codes, PyObject *object)
{
	const uint32_t at = (uint32_t)((uint64_t)(uintptr_t)object >> 4) * 0x9e3779b1u >> (32 - CODES_RECENT_BITS);
	const struct code_id id = code_id_of(codes, object);

	if (__builtin_expect(codes->recent[at].object == object && code_id_same(&codes->recent[at].code->id, &id), 1))
		return codes->recent[at].code;
	return code_find_slow(object, at);
}

#endif
