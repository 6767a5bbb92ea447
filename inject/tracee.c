/* The ptrace moves that have proven harmless, each in one place. */
#include "inject/tracee.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/ptrace.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

#define RESUME_MS 20
#define SPIN_NS 150000 /* a running thread stops within 5 us, one on a CPU that sleeps within 150: each sleep of ours would make the hold as much longer */
#define BRISK_NS 2000000 /* that long spins and short naps alternate: it may be waiting for the very CPU that spins */
#define SHORT_NAP_NS 60000
#define NAP_NS 2000000 /* also how exactly is known since when it stands */
#define NS_PER_MS 1000000ull

long raw_ptrace(long request, pid_t tid, long addr, const volatile void *data)
{
	return raw_call(SYS_ptrace, request, tid, addr, (long)data, 0, 0);
}

uint64_t raw_now_ns(void)
{
	struct timespec time = { 0 };

	raw_call(SYS_clock_gettime, CLOCK_MONOTONIC, (long)&time, 0, 0, 0, 0);
	return (uint64_t)time.tv_sec * 1000000000ull + (uint64_t)time.tv_nsec;
}

static void set_timer(long timer, uint32_t ms, uint32_t again_ms)
{
	struct itimerspec when = { { 0, again_ms * 1000000l }, { ms / 1000, (ms % 1000) * 1000000l } };

	raw_call(SYS_timer_settime, timer, 0, (long)&when, 0, 0, 0);
}

void raw_alarm(const struct alarm *alarm, uint32_t ms)
{
	struct itimerval plain = { { 0, 0 }, { ms / 1000, (ms % 1000) * 1000l } };
	uint32_t resume_ms = ms ? RESUME_MS : 0;

	if (alarm->resume >= 0)
		set_timer(alarm->resume, resume_ms, resume_ms);
	if (alarm->kill >= 0)
		set_timer(alarm->kill, ms, 0);
	else
		raw_call(SYS_setitimer, ITIMER_REAL, (long)&plain, 0, 0, 0, 0);
}

/* SIGKILL and SIGCONT act on a process that was stopped by SIGSTOP, too. */
static long make_timer(int number)
{
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = number };
	int timer = -1;

	return raw_call(SYS_timer_create, CLOCK_MONOTONIC, (long)&event, (long)&timer, 0, 0, 0) == 0 ? timer : -1;
}

/* The stack that the calls below will use. */
static __attribute__((noinline)) void touch_stack(void)
{
	unsigned char stack[32768];

	for (size_t i = 0; i < sizeof stack; i += 1024)
		*(volatile unsigned char *)(stack + i) = 0;
	raw_call(SYS_mlock, (long)stack, sizeof stack, 0, 0, 0, 0);
}

static void lock_code(uintptr_t around)
{
	for (long page = -4; page < 2; page++)
		raw_call(SYS_mlock, ((long)around & ~0xfffl) + page * 4096, 4096, 0, 0, 0, 0);
}

struct alarm raw_process(void *shared, size_t size, uintptr_t code, uint64_t keep)
{
	struct { void (*handler)(int); unsigned long flags; void (*restorer)(void); uint64_t mask; } action = { 0 };
	uint64_t blocked = ~(1ull << (SIGALRM - 1) | keep);
	struct sched_param real_time = { 1 };

	touch_stack();
	/* Failing to lock it (RLIMIT_MEMLOCK) is no reason to stop. */
	raw_call(SYS_mlock, (long)shared, (long)size, 0, 0, 0, 0);
	lock_code(code);
	lock_code((uintptr_t)&tracee_wait);
	lock_code((uintptr_t)&registers_read);
	for (int number = 1; number < 32; number++)
		if (number == SIGALRM || number == SIGCHLD || keep >> (number - 1) & 1)
			raw_call(SYS_rt_sigaction, number, (long)&action, 0, 8, 0, 0);
	raw_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&blocked, 0, 8, 0, 0);
	raw_call(SYS_setpgid, 0, 0, 0, 0, 0, 0); /* a Ctrl-Z or SIGSTOP for the attacher's group is not for us */
	/* On busy machines the hold is mostly us waiting for a CPU (malloc storm, 12 runnable on 2 CPUs: p95 22 to 7 ms). May be refused. */
	raw_call(SYS_sched_setscheduler, 0, SCHED_FIFO, (long)&real_time, 0, 0, 0);
	return (struct alarm){ make_timer(SIGKILL), make_timer(SIGCONT) };
}

/* Its state as /proc has it: the letter behind the name, which may hold anything. */
static bool could_run(const char *stat_path)
{
	char text[256];
	long fd = raw_call(SYS_openat, AT_FDCWD, (long)stat_path, O_RDONLY | O_CLOEXEC, 0, 0, 0), got;

	if (fd < 0)
		return false;
	got = raw_call(SYS_read, fd, (long)text, sizeof text, 0, 0, 0);
	raw_call(SYS_close, fd, 0, 0, 0, 0, 0);
	for (long i = got - 3; i >= 0; i--)
		if (text[i] == ')')
			return text[i + 2] == 'R' || text[i + 2] == 't';
	return false;
}

bool tracee_is_of(const char *stat_path)
{
	long fd = raw_call(SYS_openat, AT_FDCWD, (long)stat_path, O_PATH | O_CLOEXEC, 0, 0, 0);

	if (fd >= 0)
		raw_call(SYS_close, fd, 0, 0, 0, 0, 0);
	return fd >= 0;
}

/* Until the kernel says that a thread of ours has stopped, or for a while. */
static void nap_for_child(long nap_ns)
{
	const uint64_t child = 1ull << (SIGCHLD - 1);
	const struct timespec nap = { 0, nap_ns };

	raw_call(SYS_rt_sigtimedwait, (long)&child, 0, (long)&nap, 8, 0, 0);
}

enum tracee_stop tracee_wait(pid_t tid, const struct patience *patience, int *signal, uint64_t *moving_ns)
{
	uint64_t since_ns = raw_now_ns(), now_ns = since_ns, nap_ns = since_ns + SPIN_NS;
	int status = 0;
	long got;

	*signal = 0;
	*moving_ns = since_ns;
	while ((got = raw_call(SYS_wait4, tid, (long)&status, __WALL | WNOHANG, 0, 0, 0)) == 0 || got == -EINTR) {
		*moving_ns = now_ns;
		if (now_ns > nap_ns) {
			if (now_ns - since_ns > patience->ms * NS_PER_MS && (now_ns - since_ns > patience->runnable_ms * NS_PER_MS || !could_run(patience->stat_path)))
				return TRACEE_NOT_YET;
			raw_alarm(patience->alarm, ALARM_MS);
			nap_for_child(now_ns - since_ns < BRISK_NS ? SHORT_NAP_NS : NAP_NS);
			now_ns = raw_now_ns();
			nap_ns = now_ns - since_ns < BRISK_NS ? now_ns + SPIN_NS : now_ns;
			continue;
		}
		now_ns = raw_now_ns();
	}
	if (got != tid || !WIFSTOPPED(status))
		return TRACEE_GONE;
	if (status >> 16 == PTRACE_EVENT_STOP)
		return WSTOPSIG(status) == SIGTRAP ? TRACEE_STOPPED : TRACEE_JOB;
	*signal = status >> 16 ? 0 : WSTOPSIG(status);
	return TRACEE_SIGNAL;
}

int tracee_read(pid_t tid, uint64_t addr, void *out, size_t size)
{
	struct iovec here = { out, size }, there = { (void *)(uintptr_t)addr, size };

	return raw_call(SYS_process_vm_readv, tid, (long)&here, 1, (long)&there, 1, 0) == (long)size ? 0 : -1;
}

void tracee_detach(pid_t tid, int signal)
{
	raw_ptrace(PTRACE_DETACH, tid, 0, (void *)(long)signal);
}
