/* The kernel's restart rules (arch/x86/kernel/signal.c) and, beyond them, the calls whose EINTR after a stop must be repaired. */
#include "inject/resume.h"

#include <errno.h>
#include <stdio.h>
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
#ifndef SYS_io_uring_enter
#define SYS_io_uring_enter 426
#endif
#ifndef SYS_io_pgetevents
#define SYS_io_pgetevents 333
#endif

enum limit { LIMIT_NONE, LIMIT_MS_ARG4, LIMIT_SPEC_ARG3, LIMIT_SPEC_ARG4, LIMIT_SPEC_ARG5, LIMIT_SOCKET };

/* Calls a thread may be stopped in. `prone`: the kernel answers EINTR after a ptrace stop without any handler (signal(7); each
 * row with a test in tests/live/inject was seen on 6.18). Socket calls do so only with SO_RCVTIMEO or SO_SNDTIMEO. */
static const struct call {
	long nr;
	const char *name;
	bool prone;
	enum limit limit;
} calls[] = {
	{ SYS_futex, "futex", false, LIMIT_NONE },
	{ SYS_futex_waitv, "futex_waitv", false, LIMIT_NONE },
	{ SYS_nanosleep, "nanosleep", false, LIMIT_NONE },
	{ SYS_clock_nanosleep, "clock_nanosleep", false, LIMIT_NONE },
	{ SYS_restart_syscall, "restart_syscall", false, LIMIT_NONE },
	{ SYS_poll, "poll", false, LIMIT_NONE },
	{ SYS_ppoll, "ppoll", false, LIMIT_NONE },
	{ SYS_select, "select", false, LIMIT_NONE },
	{ SYS_pselect6, "pselect6", false, LIMIT_NONE },
	{ SYS_wait4, "wait4", false, LIMIT_NONE },
	{ SYS_waitid, "waitid", false, LIMIT_NONE },
	{ SYS_read, "read", false, LIMIT_NONE },
	{ SYS_readv, "readv", false, LIMIT_NONE },
	{ SYS_pread64, "pread64", false, LIMIT_NONE },
	{ SYS_write, "write", false, LIMIT_NONE },
	{ SYS_writev, "writev", false, LIMIT_NONE },
	{ SYS_pause, "pause", false, LIMIT_NONE },
	{ SYS_rt_sigsuspend, "rt_sigsuspend", false, LIMIT_NONE },
	{ SYS_flock, "flock", false, LIMIT_NONE },
	{ SYS_fcntl, "fcntl", false, LIMIT_NONE },
	{ SYS_fsync, "fsync", false, LIMIT_NONE },
	{ SYS_epoll_wait, "epoll_wait", true, LIMIT_MS_ARG4 },
	{ SYS_epoll_pwait, "epoll_pwait", true, LIMIT_MS_ARG4 },
	{ SYS_epoll_pwait2, "epoll_pwait2", true, LIMIT_SPEC_ARG4 },
	{ SYS_rt_sigtimedwait, "rt_sigtimedwait", true, LIMIT_SPEC_ARG3 },
	{ SYS_semop, "semop", true, LIMIT_NONE },
	{ SYS_semtimedop, "semtimedop", true, LIMIT_SPEC_ARG4 },
	{ SYS_msgsnd, "msgsnd", true, LIMIT_NONE },
	{ SYS_msgrcv, "msgrcv", true, LIMIT_NONE },
	{ SYS_io_getevents, "io_getevents", true, LIMIT_SPEC_ARG5 },
	{ SYS_io_pgetevents, "io_pgetevents", true, LIMIT_SPEC_ARG5 },
	{ SYS_recvfrom, "recvfrom", true, LIMIT_SOCKET },
	{ SYS_recvmsg, "recvmsg", true, LIMIT_SOCKET },
	{ SYS_recvmmsg, "recvmmsg", true, LIMIT_SOCKET },
	{ SYS_sendto, "sendto", true, LIMIT_SOCKET },
	{ SYS_sendmsg, "sendmsg", true, LIMIT_SOCKET },
	{ SYS_accept, "accept", true, LIMIT_SOCKET },
	{ SYS_accept4, "accept4", true, LIMIT_SOCKET },
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

enum thread_kind resume_kind(long nr, const uint64_t args[6], int64_t *timeout_ms)
{
	const struct call *call = call_find(nr);

	*timeout_ms = -1;
	/* Stopped in it, connect() says EINTR to a socket with SO_SNDTIMEO and cannot be made again (EALREADY): never. */
	if (nr == SYS_connect || nr == SYS_vfork)
		return THREAD_UNFIT;
	if (!call)
		return THREAD_UNKNOWN;
	if (!call->prone)
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

bool resume_is_prone(long nr)
{
	const struct call *call = call_find(nr);

	/* connect() cannot be made again quite as it was (EALREADY for EINPROGRESS), but that is for the case that it times out. */
	return nr == SYS_connect || (call && call->prone);
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

	*out = (struct resume){ .rip = regs->rip, .rax = regs->rax, .r10 = regs->r10, .interrupted_rip = regs->rip };
	if (nr < 0)
		return;
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
		if (!resume_is_prone(nr))
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
