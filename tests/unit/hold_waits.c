/* Calls that say EINTR to a stop: threads that are held in them, or slip into them, notice nothing; signals do what they always do. */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/ptrace.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "hold_subject.h"
#include "inject/tracee.h"

static int epoll, sockets[2], semaphore, queue;
static const struct timespec blink = { 0, 2000000 }, long_wait = { 30, 0 };

static long wait_epoll(bool brief) { struct epoll_event event; return epoll_wait(epoll, &event, 1, brief ? 1 : -1); }
static long wait_pwait(bool brief) { struct epoll_event event; return epoll_pwait(epoll, &event, 1, brief ? 1 : 30000, NULL); }
static long wait_semaphore(bool brief) { struct sembuf take = { 0, -1, 0 }; return semtimedop(semaphore, &take, 1, brief ? &blink : &long_wait); }
static long wait_recv(bool brief) { char byte; (void)brief; return recv(sockets[0], &byte, 1, 0); }
static long wait_nanosleep(bool brief) { return nanosleep(brief ? &(struct timespec){ 0, 50000 } : &long_wait, NULL); }
static long wait_poll(bool brief) { return poll(NULL, 0, brief ? 1 : 30000); }
static long wait_futex(bool brief) { static int word; return syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, brief ? &blink : &long_wait, NULL, 0); }

static long wait_signal(bool brief)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	return sigtimedwait(&set, NULL, brief ? &blink : &long_wait);
}

static long wait_message(bool brief)
{
	struct { long type; char text[1]; } message;

	return msgrcv(queue, &message, 1, 0, brief ? IPC_NOWAIT : 0);
}

static const struct {
	const char *name;
	long (*wait)(bool brief);
	bool prone;
} waits[] = {
	{ "epoll_wait", wait_epoll, true }, { "epoll_pwait", wait_pwait, true }, { "semtimedop", wait_semaphore, true }, { "recv", wait_recv, true },
	{ "sigtimedwait", wait_signal, true }, { "msgrcv", wait_message, true },
	{ "nanosleep", wait_nanosleep, false }, { "poll", wait_poll, false }, { "futex", wait_futex, false },
};
enum { WAITS = sizeof waits / sizeof *waits };

static int chosen_wait;

static void make_things(void)
{
	struct timeval time = { 0, 2000 };
	sigset_t set;

	epoll = epoll_create1(EPOLL_CLOEXEC);
	semaphore = semget(IPC_PRIVATE, 1, 0600);
	queue = msgget(IPC_PRIVATE, 0600);
	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
	setsockopt(sockets[0], SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

static void remove_things(void)
{
	semctl(semaphore, 0, IPC_RMID);
	msgctl(queue, IPC_RMID, NULL);
}

static void note_result(struct notes *notes, long result)
{
	if (result < 0 && errno == EINTR)
		notes->eintr++;
	notes->rounds++;
}

static void wait_until_blocked(pid_t pid)
{
	char line[256] = "";

	for (int i = 0; i < 10000 && (line[0] < '0' || line[0] > '9'); i++) {
		usleep(1000);
		procfs_read(&procfs_real, pid, "syscall", line, sizeof line);
	}
}

static void wait_long(struct notes *notes)
{
	struct timeval time = { 30, 0 };

	setsockopt(sockets[0], SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
	notes->ready = 1;
	note_result(notes, waits[chosen_wait].wait(false));
	pause();
}

TestSuite(waits, .init = make_things, .fini = remove_things);

static struct parameter { int index; } every_wait[WAITS];

static struct criterion_test_params all_waits(void)
{
	for (int i = 0; i < WAITS; i++)
		every_wait[i].index = i;
	return cr_make_param_array(struct parameter, every_wait, WAITS);
}

ParameterizedTestParameters(waits, leaves_a_blocked_thread_alone_or_restarts_it_exactly) { return all_waits(); }

ParameterizedTest(struct parameter *row, waits, leaves_a_blocked_thread_alone_or_restarts_it_exactly)
{
	bool prone = waits[row->index].prone;
	const struct hold_copy *copy;
	struct subject subject;

	chosen_wait = row->index;
	subject = subject_start(wait_long, NULL, NULL);
	wait_until_blocked(subject.pid);
	cr_assert_eq(holder_copy(subject.holder, subject.pid, false, &copy), prone ? HOLD_PRONE : HOLD_BLOCKED, "%s", waits[row->index].name);
	cr_assert(copy->regs[16] != 0 && copy->regs[7] != 0 && copy->syscall_nr >= 0);
	cr_assert_eq(holder_totals(subject.holder).count, 0, "it was not touched");
	for (int i = 0; i < 100; i++) {
		enum hold_result result = holder_copy(subject.holder, subject.pid, true, &copy);

		cr_assert(prone ? result == HOLD_PRONE : result == HOLD_COPIED || result == HOLD_NOT_NOW, "%s: %d", waits[row->index].name, (int)result);
		usleep(200);
	}
	cr_assert_eq(subject.notes->rounds, 0, "%s ended", waits[row->index].name);
	kill(subject.pid, SIGKILL);
	cr_assert_eq(subject_end(&subject), 1000 + SIGKILL);
}

/* Spins for a moment, waits for a moment: looks find it running, stops find it in the call. */
static void wait_briefly(struct notes *notes)
{
	notes->ready = 1;
	while (!notes->stop) {
		for (volatile int i = 0; i < 20000; i++)
			;
		note_result(notes, waits[chosen_wait].wait(true));
	}
}

ParameterizedTestParameters(waits, never_say_eintr_to_a_thread_that_slips_into_them) { return all_waits(); }

ParameterizedTest(struct parameter *row, waits, never_say_eintr_to_a_thread_that_slips_into_them)
{
	uint64_t until_ns = clock_monotonic_ns() + 400000000ull;
	const struct hold_copy *copy;
	struct subject subject;

	chosen_wait = row->index;
	subject = subject_start(wait_briefly, NULL, NULL);
	while (clock_monotonic_ns() < until_ns)
		holder_copy(subject.holder, subject.pid, false, &copy);
	cr_log_info("%s: %lu holds, %lu repaired", waits[row->index].name, (unsigned long)holder_totals(subject.holder).count,
	            (unsigned long)holder_totals(subject.holder).repaired);
	cr_assert_eq(subject_end(&subject), 0);
	cr_assert(subject.notes->rounds > 0);
	cr_assert_eq(subject.notes->eintr, 0, "%s: %ld of %ld calls said EINTR", waits[row->index].name, subject.notes->eintr, subject.notes->rounds);
}

static void wait_under_signals(struct notes *notes)
{
	count_signals(SIGRTMIN, notes);
	chosen_wait = 0;
	wait_long(notes);
}

/* Lets the child wait in epoll_wait, stops it the way WHEN says with the signal on its way, and lets it go. */
static void signal_while_seized(int number, bool interrupt_first, struct notes *seen)
{
	struct subject subject = subject_start(wait_under_signals, NULL, NULL);
	const struct alarm none = { -1, -1 };
	const struct patience patience = { &none, 10000, 10000, "" };
	struct thread_registers regs;
	uint64_t moving_ns;
	int signal = 0;

	holder_close(subject.holder);
	wait_until_blocked(subject.pid);
	cr_assert_eq(raw_ptrace(PTRACE_SEIZE, subject.pid, 0, NULL), 0);
	if (interrupt_first) {
		raw_ptrace(PTRACE_INTERRUPT, subject.pid, 0, NULL);
		cr_assert_eq(tracee_wait(subject.pid, &patience, &signal, &moving_ns), TRACEE_STOPPED);
		kill(subject.pid, number);
		cr_assert_eq(registers_read(subject.pid, &regs), 0);
		cr_assert(tracee_disturbed(subject.pid, &regs) && tracee_was_waiting(&regs));
		tracee_repeat_call(subject.pid);
		tracee_detach(subject.pid, 0);
	} else {
		kill(subject.pid, number);
		cr_assert_eq(tracee_wait(subject.pid, &patience, &signal, &moving_ns), TRACEE_SIGNAL);
		cr_assert_eq(signal, number);
		tracee_pass_signal(subject.pid, signal);
	}
	raw_alarm(&none, 0);
	for (int i = 0; i < 5000 && number != SIGWINCH && subject.notes->rounds == 0; i++)
		usleep(1000);
	usleep(30000);
	*seen = *subject.notes;
	kill(subject.pid, SIGKILL);
	waitpid(subject.pid, NULL, 0);
}

Test(waits, go_on_after_a_signal_that_is_ignored_and_end_with_one_that_is_not)
{
	struct notes seen;

	for (int interrupt_first = 0; interrupt_first < 2; interrupt_first++) {
		signal_while_seized(SIGWINCH, interrupt_first, &seen);
		cr_assert(seen.rounds == 0 && seen.eintr == 0, "an ignored signal ended the call");
		signal_while_seized(SIGRTMIN, interrupt_first, &seen);
		cr_assert(seen.signals == 1 && seen.eintr == 1, "%ld handled, %ld EINTR", seen.signals, seen.eintr);
	}
}

/* A signal that the program ignores is kept for a traced thread all the same, and ends its call: nobody may see that. */
static void ignore_and_wait(struct notes *notes)
{
	signal(SIGWINCH, SIG_DFL);
	wait_briefly(notes);
}

static void *send_signals(void *context)
{
	const struct subject *subject = context;

	while (!subject->notes->stop) {
		syscall(SYS_tgkill, subject->pid, subject->pid, SIGWINCH);
		for (volatile int i = 0; i < 5000; i++)
			;
	}
	return NULL;
}

Test(waits, see_nothing_of_signals_that_are_ignored)
{
	uint64_t until_ns;
	const struct hold_copy *copy;
	struct subject subject;
	pthread_t sender;

	chosen_wait = 0;
	subject = subject_start(ignore_and_wait, NULL, NULL);
	pthread_create(&sender, NULL, send_signals, &subject);
	until_ns = clock_monotonic_ns() + 1000000000ull;
	while (clock_monotonic_ns() < until_ns)
		holder_copy(subject.holder, subject.pid, false, &copy);
	cr_assert_eq(subject_end(&subject), 0);
	pthread_join(sender, NULL);
	cr_assert_eq(subject.notes->eintr, 0, "%ld of %ld calls said EINTR", subject.notes->eintr, subject.notes->rounds);
}
