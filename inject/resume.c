/* The kernel's restart rules (arch/x86/kernel/signal.c) and, beyond them, the calls whose EINTR after a stop must be repaired. */
#include "inject/resume.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>

/* Kernel-internal results that a tracer sees at a stop. */
#define RESTART_SYS (-512)
#define RESTART_NOINTR (-513)
#define RESTART_NOHAND (-514)
#define RESTART_BLOCK (-516)

#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif
#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif
#ifndef SYS_io_pgetevents
#define SYS_io_pgetevents 333
#endif

enum limit { LIMIT_NONE, LIMIT_MS_ARG4, LIMIT_SPEC_ARG3, LIMIT_SPEC_ARG4, LIMIT_SPEC_ARG5, LIMIT_SOCKET };

/*
 * How a call takes a ptrace stop without any handler (signal(7); each row with a test in tests/live/inject was seen on 6.18).
 * EXACT: the kernel restarts it. PRONE: it says EINTR; socket calls only with SO_RCVTIMEO or SO_SNDTIMEO. PARTLY: it says how much it
 * did so far; LOSSY: the same, and nobody can go on with it. poll's kin with a time limit in read-only memory, and read() of a socket with a limit, say EINTR, too, though they are EXACT.
 */
enum manner { EXACT, PRONE, PARTLY, LOSSY };

static const struct call {
	long nr;
	const char *name;
	enum manner manner;
	enum limit limit;
} calls[] = {
	{ SYS_futex, "futex", EXACT, LIMIT_NONE },
	{ SYS_futex_waitv, "futex_waitv", EXACT, LIMIT_NONE },
	{ SYS_nanosleep, "nanosleep", EXACT, LIMIT_NONE },
	{ SYS_clock_nanosleep, "clock_nanosleep", EXACT, LIMIT_NONE },
	{ SYS_restart_syscall, "restart_syscall", EXACT, LIMIT_NONE },
	{ SYS_poll, "poll", EXACT, LIMIT_NONE },
	{ SYS_ppoll, "ppoll", EXACT, LIMIT_NONE },
	{ SYS_select, "select", EXACT, LIMIT_NONE },
	{ SYS_pselect6, "pselect6", EXACT, LIMIT_NONE },
	{ SYS_wait4, "wait4", EXACT, LIMIT_NONE },
	{ SYS_waitid, "waitid", EXACT, LIMIT_NONE },
	{ SYS_read, "read", EXACT, LIMIT_NONE },
	{ SYS_readv, "readv", EXACT, LIMIT_NONE },
	{ SYS_pread64, "pread64", EXACT, LIMIT_NONE },
	{ SYS_write, "write", PARTLY, LIMIT_NONE },
	{ SYS_writev, "writev", LOSSY, LIMIT_NONE },
	{ SYS_pause, "pause", EXACT, LIMIT_NONE },
	{ SYS_rt_sigsuspend, "rt_sigsuspend", EXACT, LIMIT_NONE },
	{ SYS_flock, "flock", EXACT, LIMIT_NONE },
	{ SYS_fcntl, "fcntl", EXACT, LIMIT_NONE },
	{ SYS_epoll_wait, "epoll_wait", PRONE, LIMIT_MS_ARG4 },
	{ SYS_epoll_pwait, "epoll_pwait", PRONE, LIMIT_MS_ARG4 },
	{ SYS_epoll_pwait2, "epoll_pwait2", PRONE, LIMIT_SPEC_ARG4 },
	{ SYS_rt_sigtimedwait, "rt_sigtimedwait", PRONE, LIMIT_SPEC_ARG3 },
	{ SYS_semop, "semop", PRONE, LIMIT_NONE },
	{ SYS_semtimedop, "semtimedop", PRONE, LIMIT_SPEC_ARG4 },
	{ SYS_msgsnd, "msgsnd", PRONE, LIMIT_NONE },
	{ SYS_msgrcv, "msgrcv", PRONE, LIMIT_NONE },
	{ SYS_io_getevents, "io_getevents", PRONE, LIMIT_SPEC_ARG5 },
	{ SYS_io_pgetevents, "io_pgetevents", PRONE, LIMIT_SPEC_ARG5 },
	{ SYS_recvfrom, "recvfrom", PRONE, LIMIT_SOCKET },
	{ SYS_recvmsg, "recvmsg", PRONE, LIMIT_SOCKET },
	{ SYS_recvmmsg, "recvmmsg", PRONE, LIMIT_SOCKET },
	{ SYS_sendto, "sendto", PARTLY, LIMIT_SOCKET },
	{ SYS_sendmsg, "sendmsg", LOSSY, LIMIT_SOCKET },
	{ SYS_sendmmsg, "sendmmsg", LOSSY, LIMIT_SOCKET },
	{ SYS_accept, "accept", PRONE, LIMIT_SOCKET },
	{ SYS_accept4, "accept4", PRONE, LIMIT_SOCKET },
};

static const struct call *call_find(long nr)
{
	for (unsigned i = 0; i < sizeof calls / sizeof *calls; i++)
		if (calls[i].nr == nr)
			return &calls[i];
	return NULL;
}

const char *resume_call_name(long nr, char *buffer, unsigned size)
{
	const struct call *call = call_find(nr);

	if (call)
		return call->name;
	snprintf(buffer, size, "call %ld", nr);
	return buffer;
}

/* Has perhaps received a part by now, and nobody can go on with it. */
static bool waits_for_all(long nr, const uint64_t args[6])
{
	switch (nr) {
	case SYS_recvmsg:
		return args[2] & MSG_WAITALL;
	case SYS_recvmmsg:
		return (args[3] & MSG_WAITALL) || (args[2] > 1 && !(args[3] & MSG_WAITFORONE));
	default:
		return false;
	}
}

enum thread_kind resume_kind(long nr, const uint64_t args[6], int64_t *timeout_ms)
{
	const struct call *call = call_find(nr);

	*timeout_ms = -1;
	/* Stopped in it, connect() says EINTR to a socket with SO_SNDTIMEO and cannot be made again (EALREADY): never. */
	if (nr == SYS_connect || nr == SYS_vfork)
		return THREAD_UNFIT;
	if (!call || call->manner == LOSSY || waits_for_all(nr, args))
		return THREAD_UNKNOWN;
	if (call->manner == EXACT)
		return THREAD_BLOCKED;
	switch (call->limit) {
	case LIMIT_NONE:
		return THREAD_PRONE_INFINITE;
	case LIMIT_MS_ARG4:
		*timeout_ms = (int32_t)args[3];
		if (*timeout_ms < 0)
			*timeout_ms = -1;
		return *timeout_ms < 0 ? THREAD_PRONE_INFINITE : THREAD_PRONE_FINITE;
	case LIMIT_SPEC_ARG3:
		return args[2] ? THREAD_PRONE_FINITE : THREAD_PRONE_INFINITE;
	case LIMIT_SPEC_ARG4:
		return args[3] ? THREAD_PRONE_FINITE : THREAD_PRONE_INFINITE;
	case LIMIT_SPEC_ARG5:
		return args[4] ? THREAD_PRONE_FINITE : THREAD_PRONE_INFINITE;
	case LIMIT_SOCKET: /* its limit cannot be seen from outside; most sockets have none */
		return THREAD_PRONE_FINITE;
	}
	return THREAD_UNKNOWN;
}

bool resume_repeats(long nr)
{
	/* connect() cannot be made again quite as it was (EALREADY for EINPROGRESS), but that is for the case that it times out. */
	return nr == SYS_connect || call_find(nr);
}

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
