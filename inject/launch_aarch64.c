/* 64-bit ARM: hardware break points, and the way to the gate. */
#include "inject/launch_gate.h"

#include <elf.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>

#define REGISTERS_BREAK 0x402 /* NT_ARM_HW_BREAK */

enum {
	MODE_MASK = 0x1f,
	ON_EXECUTION = 0xf << 5 | 2 << 1 | 1, /* of all four bytes of an instruction, in user mode, enabled */
	GATE_STACK = 32, /* launch_gate_aarch64.S */
};

/* struct user_hwdebug_state with the first register alone. */
struct breaks {
	uint32_t info, pad;
	struct { uint64_t addr; uint32_t control, pad; } first;
};

static int registers_move(int request, pid_t pid, struct user_regs_struct *registers)
{
	struct iovec vector = { registers, sizeof *registers };

	return ptrace(request, pid, (void *)NT_PRSTATUS, &vector) < 0 ? -1 : 0;
}

int gate_break_at(pid_t pid, remote_addr addr)
{
	struct breaks breaks = { .first = { .addr = addr, .control = addr ? ON_EXECUTION : 0 } };
	struct iovec vector = { &breaks, sizeof breaks };

	return ptrace(PTRACE_SETREGSET, pid, (void *)REGISTERS_BREAK, &vector) < 0 ? -1 : 0;
}

int gate_reached(pid_t pid, remote_addr addr)
{
	siginfo_t info;
	struct user_regs_struct registers;

	if (ptrace(PTRACE_GETSIGINFO, pid, NULL, &info) < 0)
		return -1;
	if (info.si_signo != SIGTRAP || info.si_code != TRAP_HWBKPT)
		return 0;
	return registers_move(PTRACE_GETREGSET, pid, &registers) < 0 ? -1 : registers.pc == addr;
}

bool gate_is_native(pid_t pid)
{
	struct user_regs_struct registers;

	return registers_move(PTRACE_GETREGSET, pid, &registers) == 0 && (registers.pstate & MODE_MASK) == 0;
}

remote_addr gate_word(pid_t pid)
{
	struct user_regs_struct registers;

	return registers_move(PTRACE_GETREGSET, pid, &registers) < 0 ? 0 : registers.sp - GATE_STACK;
}

int gate_go_to(pid_t pid, remote_addr addr)
{
	struct user_regs_struct registers;

	if (registers_move(PTRACE_GETREGSET, pid, &registers) < 0)
		return -1;
	registers.pc = addr;
	registers.sp -= GATE_STACK;
	return registers_move(PTRACE_SETREGSET, pid, &registers);
}
