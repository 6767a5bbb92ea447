/* x86-64: registers, control block, and what a stop does to a system call. */
#include <errno.h>
#include <linux/ptrace.h>
#include <stddef.h>
#include <string.h>

#include "inject/calls.h"
#include "inject/resume.h"
#include "inject/stub_layout.h"
#include "inject/tracee.h"

#define FLAT_CODE_SEGMENT 0x33 /* __USER_CS of a 64-bit task */
#define RESTART_BLOCK (-516)   /* kernel: go on by restart_syscall() */
#define RESTART_NOHAND (-514)  /* kernel: make the call again, or EINTR if a handler runs */

long raw_call(long nr, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long result;

	__asm__ volatile("syscall" : "=a"(result) : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
	return result;
}

long registers_read(pid_t tid, struct thread_registers *out)
{
	return raw_ptrace(PTRACE_GETREGS, tid, 0, &out->general);
}

uint64_t registers_pc(const struct thread_registers *registers)
{
	return registers->general.rip;
}

uint64_t registers_sp(const struct thread_registers *registers)
{
	return registers->general.rsp;
}

uint64_t registers_thread_pointer(const struct thread_registers *registers)
{
	return registers->general.fs_base;
}

bool registers_are_native(const struct thread_registers *registers)
{
	return registers->general.cs == FLAT_CODE_SEGMENT;
}

void registers_copy(const struct thread_registers *registers, uint64_t *out)
{
	const struct user_regs_struct *r = &registers->general;
	const uint64_t regs[MACHINE_REGISTERS] = { r->rax, r->rdx, r->rcx, r->rbx, r->rsi, r->rdi, r->rbp, r->rsp, r->r8, r->r9, r->r10, r->r11, r->r12, r->r13, r->r14, r->r15, r->rip };

	memcpy(out, regs, sizeof regs);
}

uint64_t registers_argument(const struct thread_registers *registers)
{
	return registers->general.rdi;
}

long registers_enter(pid_t tid, const struct thread_registers *registers, uint64_t entry)
{
	struct user_regs_struct regs = registers->general;

	regs.rip = entry;
	regs.orig_rax = (unsigned long long)-1;
	return raw_ptrace(PTRACE_SETREGS, tid, 0, &regs);
}

bool stub_save(struct stub_saved *saved, uint64_t slot_saved, const struct thread_registers *registers, const struct resume *resume)
{
	const struct user_regs_struct *r = &registers->general;

	*saved = (struct stub_saved){
		r->r15, r->r14, r->r13, r->r12, r->rbp, r->rbx, r->r11, resume->r10, r->r9, r->r8, resume->rax, r->rcx, r->rdx, r->rsi, r->rdi,
		resume->rip, resume->interrupted_rip, resume->interrupted_rax,
		resume->part_done, r->orig_rax, r->rsi + resume->part_done, r->rdx - resume->part_done,
	};
	return true;
}

bool block_is_own(const unsigned char *bytes, uint64_t addr)
{
	uint64_t self, again;

	memcpy(&self, bytes, sizeof self);
	memcpy(&again, bytes + 0x10, sizeof again);
	return self == addr && again == self;
}

void block_fill(unsigned char *bytes, uint64_t addr, uint64_t below, uint64_t dtv, const unsigned char *from)
{
	uint32_t one = 1;

	memcpy(bytes, &addr, 8);
	memcpy(bytes + 0x08, &dtv, 8);
	memcpy(bytes + 0x10, &addr, 8);
	memcpy(bytes + 0x18, &one, 4);
	memcpy(bytes + 0x28, from + 0x28, 16); /* stack guard, pointer guard: the same in all threads */
	memcpy(bytes + 0x48, from + 0x48, 4);  /* feature_1 */
}

bool block_knows_threads(const unsigned char *bytes)
{
	uint32_t multiple;

	memcpy(&multiple, bytes + 0x18, sizeof multiple);
	return multiple;
}

long resume_call(const struct thread_registers *registers, const struct waiting *seen)
{
	return tracee_call(registers);
}

void resume_plan_held(const struct thread_registers *registers, const struct waiting *seen, int64_t watched_ms, struct resume *out)
{
	resume_plan(&registers->general, watched_ms, out);
}

void resume_let_go(pid_t tid, const struct thread_registers *registers, const struct resume *resume)
{
	struct user_regs_struct regs = registers->general;

	if (resume->repaired && resume->r10 != regs.r10) {
		regs.r10 = resume->r10;
		raw_ptrace(PTRACE_SETREGS, tid, 0, &regs);
	}
	if (resume->repaired)
		tracee_repeat_call(tid);
	tracee_detach(tid, 0);
}

long tracee_call(const struct thread_registers *registers)
{
	return (long)registers->general.orig_rax >= 0 ? (long)registers->general.orig_rax : -1;
}

bool tracee_needs_restart_call(const struct thread_registers *registers)
{
	return (long)registers->general.orig_rax >= 0 && (long)registers->general.rax == RESTART_BLOCK;
}

bool tracee_was_waiting(const struct thread_registers *registers)
{
	long result = (long)registers->general.rax;

	return (long)registers->general.orig_rax >= 0 && (result == -512 || result == -513 || result == -514 || result == -516 || result == -EINTR);
}

bool tracee_disturbed(pid_t tid, const struct thread_registers *registers)
{
	struct ptrace_syscall_info info = { 0 };

	/* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): the kernel has filled them */
	if ((long)registers->general.rax != -EINTR || (long)registers->general.orig_rax < 0 || !registers_are_native(registers) || !resume_repeats((long)registers->general.orig_rax))
		return false;
	/* 64-bit code may make 32-bit calls (int 0x80), whose numbers mean others. Kernels before 5.3 do not tell. */
	if (raw_ptrace(PTRACE_GET_SYSCALL_INFO, tid, sizeof info, &info) <= 0)
		return true;
	return info.arch == AUDIT_ARCH_X86_64;
}

void tracee_repeat_call(pid_t tid)
{
	raw_ptrace(PTRACE_POKEUSR, tid, offsetof(struct user, regs.rax), (void *)(long)RESTART_NOHAND);
}

void tracee_pass_signal(pid_t tid, int signal)
{
	struct thread_registers registers = { 0 };

	if (registers_read(tid, &registers) == 0 && tracee_disturbed(tid, &registers))
		tracee_repeat_call(tid);
	tracee_detach(tid, signal);
}
