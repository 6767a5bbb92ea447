/* The inside of a walker, shared by its parts: walk.c goes by tables and by code that is known, walk_search.c finds the caller of code that is neither. */
#ifndef INFERSCOPE_UNWIND_WALK_STATE_H
#define INFERSCOPE_UNWIND_WALK_STATE_H

#include "unwind/pages.h"
#include "unwind/tables.h"
#include "unwind/walk.h"

enum { WORD = 8 };

struct walker {
	const struct modules *modules;
	struct tables *tables;
	struct unwinder *unwinder;
	bool has_memory;
	struct pages pages; /* of the process, for one walk */
	const struct thread_copy *copy; /* of the walk at hand */
	uint64_t stack_used; /* so far, by the walk at hand */
};

/* The walk at hand. */
struct walk {
	struct walker *walker;
	uint64_t regs[DWARF_COUNT];
	uint64_t known;
	bool exact;        /* the frame was interrupted at its address, it is not a return address */
	uint32_t switches; /* frames that did not go up */
	enum walk_end end;
	bool first;        /* came to a frame whose table says that nobody called it */
};

/* From the copy of the walk at hand, from a file that is mapped there, or from the process. CONTEXT is a struct walker. 0 or -1. */
int walk_read_bytes(void *context, uint64_t addr, void *buffer, size_t size);
void walk_learn(struct walk *walk, uint32_t reg, uint64_t value);
/* Goes on to the end; frames are added to OUT. */
void walk_on(struct walk *walk, struct native_stack *out);
/* OUT has the innermost frame alone, which no table describes. Adds those further out if their beginning is found on the stack, and says so. */
void walk_search(struct walker *walker, struct native_stack *out);

#endif
