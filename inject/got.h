/*
 * The slots of global offset tables through which the target's libraries call certain functions of other libraries, found from outside. Everything is
 * read from the target's memory and bounds-checked: it may lie, or change while it is read.
 */
#ifndef INFERSCOPE_INJECT_GOT_H
#define INFERSCOPE_INJECT_GOT_H

#include "base/list.h"
#include "inject/inject.h"

struct image;

enum { GOT_NAMES_MAX = 8, GOT_DEFINERS_MAX = 8 };

struct got_slot {
	remote_addr at;  /* a multiple of 8 */
	uint64_t value;  /* as it was when it was read */
	uint32_t name;   /* index */
	bool bound;      /* false: the value lies in its own library's code, which will look the function up at the first call */
};

struct got {
	LIST(struct got_slot) slots; /* by address */
	remote_addr functions[GOT_NAMES_MAX]; /* where they are defined: in the library that most slots lead to; 0: that one has no such function */
	bool one_definer;   /* libc: no other library, nor the program itself, defines any of them */
	uint32_t libraries; /* with such slots */
	uint32_t read_only; /* of these, libraries with none that may be exchanged: read-only (bound at start, RELRO), or read as data, too (GLOB_DAT) */
	bool cut;           /* there are more slots */
};

/* Slots of IMAGE for NAMES, those that may not be written left out. Adds to OUT; *read_only: some were left out. False when out of memory, or there are too many. */
bool got_read(const struct image *image, const char *const *names, size_t name_count, struct got *out, bool *read_only);

/* The slot through which IMAGE calls the function NAME of another library, read-only ones too; 0 = none was found. False when out of memory. */
bool got_slot_find(const struct image *image, const char *name, remote_addr *at);

/*
 * The slots of all libraries of TARGET but its interpreter, libc, loader, any library that defines the functions, and memfds (the collector).
 * On success the slots are the caller's (got_done). 0, or -1 with ERR_MEMORY.
 */
int target_got(struct target *target, const char *const *names, size_t name_count, struct got *out, struct error *err);
void got_done(struct got *got);

#endif
