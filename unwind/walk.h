/*
 * Native stacks from copies: registers and stack bytes of a thread at one moment, unwound later by libunwind over the files' own
 * call-frame tables. Nothing is held meanwhile. x86-64.
 */
#ifndef INFERSCOPE_UNWIND_WALK_H
#define INFERSCOPE_UNWIND_WALK_H

#include "unwind/modules.h"
#include "unwind/pystack.h"

/* DWARF numbers of x86-64 registers. */
enum { REG_RAX = 0, REG_RDX = 1, REG_RCX = 2, REG_RBX = 3, REG_RSI = 4, REG_RDI = 5, REG_RBP = 6, REG_RSP = 7, REG_R8 = 8, REG_R15 = 15, REG_RIP = 16, REG_COUNT = 17 };

enum { WALK_FRAMES_MAX = 512, THREAD_COPY_STACK_MAX = 1 << 16 };

/* A thread at one moment. */
struct thread_copy {
	pid_t tid;               /* as we see it */
	uint64_t at_ns;          /* CLOCK_MONOTONIC */
	uint64_t regs[REG_COUNT];
	uint32_t known;          /* bit N: regs[N] is known; a blocked thread's /proc/…/syscall tells only rsp and rip */
	uint32_t stack_size;     /* bytes of `stack`, from regs[REG_RSP] upwards */
	unsigned char stack[THREAD_COPY_STACK_MAX];
};

struct native_frame {
	uint64_t ip;             /* innermost: where it was; else the return address: look up ip - 1 */
	uint64_t sp, cfa;        /* of the frame: sp <= its locals < cfa */
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
	struct native_frame frames[WALK_FRAMES_MAX]; /* innermost first */
};

struct walker;

/* MODULES stays the caller's and must outlive it. MEMORY reads what a copy does not hold (copied; NULL read = nothing more is read). */
int walker_open(const struct modules *modules, const struct remote_memory *memory, struct walker **out, struct error *err);
void walker_close(struct walker *walker);
/* Always fills OUT: with at least the innermost frame. Never reads outside COPY but through MEMORY. */
void walker_walk(struct walker *walker, const struct thread_copy *copy, struct native_stack *out);
/* After modules_refresh() brought changes. */
void walker_forget(struct walker *walker);
const char *walk_end_name(enum walk_end end); /* "complete", "cut: …", for people */

#endif
