/* The kernel's restart rules (arch/x86/kernel/signal.c), done by us. */
#include <errno.h>
#include <sys/socket.h>

#include "inject/calls.h"
#include "inject/resume.h"

/* Kernel-internal results that a tracer sees at a stop. */
#define RESTART_SYS (-512)
#define RESTART_NOINTR (-513)
#define RESTART_NOHAND (-514)
#define RESTART_BLOCK (-516)

bool resume_is_part(const struct user_regs_struct *regs)
{
	long nr = (long)regs->orig_rax, result = (long)regs->rax;
	bool all = nr == SYS_write || nr == SYS_sendto || (nr == SYS_recvfrom && (regs->r10 & (MSG_WAITALL | MSG_PEEK)) == MSG_WAITALL);

	return all && result > 0 && (uint64_t)result < regs->rdx;
}

/* What is left of epoll_wait's milliseconds; rounded up, so that it never ends early, and never turned into "at once". */
static uint64_t reduced_timeout(const struct user_regs_struct *regs, int64_t watched_ms)
{
	int32_t timeout = (int32_t)regs->r10;

	if (((long)regs->orig_rax != SYS_epoll_wait && (long)regs->orig_rax != SYS_epoll_pwait) || timeout <= 0 || watched_ms <= 0)
		return regs->r10;
	return watched_ms >= timeout ? 1 : (uint64_t)(timeout - watched_ms);
}

void resume_plan(const struct user_regs_struct *regs, int64_t watched_ms, struct resume *out)
{
	long nr = (long)regs->orig_rax, result = (long)regs->rax;

	*out = (struct resume){ .rip = regs->rip, .rax = regs->rax, .r10 = regs->r10, .interrupted_rip = regs->rip, .interrupted_rax = (uint64_t)-EINTR };
	if (nr < 0)
		return;
	if (resume_is_part(regs)) {
		out->part_done = out->interrupted_rax = regs->rax;
		out->heeds_signals = out->restarts = true;
		return;
	}
	switch (result) {
	case RESTART_SYS:
		out->ask_restart = true;
		/* fall through */
	case RESTART_NOHAND:
		out->heeds_signals = true;
		/* fall through */
	case RESTART_NOINTR:
		out->rip = regs->rip - 2;
		out->rax = regs->orig_rax;
		out->restarts = true;
		break;
	case RESTART_BLOCK:
		out->rip = regs->rip - 2;
		out->rax = SYS_restart_syscall;
		out->heeds_signals = true;
		out->restarts = true;
		break;
	case -EINTR:
		if (!resume_repeats(nr))
			break;
		out->rip = regs->rip - 2;
		out->rax = regs->orig_rax;
		out->r10 = reduced_timeout(regs, watched_ms);
		out->heeds_signals = true;
		out->repaired = true;
		out->restarts = true;
		break;
	default:
		break;
	}
}
