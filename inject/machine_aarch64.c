/*
 * 64-bit ARM: registers, control block, and what a stop does to a system call. The kernel (arch/arm64/kernel/signal.c, do_signal()) prepares a restart before a
 * tracer sees the thread: it stands on its svc again, with all its arguments, and only the kernel knows by which rule. Where it says EINTR instead, the
 * first argument is lost: it is taken from what /proc told before, or from the register that the C library keeps it in.
 */
#include <errno.h>
#include <linux/ptrace.h>
#include <string.h>
#include <sys/uio.h>

#include "inject/calls.h"
#include "inject/resume.h"
#include "inject/stub_layout.h"
#include "inject/tracee.h"

#define REGISTERS_GENERAL 1 /* NT_PRSTATUS */
#define REGISTERS_TLS 0x401 /* NT_ARM_TLS */
#define MODE_MASK 0x1f      /* of pstate: 0 = EL0 in 64-bit state */
#define SVC 0xd4000001u
#define LOOK_BACK 10        /* instructions before svc, among which the arguments are set */
#define BRANCH_BYTES (1ll << 27)

long raw_call(long nr, long a, long b, long c, long d, long e, long f)
{
	register long x8 __asm__("x8") = nr;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
	return x0;
}

static long set_get(long request, pid_t tid, long which, void *data, size_t size)
{
	struct iovec vector = { data, size };
	long error = raw_ptrace(request, tid, which, &vector);

	return error < 0 ? error : vector.iov_len == size ? 0 : -EIO;
}

long registers_read(pid_t tid, struct thread_registers *out)
{
	long error = set_get(PTRACE_GETREGSET, tid, REGISTERS_GENERAL, &out->general, sizeof out->general);

	return error < 0 ? error : set_get(PTRACE_GETREGSET, tid, REGISTERS_TLS, &out->thread_pointer, sizeof out->thread_pointer);
}

uint64_t registers_pc(const struct thread_registers *registers)
{
	return registers->general.pc;
}

uint64_t registers_sp(const struct thread_registers *registers)
{
	return registers->general.sp;
}

uint64_t registers_thread_pointer(const struct thread_registers *registers)
{
	return registers->thread_pointer;
}

bool registers_are_native(const struct thread_registers *registers)
{
	return (registers->general.pstate & MODE_MASK) == 0;
}

void registers_copy(const struct thread_registers *registers, uint64_t *out)
{
	memcpy(out, registers->general.regs, sizeof registers->general.regs);
	out[MACHINE_SP] = registers->general.sp;
	out[MACHINE_PC] = registers->general.pc;
}

uint64_t registers_argument(const struct thread_registers *registers)
{
	return registers->general.regs[0];
}

long registers_enter(pid_t tid, const struct thread_registers *registers, uint64_t entry)
{
	struct user_regs_struct regs = registers->general;

	regs.pc = entry;
	return set_get(PTRACE_SETREGSET, tid, REGISTERS_GENERAL, &regs, sizeof regs);
}

/* b TO, as it lies at FROM. False: too far away. */
static bool branch(uint64_t from, uint64_t to, uint32_t *out)
{
	int64_t distance = (int64_t)(to - from);

	*out = 0x14000000u | ((uint32_t)(distance >> 2) & 0x03ffffffu);
	return distance % 4 == 0 && distance >= -BRANCH_BYTES && distance < BRANCH_BYTES;
}

bool stub_save(struct stub_saved *saved, uint64_t slot_saved, const struct thread_registers *registers, const struct resume *resume)
{
	*saved = (struct stub_saved){ .pc = resume->pc, .on_x0 = resume->x0, .on_x3 = resume->x3, .on_x8 = resume->x8, .interrupted_x0 = resume->interrupted_x0 };
	memcpy(saved->x, registers->general.regs, sizeof saved->x);
	return branch(slot_saved + offsetof(struct stub_saved, go_on), resume->pc, &saved->go_on) &&
	       branch(slot_saved + offsetof(struct stub_saved, go_interrupted), resume->interrupted_pc, &saved->go_interrupted);
}

/* It does not point to itself; that it knows its tid must do. */
bool block_is_own(const unsigned char *bytes, uint64_t addr)
{
	return bytes && addr % 8 == 0;
}

/* glibc 2.36 asks __libc_single_threaded alone, on this machine. */
bool block_knows_threads(const unsigned char *bytes)
{
	return bytes;
}

void block_fill(unsigned char *bytes, uint64_t addr, uint64_t below, uint64_t dtv, const unsigned char *from)
{
	uint32_t one = 1;

	memcpy(bytes, &one, sizeof one); /* multiple_threads */
	memcpy(bytes + below, &dtv, sizeof dtv);
}

/* ---- a system call that a stop has ended ---- */

/* "mov x0, xN" or "sxtw x0, wN": N; -1 = another instruction. */
static int first_argument_from(uint32_t word)
{
	if ((word & 0xffe0ffff) == 0xaa0003e0)
		return (int)(word >> 16 & 0x1f);
	if ((word & 0xfffffc1f) == 0x93407c00)
		return (int)(word >> 5 & 0x1f);
	return -1;
}

static bool is_branch(uint32_t word)
{
	return (word >> 26 & 7) == 5;
}

/* The C library keeps arguments of calls that may be cancelled in registers that calls preserve, and copies them right before its svc. */
static bool first_argument(pid_t tid, const struct user_regs_struct *regs, uint64_t *out)
{
	uint32_t code[LOOK_BACK + 1];
	int from = -1;

	if (tracee_read(tid, regs->pc - sizeof code, code, sizeof code) < 0 || code[LOOK_BACK] != SVC)
		return false;
	for (int i = LOOK_BACK - 1; i >= 0 && from < 0; i--) {
		if (is_branch(code[i]))
			return false;
		from = first_argument_from(code[i]);
		if (from < 0 && (code[i] & 0x1f) == 0)
			return false; /* something else in register 0 */
		if (from < 19 || from > 28)
			continue;
		for (int j = i + 1; j < LOOK_BACK; j++)
			if ((int)(code[j] & 0x1f) == from)
				return false;
		*out = regs->regs[from];
		return true;
	}
	return false;
}

long tracee_call(const struct thread_registers *registers)
{
	return -1;
}

/* Not before the kernel, which does so by itself. */
bool tracee_needs_restart_call(const struct thread_registers *registers)
{
	return false;
}

bool tracee_was_waiting(const struct thread_registers *registers)
{
	return true; /* perhaps: what /proc told must show */
}

bool tracee_disturbed(pid_t tid, const struct thread_registers *registers)
{
	uint64_t argument;

	return (int64_t)registers->general.regs[0] == -EINTR && registers_are_native(registers) && resume_repeats((long)registers->general.regs[8]) &&
	       first_argument(tid, &registers->general, &argument);
}

void tracee_repeat_call(pid_t tid)
{
	struct thread_registers registers = { 0 };
	uint64_t argument;

	if (registers_read(tid, &registers) < 0 || !first_argument(tid, &registers.general, &argument))
		return;
	registers.general.regs[0] = argument;
	registers.general.pc -= 4;
	set_get(PTRACE_SETREGSET, tid, REGISTERS_GENERAL, &registers.general, sizeof registers.general);
}

/* A handler is likely to run: EINTR is its due. */
void tracee_pass_signal(pid_t tid, int signal)
{
	tracee_detach(tid, signal);
}

void resume_let_go(pid_t tid, const struct thread_registers *registers, const struct resume *resume)
{
	struct user_regs_struct regs = registers->general;

	if (resume->repaired && !resume->leave) {
		regs.pc = resume->pc;
		regs.regs[0] = resume->x0;
		regs.regs[3] = resume->x3;
		set_get(PTRACE_SETREGSET, tid, REGISTERS_GENERAL, &regs, sizeof regs);
	} else if (!resume->leave && tracee_disturbed(tid, registers)) {
		tracee_repeat_call(tid);
	}
	tracee_detach(tid, 0);
}
