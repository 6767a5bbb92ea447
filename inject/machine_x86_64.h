/* x86-64. */
#ifndef INFERSCOPE_INJECT_MACHINE_X86_64_H
#define INFERSCOPE_INJECT_MACHINE_X86_64_H

#define STUB_SAVED_WORDS 26 /* stub_x86_64.S */

#ifndef __ASSEMBLER__

#include <elf.h>
#include <linux/audit.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/user.h>

enum {
	MACHINE_ELF = EM_X86_64,
	MACHINE_JUMP_SLOT = R_X86_64_JUMP_SLOT,
	MACHINE_GLOB_DAT = R_X86_64_GLOB_DAT,
	MACHINE_ADDRESS_BITS = 47,
	MACHINE_PAGE = 4096,
	MACHINE_REGISTERS = 17, MACHINE_SP = 7, MACHINE_PC = 16, /* DWARF's numbers */
	MACHINE_OLDEST_LIBC = 31, MACHINE_NEWEST_LIBC = 43, /* glibc 2.N that was tried */
	MACHINE_TID_OFFSET = 0x2d0, /* in a thread's control block, glibc 2.31 to 2.43; checked against the borrowed thread while it is held */
	MACHINE_BLOCK_BYTES = 0,    /* of the control block lie below the thread pointer */
	MACHINE_HEAD_BYTES = 0,     /* … and so many at it and above belong to it, where it lies below */
	MACHINE_BORROWS_RUNNING = 1, /* threads in no system call, too */
};
#define MACHINE_AUDIT AUDIT_ARCH_X86_64
#define DECODE_STEP 1
#define MACHINE_NAME "x86-64"

struct thread_registers {
	struct user_regs_struct general;
};

/* Written by one pwrite while the borrowed thread is held. */
struct stub_saved {
	uint64_t r15, r14, r13, r12, rbp, rbx, r11, r10, r9, r8, rax, rcx, rdx, rsi, rdi;
	uint64_t pc;
	uint64_t interrupted_rip, interrupted_rax; /* taken instead when a caught signal came meanwhile */
	uint64_t part_done; /* bytes; != 0: the stub makes REST_CALL, and the thread goes on with the sum */
	uint64_t rest_call, rest_address, rest_count; /* system call, its second and third argument */
	uint64_t mask;
	uint64_t caught; /* signals whose coming means interrupted_rip; 0 = none does */
	uint64_t ask_restart; /* only if the handler has no SA_RESTART */
	uint64_t borrowed_tid; /* as the attacher sees it; the stub does not ask */
};

struct resume {
	uint64_t rip, rax, r10;
	uint64_t interrupted_rip, interrupted_rax; /* instead, if a caught signal came meanwhile */
	uint64_t part_done;       /* bytes it had done when it was stopped: the same call goes on behind them; 0 = not such a call, or all done */
	bool heeds_signals;       /* interrupted_rip counts */
	bool ask_restart;         /* … but not when the signal's handler has SA_RESTART */
	bool repaired;            /* the call had EINTR already, from our stop: it is made again */
	bool restarts;            /* the call goes on (in any of the ways) */
	bool unfit;               /* this moment will not do: never, here */
	bool leave;               /* its signal comes when it is let go, and EINTR belongs to that: the kernel sees to that by itself */
};

/* Unless it was done with a file proper (which may also end early because a limit was reached), this call was cut short by our stop. */
bool resume_is_part(const struct user_regs_struct *regs);
/* WATCHED_MS: how long the thread is known to have been in this very call; taken off its time limit. */
void resume_plan(const struct user_regs_struct *regs, int64_t watched_ms, struct resume *out);

#endif
#endif
