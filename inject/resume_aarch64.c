/* The kernel's restart rules (arch/arm64/kernel/signal.c), done by us for calls of which it is known which rule is theirs. */
#include <errno.h>
#include <linux/futex.h>
#include <time.h>

#include "inject/calls.h"
#include "inject/resume.h"

/* What the call does when a stop ends it, and no handler runs. */
enum rule {
	RULE_UNKNOWN,
	RULE_SYS,    /* is made again; EINTR after a handler without SA_RESTART */
	RULE_NOHAND, /* is made again; EINTR after any handler */
	RULE_BLOCK,  /* goes on by restart_syscall(); EINTR after any handler */
};

static enum rule rule_of(long nr, const uint64_t args[6])
{
	uint64_t operation = args[1] & FUTEX_CMD_MASK;

	switch (nr) {
	case SYS_futex:
		if (operation != FUTEX_WAIT && operation != FUTEX_WAIT_BITSET)
			return RULE_UNKNOWN;
		return args[3] ? RULE_BLOCK : RULE_SYS;
	case SYS_nanosleep:
	case SYS_restart_syscall:
		return RULE_BLOCK;
	case SYS_clock_nanosleep:
		return (args[1] & TIMER_ABSTIME) ? RULE_NOHAND : RULE_BLOCK;
	case SYS_ppoll: /* both write what is left of their limit to where that was read from */
	case SYS_pselect6:
		return RULE_NOHAND;
	case SYS_wait4:
	case SYS_waitid:
	case SYS_read:
	case SYS_readv:
	case SYS_flock:
	case SYS_fcntl:
	case SYS_accept: /* sockets: without a limit, else EINTR */
	case SYS_accept4:
	case SYS_recvfrom:
	case SYS_recvmsg:
		return RULE_SYS;
	default:
		return RULE_UNKNOWN;
	}
}

/* What is left of epoll_pwait's milliseconds; rounded up, so that it never ends early, and never turned into "at once". */
static uint64_t reduced_timeout(long nr, uint64_t argument, int64_t watched_ms)
{
	int32_t timeout = (int32_t)argument;

	if (nr != SYS_epoll_pwait || timeout <= 0 || watched_ms <= 0)
		return argument;
	return watched_ms >= timeout ? 1 : (uint64_t)(timeout - watched_ms);
}

long resume_call(const struct thread_registers *registers, const struct waiting *seen)
{
	return seen->known ? seen->nr : -1;
}

void resume_plan_held(const struct thread_registers *registers, const struct waiting *seen, int64_t watched_ms, struct resume *out)
{
	const struct user_regs_struct *r = &registers->general;
	enum rule rule;

	*out = (struct resume){ .pc = r->pc, .x0 = r->regs[0], .x3 = r->regs[3], .x8 = r->regs[8], .interrupted_pc = seen->pc, .interrupted_x0 = (uint64_t)-EINTR, .unfit = true };
	if (!seen->known || seen->nr < 0 || r->sp != seen->sp || (long)r->regs[8] != seen->nr)
		return;
	rule = rule_of(seen->nr, seen->args);
	if (r->pc == seen->pc - 4 && r->regs[0] == seen->args[0] && rule != RULE_UNKNOWN) {
		out->ask_restart = rule == RULE_SYS;
		if (rule == RULE_BLOCK)
			out->x8 = SYS_restart_syscall;
	} else if (r->pc == seen->pc && (int64_t)r->regs[0] == -EINTR && resume_repeats(seen->nr)) {
		out->pc = seen->pc - 4;
		out->x0 = seen->args[0];
		out->x3 = reduced_timeout(seen->nr, r->regs[3], watched_ms);
		out->repaired = true;
	} else {
		return;
	}
	out->heeds_signals = out->restarts = true;
	out->unfit = false;
}
