/* Handlers, and dying as somebody else did. */
#include "cli/signals.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

#define ECHO_NS 200000000ull

static volatile int stop_count, wanted_count;
static volatile int *once_count; /* not ours: signals_stop_once() */
static volatile sig_atomic_t suspends, continues;
static volatile sig_atomic_t child_pid;
static volatile int child_fd = -1; /* pidfd of it: the pid is another process's soon after it has been waited for */
static volatile sig_atomic_t waiting_signal; /* came before there was a child */

static const int forwarded[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGCONT, SIGWINCH };

/* timeout(1) sends a signal to its child and to its group, a terminal that closes is told by the shell and by the kernel: so near to the one that counted it is the same wish. */
static bool is_echo(void)
{
	static uint64_t counted_ns;
	uint64_t now_ns = clock_monotonic_ns();

	if (counted_ns && now_ns - counted_ns < ECHO_NS)
		return true;
	counted_ns = now_ns;
	return false;
}

static void stop_handle(int number)
{
	if (is_echo())
		return;
	/* One to stop, one to write nothing, and one more for those who cannot wait for the end of that. */
	if (++stop_count >= 3)
		signal(number, SIG_DFL);
}

static void wanted_handle(int number)
{
	(void)number;
	wanted_count++;
}

static void job_handle(int number)
{
	if (number == SIGTSTP)
		suspends = 1;
	else
		continues = 1;
}

/* Without a pidfd (Linux 5.2 and before) as long as nobody has waited for it. */
static void child_signal(int number)
{
	int saved = errno;
	siginfo_t info;

	if (child_fd >= 0)
		syscall(SYS_pidfd_send_signal, child_fd, number, NULL, 0);
	else if (waitid(P_PID, (id_t)child_pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0)
		kill((pid_t)child_pid, number);
	errno = saved;
}

static void forward_handle(int number, siginfo_t *info, void *context)
{
	if (info->si_code == SI_KERNEL)
		return; /* from the terminal, to the whole foreground group */
	if (child_pid > 0)
		child_signal(number);
	else
		waiting_signal = number;
}

void signals_catch(void)
{
	static const int caught[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction action = { .sa_handler = stop_handle }, before;

	sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < sizeof caught / sizeof *caught; i++)
		if (caught[i] != SIGHUP || (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN))
			sigaction(caught[i], &action, NULL);
}

static void once_handle(int number)
{
	(void)number;
	if (once_count && *once_count == 0)
		*once_count = 1;
}

void signals_stop_once(volatile int *count)
{
	struct sigaction action = { .sa_handler = once_handle };

	once_count = count;
	sigemptyset(&action.sa_mask);
	sigaction(SIGTERM, &action, NULL);
	signal(SIGINT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
}

const volatile int *signals_stop(void)
{
	return &stop_count;
}

void signals_catch_wanted(void)
{
	struct sigaction action = { .sa_handler = wanted_handle, .sa_flags = SA_RESTART };

	sigemptyset(&action.sa_mask);
	sigaction(SIGUSR1, &action, NULL);
}

const volatile int *signals_wanted(void)
{
	return &wanted_count;
}

void signals_catch_suspend(void)
{
	struct sigaction action = { .sa_handler = job_handle };

	sigemptyset(&action.sa_mask);
	sigaction(SIGTSTP, &action, NULL);
	sigaction(SIGCONT, &action, NULL);
}

bool signals_suspended(void)
{
	bool was = suspends;

	suspends = 0;
	return was;
}

bool signals_continued(void)
{
	bool was = continues;

	continues = 0;
	return was;
}

void signals_forward(void)
{
	struct sigaction action = { .sa_sigaction = forward_handle, .sa_flags = SA_SIGINFO | SA_RESTART }, before;

	sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < sizeof forwarded / sizeof *forwarded; i++)
		if (sigaction(forwarded[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
			sigaction(forwarded[i], &action, NULL);
}

void signals_child(pid_t pid)
{
	if (pid == child_pid)
		return;
	child_fd = (int)syscall(SYS_pidfd_open, pid, 0);
	child_pid = pid;
	if (waiting_signal) {
		child_signal((int)waiting_signal);
		waiting_signal = 0;
	}
}

int signals_end_as(int wait_status)
{
	struct rlimit no_core = { 0, 0 };
	int number;
	sigset_t set;

	if (WIFEXITED(wait_status))
		return WEXITSTATUS(wait_status);
	number = WTERMSIG(wait_status);
	setrlimit(RLIMIT_CORE, &no_core);
	signal(number, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, number);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	kill(getpid(), number);
	return 128 + number;
}
