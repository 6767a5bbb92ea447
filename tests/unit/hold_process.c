/* The small process that holds: killed or stopped at any moment, it harms nobody, and it ends with the attacher. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "hold_subject.h"

/* Our child called like the small process; 0 = none. */
static pid_t holder_pid(pid_t parent)
{
	char path[64], text[4096], *at;
	FILE *file;

	snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)parent, (int)parent);
	file = fopen(path, "re");
	text[file ? fread(text, 1, sizeof text - 1, file) : 0] = '\0';
	if (file)
		fclose(file);
	for (at = text; *at; at += strcspn(at, " ") + 1) {
		struct proc_status status;

		if (procfs_status(&procfs_real, atoi(at), 0, &status) == 0 && strcmp(status.name, "inferscope-hold") == 0)
			return atoi(at);
		if (!strchr(at, ' '))
			break;
	}
	return 0;
}

Test(holder, is_started_anew_when_it_was_killed)
{
	struct subject subject = subject_start(spin, NULL, NULL);

	for (int i = 0; i < 30; i++) {
		must_copy(&subject, subject.pid, false);
		kill(holder_pid(getpid()), SIGKILL);
	}
	must_copy(&subject, subject.pid, false);
	cr_assert(holder_totals(subject.holder).restarts >= 25);
	cr_assert_eq(subject_end(&subject), 0);
}

struct killer {
	const struct subject *subject;
	pid_t parent;
	int signal, kills;
};

static void *kill_holders(void *context)
{
	struct killer *killer = context;
	unsigned seed = 1;

	while (!killer->subject->notes->stop) {
		pid_t pid = holder_pid(killer->parent);

		usleep((useconds_t)(rand_r(&seed) % 1500));
		if (pid > 0 && kill(pid, killer->signal) == 0)
			killer->kills++;
	}
	return NULL;
}

static void storm(int signal)
{
	struct subject subject = subject_start(spin, NULL, NULL);
	struct killer killer = { &subject, getpid(), signal, 0 };
	uint64_t begun_ns = clock_monotonic_ns();
	const struct hold_copy *copy;
	pthread_t thread;
	long copied = 0;

	pthread_create(&thread, NULL, kill_holders, &killer);
	/* So long, and longer where others want the CPUs. */
	for (uint64_t took_ns = 0; took_ns < 1500000000 || (took_ns < 30000000000 && !(copied > 0 && killer.kills > 0)); took_ns = clock_monotonic_ns() - begun_ns)
		copied += holder_copy(subject.holder, subject.pid, false, &copy) == HOLD_COPIED;
	subject.notes->stop = 2;
	pthread_join(thread, NULL);
	cr_assert(copied > 0 && killer.kills > 0, "%ld copied, %d kills", copied, killer.kills);
	cr_assert_eq(subject_end(&subject), 0);
}

Test(holder, harms_nobody_when_it_is_killed_at_any_moment)
{
	storm(SIGKILL);
}

Test(holder, harms_nobody_when_it_is_stopped_at_any_moment)
{
	storm(SIGSTOP);
}

/* An attacher in a process of its own, that holds SUBJECT again and again until it is killed. */
static pid_t start_holding(const struct subject *subject)
{
	pid_t attacher = fork();

	if (attacher == 0) {
		const struct hold_copy *copy;
		struct holder *holder;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (holder_open(subject->target, NULL, NULL, &holder, NULL) == 0)
			for (;;)
				holder_copy(holder, subject->pid, false, &copy);
		_exit(1);
	}
	return attacher;
}

Test(holder, ends_with_the_attacher)
{
	struct subject subject = subject_start(spin, NULL, NULL);

	holder_close(subject.holder);
	subject.holder = NULL;
	for (int i = 0; i < 20; i++) {
		pid_t attacher = start_holding(&subject), small = 0;

		for (int k = 0; k < 20000 && (small = holder_pid(attacher)) == 0; k++)
			usleep(1000);
		cr_assert_neq(small, 0);
		usleep((useconds_t)(i * 337));
		kill(attacher, SIGKILL);
		waitpid(attacher, NULL, 0);
		for (int k = 0; k < 20000 && kill(small, 0) == 0 && state_of(small) != 'Z'; k++)
			usleep(1000);
		cr_assert(kill(small, 0) < 0 || state_of(small) == 'Z', "the small process outlives the attacher");
		cr_assert(state_of(subject.pid) == 'R' || state_of(subject.pid) == 'S');
	}
	cr_assert_eq(subject_end(&subject), 0);
}

Test(holder, has_no_descriptors_and_leaves_no_zombie)
{
	struct subject subject = subject_start(spin, NULL, NULL);
	pid_t small;
	char path[64];

	must_copy(&subject, subject.pid, false);
	small = holder_pid(getpid());
	cr_assert_neq(small, 0);
	snprintf(path, sizeof path, "/proc/%d/fd/1", (int)small);
	cr_assert(access(path, F_OK) < 0);
	cr_assert_eq(subject_end(&subject), 0);
	cr_assert_eq(waitpid(-1, NULL, WNOHANG), -1);
}

Test(holder, holds_nobody_when_both_it_and_the_attacher_are_stopped)
{
	struct subject subject = subject_start(spin, NULL, NULL);
	pid_t attacher, small = 0;

	holder_close(subject.holder);
	subject.holder = NULL;
	attacher = start_holding(&subject);
	for (int i = 0; i < 100; i++) {
		long rounds;

		for (int k = 0; k < 10000 && (small = holder_pid(attacher)) == 0; k++)
			usleep(1000);
		cr_assert_neq(small, 0);
		usleep((useconds_t)(i * 7));
		kill(attacher, SIGSTOP);
		kill(small, SIGSTOP);
		rounds = subject.notes->rounds;
		for (int k = 0; k < 10000 && (subject.notes->rounds == rounds || state_of(subject.pid) == 't'); k++)
			usleep(1000);
		cr_assert(subject.notes->rounds != rounds && state_of(subject.pid) != 't', "it is held");
		kill(small, SIGCONT);
		kill(attacher, SIGCONT);
	}
	kill(attacher, SIGKILL);
	waitpid(attacher, NULL, 0);
	cr_assert_eq(subject_end(&subject), 0);
}
