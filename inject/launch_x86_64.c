/* x86-64: debug registers, and the way to the gate. */
#include "inject/launch_gate.h"

#include <signal.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/user.h>

enum { CS_64_BIT = 0x33, RED_ZONE_WORD = 24 /* launch_gate_x86_64.S: push, sub $16 */ };

static int debug_register_set(pid_t pid, size_t number, uint64_t value)
{
	return ptrace(PTRACE_POKEUSER, pid, (void *)(offsetof(struct user, u_debugreg) + number * sizeof(long)), (void *)value) < 0 ? -1 : 0;
}

int gate_break_at(pid_t pid, remote_addr addr)
{
	/* Register 7, bit 0: stop at the address in register 0 when it is about to be executed. */
	if (debug_register_set(pid, 7, 0) < 0 || debug_register_set(pid, 0, addr) < 0)
		return -1;
	return addr ? debug_register_set(pid, 7, 1) : 0;
}

int gate_reached(pid_t pid, remote_addr addr)
{
	siginfo_t info;
	struct user_regs_struct registers;

	if (ptrace(PTRACE_GETSIGINFO, pid, NULL, &info) < 0)
		return -1;
	if (info.si_signo != SIGTRAP || info.si_code != TRAP_HWBKPT)
		return 0;
	return ptrace(PTRACE_GETREGS, pid, NULL, &registers) < 0 ? -1 : registers.rip == addr;
}

bool gate_is_native(pid_t pid)
{
	struct user_regs_struct registers;

	return ptrace(PTRACE_GETREGS, pid, NULL, &registers) == 0 && registers.cs == CS_64_BIT;
}

remote_addr gate_word(pid_t pid)
{
	struct user_regs_struct registers;

	/* Below the stack pointer, but inside the red zone, which no signal handler touches. */
	return ptrace(PTRACE_GETREGS, pid, NULL, &registers) < 0 ? 0 : registers.rsp - RED_ZONE_WORD;
}

int gate_go_to(pid_t pid, remote_addr addr)
{
	struct user_regs_struct registers;

	if (ptrace(PTRACE_GETREGS, pid, NULL, &registers) < 0)
		return -1;
	registers.rip = addr;
	registers.orig_rax = ~0ull;
	return ptrace(PTRACE_SETREGS, pid, NULL, &registers) < 0 ? -1 : 0;
}
