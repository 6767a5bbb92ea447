/* Where the instructions of known functions lie: which function's is an address? For the files of unwind/ alone. */
#ifndef INFERSCOPE_UNWIND_PYBYTECODE_H
#define INFERSCOPE_UNWIND_PYBYTECODE_H

#include "base/list.h"
#include "base/map.h"
#include "unwind/pystack.h"

struct bytecode {
	uint64_t start, end; /* of the instructions, [start, end) */
	uint64_t code;       /* the code object, with its stamp as in struct pystack */
	uint32_t stamp;
	bool shared;         /* by another one, too: 3.10 keeps equal instructions of a module once */
};

struct bytecodes {
	struct pyreader *reader;
	LIST(struct bytecode) list; /* by start, none over another */
	struct map stamps;          /* of code objects that were looked at */
	uint64_t pages[1024];       /* a bit for each page (modulo their number) that holds instructions: most words are none's */
};

/* READER stays the caller's. */
void bytecodes_init(struct bytecodes *bytecodes, struct pyreader *reader);
void bytecodes_done(struct bytecodes *bytecodes);
/* Looks where CODE's instructions are, if that is not known yet. One that cannot be read is left out. */
void bytecodes_learn(struct bytecodes *bytecodes, uint64_t code, uint32_t stamp);
/* NULL: none's that is known. */
const struct bytecode *bytecodes_find(const struct bytecodes *bytecodes, uint64_t addr);

#endif
