/* The calls whose EINTR after a stop must be repaired, beyond the kernel's restart rules (resume_*.c). */
#include "inject/resume.h"

#include <stdio.h>
#include <sys/socket.h>

#include "inject/calls.h"

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

bool resume_needs_descriptor(long nr)
{
	switch (nr) {
	case SYS_read:
	case SYS_readv:
	case SYS_pread64:
	case SYS_write:
	case SYS_recvfrom:
	case SYS_recvmsg:
	case SYS_recvmmsg:
	case SYS_accept:
	case SYS_accept4:
	case SYS_sendto:
		return true;
	default:
		return false;
	}
}
