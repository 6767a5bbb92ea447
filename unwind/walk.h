/*
 * Native stacks from copies: registers and stack bytes of a thread at one moment, unwound later over the files' own call-frame tables.
 * Nothing is held meanwhile.
 */
#ifndef INFERSCOPE_UNWIND_WALK_H
#define INFERSCOPE_UNWIND_WALK_H

#include "abi/thread_counter.h"
#include "unwind/machine.h"
#include "unwind/modules.h"
#include "unwind/pystack.h"

enum { WALK_FRAMES_MAX = 512, THREAD_COPY_STACK_MAX = 1 << 16 };

/* A thread at one moment. */
struct thread_copy {
	pid_t tid;               /* as we see it */
	uint64_t at_ns;          /* CLOCK_MONOTONIC */
	uint64_t regs[DWARF_COUNT];
	uint64_t known;          /* bit N: regs[N] is known; a blocked thread's /proc/…/syscall tells only the stack pointer and the instruction */
	uint32_t stack_size;     /* bytes of `stack`, from regs[DWARF_SP] upwards */
	uint32_t stack_asked;    /* more than that: perf_event met a page that nobody had touched so far, and ended there */
	uint32_t gained_count;   /* the first so many of these are known: */
	uint64_t gained[SAMPLED_COUNTERS]; /* since the copy of this thread before */
	unsigned char stack[THREAD_COPY_STACK_MAX];
};

struct native_frame {
	uint64_t ip;             /* innermost: where it was; else the return address: look up ip - 1 */
	uint64_t sp, cfa;        /* of the frame: sp <= its locals < cfa */
	uint64_t preserved[PRESERVED_COUNT]; /* those of PRESERVED_REGISTERS, which what it called has kept for it; 0 = not known */
	uint32_t module;         /* id, 0 = in none */
};

enum walk_end {
	WALK_COMPLETE,           /* came to the thread's or process's first frame */
	WALK_CUT_DEPTH,          /* WALK_FRAMES_MAX */
	WALK_CUT_STACK,          /* the copy ends here and the rest could not be read */
	WALK_CUT_JIT,            /* code without unwind tables */
	WALK_CUT_REGISTER,       /* needs a register that is not known */
	WALK_CUT_TABLES,         /* a module that has none or damaged ones, or a frame that does not go up */
};

struct native_stack {
	uint32_t count;
	enum walk_end end;
	uint32_t stack_used;     /* bytes of the stack, from the copy's rsp upwards, that were asked for: more than the copy has, and the rest is of a later moment */
	bool searched;           /* the innermost frame's caller was searched for on the stack, as no table describes it (code in assembler) */
	struct native_frame frames[WALK_FRAMES_MAX]; /* innermost first */
};

struct walker;

/* MODULES stays the caller's and must outlive it. MEMORY reads what a copy does not hold (copied; its context must live as long; NULL read =
 * nothing more is read). A walker takes up to 40 MiB, most of it only when many large files are walked through. ERR_MEMORY. */
int walker_open(const struct modules *modules, const struct remote_memory *memory, struct walker **out, struct error *err);
void walker_close(struct walker *walker);
/* Always fills OUT: with at least the innermost frame. Never reads outside COPY but through MEMORY. */
void walker_walk(struct walker *walker, const struct thread_copy *copy, struct native_stack *out);
/* Bytes from rsp to the furthest place of the stack that a register points to, if that lies beyond the copy: frames reach as far at least. Else 0. */
uint32_t thread_copy_reach(const struct thread_copy *copy);
/* After modules_refresh() brought changes. */
void walker_forget(struct walker *walker);
const char *walk_end_name(enum walk_end end); /* "complete", "cut: …", for people */

#endif
