/* 64-bit ARM. */
#ifndef INFERSCOPE_INJECT_MACHINE_AARCH64_H
#define INFERSCOPE_INJECT_MACHINE_AARCH64_H

#ifndef __ASSEMBLER__

#include <elf.h>
#include <linux/audit.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/user.h>

enum {
	MACHINE_ELF = EM_AARCH64,
	MACHINE_JUMP_SLOT = R_AARCH64_JUMP_SLOT,
	MACHINE_GLOB_DAT = R_AARCH64_GLOB_DAT,
	MACHINE_ADDRESS_BITS = 48,
	MACHINE_PAGE = 4096,
	MACHINE_REGISTERS = 33, MACHINE_SP = 31, MACHINE_PC = 32, /* DWARF's numbers; it has none for the last */
	MACHINE_OLDEST_LIBC = 36, MACHINE_NEWEST_LIBC = 36, /* glibc 2.N that was tried */
	MACHINE_TID_OFFSET = 0xd0,   /* in a thread's control block; checked against the borrowed thread while it is held */
	MACHINE_BLOCK_BYTES = 1856,  /* of the control block lie below the thread pointer (glibc 2.36; each tells its own) */
	MACHINE_HEAD_BYTES = 16,     /* … and so many at it and above belong to it */
	MACHINE_BORROWS_RUNNING = 0, /* only threads that wait in a system call: what a stop has done to another cannot be told (machine_aarch64.c) */
};
#define MACHINE_AUDIT AUDIT_ARCH_AARCH64
#define MACHINE_NAME "aarch64"
#define DECODE_STEP 4

struct thread_registers {
	struct user_regs_struct general;
	uint64_t thread_pointer;
};

/* Written by one pwrite while the borrowed thread is held. No register is free when the stub leaves, so it leaves by a branch that is written for the place. */
struct stub_saved {
	uint32_t go_on, go_interrupted; /* the second one when a caught signal came meanwhile */
	uint64_t x[31];
	uint64_t pc;
	uint64_t on_x0, on_x3, on_x8; /* instead of those above, for the first */
	uint64_t interrupted_x0;      /* … for the second */
	uint64_t mask;
	uint64_t caught; /* signals whose coming means the second; 0 = none does */
	uint64_t ask_restart; /* only if the handler has no SA_RESTART */
	uint64_t borrowed_tid; /* as the attacher sees it; the stub does not ask */
};

struct resume {
	uint64_t pc, x0, x3, x8;
	uint64_t interrupted_pc, interrupted_x0; /* instead, if a caught signal came meanwhile */
	uint64_t part_done;       /* always 0 here */
	bool heeds_signals;       /* interrupted_pc counts */
	bool ask_restart;         /* … but not when the signal's handler has SA_RESTART */
	bool repaired;            /* the call had EINTR already, from our stop: it is made again */
	bool restarts;            /* the call goes on (in any of the ways) */
	bool unfit;               /* this moment will not do */
	bool leave;               /* its signal comes when it is let go, and EINTR belongs to that */
};

#endif
#endif
