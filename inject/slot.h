/*
 * A slot: room for one stub in the zero padding behind an executable segment. Only in objects that are never unloaded (libc, loader,
 * executable, libpython). Its state is read from the target each time, never remembered: other attachers use the same ones.
 */
#ifndef INFERSCOPE_INJECT_SLOT_H
#define INFERSCOPE_INJECT_SLOT_H

#include "inject/stub_layout.h"
#include "inject/target.h"

#define MAX_SLOTS 32

enum slot_state {
	SLOT_EMPTY,    /* zeros */
	SLOT_FINISHED, /* used by an attach that has ended altogether; its control page can be used again */
	SLOT_RESTING,  /* used a moment ago: its attacher, or its borrowed thread, may not be past it. Over in about a second */
	SLOT_BUSY,     /* a thread of an earlier attach is at work, or nobody can tell that it is not */
};

struct slot {
	uint64_t addr;
	enum slot_state state;
	uint64_t scratch; /* control page of the last attach, 0 = none */
	uint64_t used_ns;
	char where[64];   /* "libc.so.6+0x1c3f20" */
};

/* Fills LIST (MAX_SLOTS of them). Returns how many there are. */
size_t slots_find(const struct target *target, struct slot *list);
size_t slots_usable(const struct slot *list, size_t count);
/* The best one to use now: finished ones first, the longest unused; NULL = none. */
const struct slot *slots_choose(const struct slot *list, size_t count);

/* Is TID, as the target itself counts, one of its threads? */
bool slot_thread_lives(const struct target *target, pid_t inner_tid);

/* The master copy with DATA's values filled in; IMAGE has STUB_SIZE bytes. */
void slot_build(unsigned char *image, const struct stub_data *data);
/* Master values of the data part (constants set, the rest zero). */
void slot_data_init(struct stub_data *data);

#endif
