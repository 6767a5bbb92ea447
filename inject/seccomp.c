/* A BPF interpreter of the subset that seccomp allows, and the list of calls it is asked about. */
#include "inject/seccomp.h"

#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "inject/machine.h"

#define KILL SECCOMP_RET_KILL_PROCESS

static bool load_word(const struct seccomp_data *data, uint32_t offset, uint32_t *out)
{
	if (offset > sizeof *data - 4 || offset % 4 != 0)
		return false;
	memcpy(out, (const char *)data + offset, 4);
	return true;
}

static bool alu(uint16_t code, uint32_t *a, uint32_t operand)
{
	switch (BPF_OP(code)) {
	case BPF_ADD: *a += operand; return true;
	case BPF_SUB: *a -= operand; return true;
	case BPF_MUL: *a *= operand; return true;
	case BPF_OR: *a |= operand; return true;
	case BPF_AND: *a &= operand; return true;
	case BPF_XOR: *a ^= operand; return true;
	case BPF_NEG: *a = 0u - *a; return true;
	case BPF_LSH: *a = operand < 32 ? *a << operand : 0; return true;
	case BPF_RSH: *a = operand < 32 ? *a >> operand : 0; return true;
	case BPF_DIV:
		if (operand == 0)
			return false;
		*a /= operand;
		return true;
	default: return false;
	}
}

static bool condition(uint16_t code, uint32_t a, uint32_t operand)
{
	switch (BPF_OP(code)) {
	case BPF_JEQ: return a == operand;
	case BPF_JGT: return a > operand;
	case BPF_JGE: return a >= operand;
	case BPF_JSET: return (a & operand) != 0;
	default: return false;
	}
}

uint32_t seccomp_run(const struct sock_filter *filter, size_t count, const struct seccomp_data *data)
{
	uint32_t a = 0, x = 0, scratch[BPF_MEMWORDS] = { 0 };
	size_t at = 0;

	/* Jumps only go forward, so this ends. */
	while (at < count) {
		const struct sock_filter *step = &filter[at++];
		uint32_t operand = BPF_SRC(step->code) == BPF_X ? x : step->k;

		switch (BPF_CLASS(step->code)) {
		case BPF_LD:
			if (BPF_MODE(step->code) == BPF_IMM)
				a = step->k;
			else if (BPF_MODE(step->code) == BPF_MEM && step->k < BPF_MEMWORDS)
				a = scratch[step->k];
			else if (BPF_MODE(step->code) == BPF_LEN)
				a = sizeof *data;
			else if (BPF_MODE(step->code) != BPF_ABS || !load_word(data, step->k, &a))
				return KILL;
			break;
		case BPF_LDX:
			if (BPF_MODE(step->code) == BPF_IMM)
				x = step->k;
			else if (BPF_MODE(step->code) == BPF_MEM && step->k < BPF_MEMWORDS)
				x = scratch[step->k];
			else if (BPF_MODE(step->code) == BPF_LEN)
				x = sizeof *data;
			else
				return KILL;
			break;
		case BPF_ST:
		case BPF_STX:
			if (step->k >= BPF_MEMWORDS)
				return KILL;
			scratch[step->k] = BPF_CLASS(step->code) == BPF_ST ? a : x;
			break;
		case BPF_ALU:
			if (!alu(step->code, &a, operand))
				return KILL;
			break;
		case BPF_JMP:
			if (BPF_OP(step->code) == BPF_JA)
				at += step->k;
			else
				at += condition(step->code, a, operand) ? step->jt : step->jf;
			break;
		case BPF_RET:
			return BPF_RVAL(step->code) == BPF_A ? a : step->k;
		case BPF_MISC:
			if (BPF_MISCOP(step->code) == BPF_TAX)
				x = a;
			else
				a = x;
			break;
		}
	}
	return KILL;
}

/* What our threads call in the target, with the arguments a filter may look at. `needed`: without it there is no attach. */
static const struct asked {
	int nr;
	bool needed;
	uint64_t args[6];
} asked[] = {
	{ SYS_mmap, true, { 0x10000, 0x80000, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | 0x104000, UINT64_MAX, 0 } },
	{ SYS_rt_sigprocmask, true, { 2, 0, 0, 8, 0, 0 } },
	{ SYS_clone, true, { 0 /* flags filled in */ } },
	{ SYS_rt_sigpending, false, { 0, 8 } },
	{ SYS_rt_sigaction, false, { 1, 0, 0, 8 } },
	{ SYS_memfd_create, true, { 0, 1 } },
	{ SYS_fcntl, false, { 3, 1030, 3 } },
	{ SYS_nanosleep, false, { 0 } },
	{ SYS_clock_nanosleep, false, { 0 } }, /* nanosleep() of glibc 2.34 and later */
	{ SYS_clock_gettime, false, { 2 } },
	{ SYS_prctl, false, { 15 } },
	{ SYS_sched_getaffinity, false, { 0, 128 } },
	{ SYS_prlimit64, false, { 0, 3 } },
	{ SYS_lseek, false, { 3, 0, 1 } },
	{ SYS_close, false, { 3 } },
	{ SYS_munmap, false, { 0 } },
	{ SYS_exit, true, { 0 } },
	{ SYS_gettid, false, { 0 } },
	{ SYS_clone3, false, { 0, 88 } }, /* pthread_create falls back to clone when it is refused */
	{ SYS_mmap, true, { 0, 0x20000, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, UINT64_MAX, 0 } },
	{ SYS_mmap, true, { 0, 0x1000, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED | MAP_DENYWRITE, 3, 0x1000 } },
	{ SYS_mprotect, true, { 0x10000, 0x1000, PROT_READ | PROT_WRITE } },
	{ SYS_set_robust_list, false, { 0, 24 } },
	{ SYS_rseq, false, { 0, 32, 0, 0x53053053 } },
	{ SYS_openat, true, { (uint64_t)-100, 0, 0x80000 } },
	{ SYS_read, true, { 3 } },
	{ SYS_pread64, false, { 3 } },
	{ SYS_newfstatat, false, { 3, 0, 0, 0x1000 } },
	{ SYS_fstat, false, { 3 } },
	{ SYS_madvise, false, { 0, 0x1000, 4 } },
	{ SYS_munlock, false, { 0, 0x1000 } }, /* in a process that has locked memory */
	{ SYS_futex, false, { 0, 0x80 } },
	{ SYS_brk, false, { 0 } },
	{ SYS_sched_yield, false, { 0 } },
	{ SYS_ftruncate, false, { 3 } },
};

enum seccomp_verdict seccomp_judge(const struct sock_filter *filter, size_t count, uint64_t code_addr, uint64_t clone_flags, bool locked, int *nr)
{
	enum seccomp_verdict verdict = SECCOMP_FINE;

	for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
		struct seccomp_data data = { .nr = asked[i].nr, .arch = MACHINE_AUDIT, .instruction_pointer = code_addr };
		uint32_t action;

		if (data.nr == SYS_munlock && !locked)
			continue;
		memcpy(data.args, asked[i].args, sizeof data.args);
		if (data.nr == SYS_clone)
			data.args[0] = clone_flags;
		action = seccomp_run(filter, count, &data) & SECCOMP_RET_ACTION_FULL;
		if (action == SECCOMP_RET_ALLOW || action == SECCOMP_RET_LOG)
			continue;
		/* Anything but an errno: SIGSYS with all signals blocked kills, and a supervisor's answer may never come. */
		if (action != SECCOMP_RET_ERRNO) {
			*nr = data.nr;
			return SECCOMP_KILLS;
		}
		if (asked[i].needed && verdict == SECCOMP_FINE) {
			*nr = data.nr;
			verdict = SECCOMP_FORBIDS;
		}
	}
	return verdict;
}
