/* Children that are held: their beginning and end, and what several tests have them do. */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "hold_subject.h"

static bool may_trace(pid_t pid)
{
	if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) < 0)
		return false;
	ptrace(PTRACE_INTERRUPT, pid, NULL, NULL);
	waitpid(pid, NULL, __WALL);
	return ptrace(PTRACE_DETACH, pid, NULL, NULL) == 0;
}

struct subject subject_start(void (*body)(struct notes *notes), hold_extra extra, void *context)
{
	struct subject subject = { 0 };

	subject.notes = mmap(NULL, sizeof *subject.notes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	subject.pid = fork();
	if (subject.pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
		subject.notes->tid = gettid();
		while (!subject.notes->go)
			;
		body(subject.notes);
		_exit(0);
	}
	if (!may_trace(subject.pid)) {
		kill(subject.pid, SIGKILL);
		cr_skip_test("ptrace is not permitted here");
	}
	subject.notes->go = 1;
	while (!subject.notes->ready)
		usleep(200);
	subject.target = calloc(1, sizeof *subject.target); /* for as long as the test lives: holders refer to it */
	subject.target->procfs = procfs_real;
	subject.target->pid = subject.pid;
	cr_assert_eq(holder_open(subject.target, extra, context, &subject.holder, NULL), 0);
	return subject;
}

int subject_end(struct subject *subject)
{
	uint64_t until_ns = clock_monotonic_ns() + 10000000000ull;
	int status = -1;

	holder_close(subject->holder);
	subject->notes->stop = 1;
	while (waitpid(subject->pid, &status, WNOHANG) == 0) {
		if (clock_monotonic_ns() > until_ns) {
			kill(subject->pid, SIGKILL);
			waitpid(subject->pid, &status, 0);
			return -1;
		}
		usleep(1000);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

const struct hold_copy *must_copy(struct subject *subject, pid_t tid, bool force)
{
	const struct hold_copy *copy;
	enum hold_result result = HOLD_NOT_NOW;

	for (uint64_t until_ns = clock_monotonic_ns() + 10000000000ull; clock_monotonic_ns() < until_ns; usleep(1000)) {
		result = holder_copy(subject->holder, tid, force, &copy);
		if (result == HOLD_COPIED)
			return copy;
	}
	cr_assert_fail("no copy: result %d, error %d", (int)result, copy->error);
	return NULL;
}

void spin(struct notes *notes)
{
	notes->ready = 1;
	while (!notes->stop)
		notes->rounds++;
}

static struct notes *handler_notes;

static void count_signal(int number)
{
	(void)number;
	handler_notes->signals++;
}

void count_signals(int number, struct notes *notes)
{
	struct sigaction action = { .sa_handler = count_signal };

	handler_notes = notes;
	sigaction(number, &action, NULL);
}

char state_of(pid_t pid)
{
	struct proc_status status;

	return procfs_status(&procfs_real, pid, pid, &status) < 0 ? '?' : status.state;
}
