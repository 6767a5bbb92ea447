/*
 * The walk over one thread's frames, as addresses that nobody has looked behind yet: no allocation, no lock, a read per page, so that it may
 * run while the thread is held. For the files of unwind/ alone.
 */
#ifndef INFERSCOPE_UNWIND_PYFRAMES_H
#define INFERSCOPE_UNWIND_PYFRAMES_H

#include "unwind/pages.h"
#include "unwind/pystack.h"

struct cpython_layout;

enum { WALKS_REMEMBERED = 64, FRAMES_SEEN = 2048, PYFRAMES_MAX = PYSTACK_FRAMES_MAX + 64 /* frames of the interpreter's own making go later */ };

struct pyframe {
	uint64_t code;
	uint64_t address; /* of the frame */
	uint64_t instr;   /* f_lasti as an int up to 3.10, then the address of the instruction */
	uint64_t entry;   /* as in struct pystack */
};

/* What a walk leaves; of `frames` only the first COUNT. */
struct pyframes {
	uint64_t tstate;
	int32_t tid;
	uint32_t count;
	uint8_t cut, holds_gil; /* flags, but bytes of anybody when a look is read back */
	uint8_t moved; /* THREAD_MOVED */
	struct pyframe frames[PYFRAMES_MAX];
};

/* Which pages a walk needed: the next one over the same thread reads them by one call: in less time, so that it is torn less often. */
struct walked {
	uint64_t tstate;
	uint32_t count;
	uint64_t pages[PAGES_USED_MAX];
};

struct pywalk {
	struct remote_memory memory;
	const struct cpython_layout *layout;
	int minor;
	uint64_t runtime;
	uint32_t tid_offset;
	/* of the walk at hand */
	uint64_t tstate, cframe, root; /* cframe: of the run of frames at hand; root: where the chain of cframes ends */
	uint32_t run;                  /* where that run begins */
	uint64_t seen[FRAMES_SEEN];
	struct pages pages;
	struct walked walked[WALKS_REMEMBERED]; /* by a hash of the thread state */
	struct pyframes frames;
};

enum thread_found {
	THREAD_TORN = -1,
	THREAD_IDLE = 0,  /* no frames */
	THREAD_READ = 1,
	THREAD_MOVED = 2, /* it has called or returned meanwhile; frames that it left may have been taken for live ones */
};

struct thread_expected {
	uint64_t interp;
	uint64_t thread_id; /* 0 = any */
};

/* Reads the frames of the thread state at ADDR into walk->frames. *NEXT is the one after it in the interpreter's list, 0 when that is not known. */
enum thread_found walk_thread(struct pywalk *walk, uint64_t addr, struct thread_expected expected, uint64_t *next);
/* tid and thread_id of the thread state at ADDR, and the next one; -1: it is none of INTERP's. */
int walk_identity(struct pywalk *walk, uint64_t addr, uint64_t interp, pid_t *tid, uint64_t *thread_id, uint64_t *next);

int walk_read(const struct pywalk *walk, uint64_t addr, void *buffer, size_t size);
int walk_word(const struct pywalk *walk, uint64_t addr, uint64_t *out);
/* Could ADDR be the address of an object in user space? */
bool address_plausible(uint64_t addr);

/* Little-endian numbers out of a struct that was read. */
uint64_t word_at(const unsigned char *bytes, int offset);
uint32_t half_at(const unsigned char *bytes, int offset);

#endif
