/* The reader behind pystack.h, for the files of unwind/ alone. */
#ifndef INFERSCOPE_UNWIND_PYREADER_H
#define INFERSCOPE_UNWIND_PYREADER_H

#include "unwind/pages.h"
#include "unwind/pystack.h"

struct cpython_layout;

/* A code object that was looked at: by address, so that a frame costs no read of its code most of the time. */
struct known_code {
	uint64_t addr;    /* 0 = free */
	uint64_t round;   /* when it was looked at last */
	uint32_t stamp;
	bool internal;    /* of the interpreter's own making, in no traceback */
};

enum { KNOWN_CODES = 4096, KNOWN_ROUNDS = 64 /* then it is looked at again */, FRAMES_SEEN = 2048 };

struct pyreader {
	struct remote_memory memory;
	uint64_t runtime;
	int minor;
	const struct cpython_layout *layout;
	uint32_t tid_offset;
	uint64_t code_type; /* address of PyCode_Type, once seen */
	uint64_t round, torn;
	struct known_code codes[KNOWN_CODES];
	size_t code_count;
	uint64_t seen[FRAMES_SEEN]; /* frames of the walk at hand */
	struct pages pages;
	struct pystack stack;
};

/* Looks at the code object at ADDR, or remembers it. NULL when there is none. */
const struct known_code *reader_code(struct pyreader *reader, uint64_t addr);

int reader_read(const struct pyreader *reader, uint64_t addr, void *buffer, size_t size);
int reader_word(const struct pyreader *reader, uint64_t addr, uint64_t *out);
/* Could ADDR be the address of an object in user space? */
bool reader_plausible(uint64_t addr);

/* Little-endian numbers out of a struct that was read. */
uint64_t word_at(const unsigned char *bytes, int offset);
uint32_t half_at(const unsigned char *bytes, int offset);

#endif
