/* Threads held and let go: children of the test that know their registers, count their signals, and notice every EINTR. */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "inject/hold.h"
#include "inject/memory.h"
#include "inject/target.h"
#include "inject/tracee.h"

/* What a child tells: it lies in memory that both see. */
struct notes {
	atomic_int go, ready, stop;
	atomic_long rounds, eintr, wrong, signals;
	pid_t tid;
	const char *call;
};

struct subject {
	pid_t pid;
	struct notes *notes;
	struct target *target;
	struct holder *holder;
};

static bool may_trace(pid_t pid)
{
	if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) < 0)
		return false;
	ptrace(PTRACE_INTERRUPT, pid, NULL, NULL);
	waitpid(pid, NULL, __WALL);
	return ptrace(PTRACE_DETACH, pid, NULL, NULL) == 0;
}

static struct subject subject_start(void (*body)(struct notes *notes), hold_extra extra, void *context)
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

/* Its exit status; -1 when it does not end by itself. */
static int subject_end(struct subject *subject)
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

/* Asks until there is a copy; a test machine may be busy. */
static const struct hold_copy *must_copy(struct subject *subject, pid_t tid, bool force)
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

/* ---- what is copied ---- */

static void know_registers(struct notes *notes)
{
	notes->ready = 1;
	__asm__ volatile(
		"sub $256, %%rsp\n\t"
		"movabs $0x1111111111111111, %%rbx\n\tmovabs $0x2222222222222222, %%r12\n\tmovabs $0x3333333333333333, %%r13\n\t"
		"movabs $0x4444444444444444, %%r14\n\tmovabs $0x5555555555555555, %%r15\n\tmovabs $0x6666666666666666, %%rcx\n\t"
		"movabs $0x7777777777777777, %%rdx\n\tmovabs $0x8888888888888888, %%rsi\n\tmovabs $0x9999999999999999, %%r8\n\t"
		"movabs $0xaaaaaaaaaaaaaaaa, %%r9\n\tmovabs $0xbbbbbbbbbbbbbbbb, %%r10\n\tmovabs $0xcccccccccccccccc, %%r11\n\t"
		"mov %%rbx, (%%rsp)\n\tmov %%r12, 8(%%rsp)\n\tmov %%r13, 248(%%rsp)\n\t"
		"1: cmpl $0, (%%rdi)\n\tje 1b\n\t"
		"add $256, %%rsp"
		: : "D"(&notes->stop)
		: "rax", "rbx", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "memory", "cc");
}

Test(hold, copies_registers_and_stack_as_they_are)
{
	static const uint64_t known[17] = { [1] = 0x7777777777777777, [2] = 0x6666666666666666, [3] = 0x1111111111111111, [4] = 0x8888888888888888,
		[8] = 0x9999999999999999, 0xaaaaaaaaaaaaaaaa, 0xbbbbbbbbbbbbbbbb, 0xcccccccccccccccc, 0x2222222222222222, 0x3333333333333333,
		0x4444444444444444, 0x5555555555555555 };
	struct subject subject = subject_start(know_registers, NULL, NULL);
	const struct hold_copy *copy;
	uint64_t words[32], rip = 0;
	int right = 0;

	usleep(20000);
	for (int i = 0; i < 200; i++) {
		copy = must_copy(&subject, subject.pid, false);
		for (int r = 0; r < 17; r++)
			cr_assert(known[r] == 0 || copy->regs[r] == known[r], "register %d is %llx", r, (unsigned long long)copy->regs[r]);
		cr_assert_eq(copy->regs[5], (uint64_t)(uintptr_t)&subject.notes->stop);
		cr_assert(rip == 0 || copy->regs[16] - rip + 32 < 64, "it loops within a few bytes");
		rip = copy->regs[16];
		cr_assert(copy->stack_size >= sizeof words);
		memcpy(words, copy->stack, sizeof words);
		cr_assert(words[0] == known[3] && words[1] == known[12] && words[31] == known[13]);
		cr_assert(copy->hold_ns > 0 && copy->at_ns > 0 && copy->syscall_nr == -1 && !copy->repaired);
		right++;
	}
	cr_assert_eq(right, 200);
	cr_assert_eq(holder_totals(subject.holder).count, 200);
	cr_assert_eq(subject_end(&subject), 0);
}

static void spin(struct notes *notes)
{
	notes->ready = 1;
	while (!notes->stop)
		notes->rounds++;
}

/* The mapping that ADDR lies in. */
static struct mapping mapping_of(pid_t pid, uint64_t addr)
{
	struct mapping found = { 0 };
	struct maps maps;

	cr_assert_eq(maps_read(&procfs_real, pid, &maps), 0);
	found = *maps_find(&maps, addr);
	maps_done(&maps);
	return found;
}

static void *spin_in_thread(void *context)
{
	struct notes *notes = context;

	notes->tid = gettid();
	spin(notes);
	return NULL;
}

static void spin_beside(struct notes *notes)
{
	pthread_t thread;

	pthread_create(&thread, NULL, spin_in_thread, notes);
	pthread_join(thread, NULL);
}

Test(hold, copies_no_more_than_the_stack)
{
	struct subject first = subject_start(spin, NULL, NULL), second = subject_start(spin_beside, NULL, NULL);
	const struct hold_copy *copy = must_copy(&first, first.pid, false);
	uint64_t end = mapping_of(first.pid, copy->regs[7]).end;

	cr_assert_eq(copy->stack_size, end - copy->regs[7] < HOLD_STACK_MAX ? end - copy->regs[7] : HOLD_STACK_MAX);
	copy = must_copy(&second, second.notes->tid, false);
	cr_assert(copy->stack_size > 64 && copy->regs[7] + copy->stack_size == copy->fs_base, "the control block lies above a thread's stack");
	cr_assert_eq(subject_end(&first), 0);
	cr_assert_eq(subject_end(&second), 0);
}

struct question {
	uint64_t addr;
	pid_t asker;
};

static uint32_t read_rounds(void *context, pid_t tid, void *out, uint32_t size)
{
	const struct question *question = context;
	const struct memory memory = { .pid = tid };
	uint64_t twice[2];

	cr_assert(size >= sizeof twice && getpid() != question->asker);
	memory_read(&memory, question->addr, &twice[0], 8);
	for (volatile int i = 0; i < 20000; i++)
		;
	memory_read(&memory, question->addr, &twice[1], 8);
	memcpy(out, twice, sizeof twice);
	return sizeof twice;
}

Test(hold, lets_the_extra_reader_see_a_thread_that_stands_still)
{
	struct question question = { 0, getpid() };
	struct subject subject;
	uint64_t twice[2], before = 0;

	subject = subject_start(spin, NULL, NULL);
	holder_close(subject.holder);
	question.addr = (uint64_t)(uintptr_t)&subject.notes->rounds;
	cr_assert_eq(holder_open(subject.target, read_rounds, &question, &subject.holder, NULL), 0);
	for (int i = 0; i < 50; i++) {
		const struct hold_copy *copy = must_copy(&subject, subject.pid, false);

		cr_assert_eq(copy->extra_size, sizeof twice);
		memcpy(twice, copy->extra, sizeof twice);
		cr_assert(twice[0] == twice[1] && twice[0] >= before);
		cr_assert(copy->extra_ns > 0 && copy->extra_ns < copy->hold_ns);
		before = twice[0];
	}
	cr_assert_eq(subject_end(&subject), 0);
}

/* ---- calls that say EINTR to a stop ---- */

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

static struct notes *handler_notes;

static void count_signal(int number)
{
	(void)number;
	handler_notes->signals++;
}

static void wait_under_signals(struct notes *notes)
{
	struct sigaction action = { .sa_handler = count_signal };

	handler_notes = notes;
	sigaction(SIGRTMIN, &action, NULL);
	chosen_wait = 0;
	wait_long(notes);
}

/* Lets the child wait in epoll_wait, stops it the way WHEN says with the signal on its way, and lets it go. */
static void signal_while_seized(int number, bool interrupt_first, struct notes *seen)
{
	struct subject subject = subject_start(wait_under_signals, NULL, NULL);
	const struct alarm none = { -1, -1 };
	const struct patience patience = { &none, 10000, 10000, "" };
	struct user_regs_struct regs;
	uint64_t moving_ns;
	int signal = 0;

	holder_close(subject.holder);
	wait_until_blocked(subject.pid);
	cr_assert_eq(raw_ptrace(PTRACE_SEIZE, subject.pid, 0, NULL), 0);
	if (interrupt_first) {
		raw_ptrace(PTRACE_INTERRUPT, subject.pid, 0, NULL);
		cr_assert_eq(tracee_wait(subject.pid, &patience, &signal, &moving_ns), TRACEE_STOPPED);
		kill(subject.pid, number);
		cr_assert_eq(raw_ptrace(PTRACE_GETREGS, subject.pid, 0, &regs), 0);
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

/* ---- signals ---- */

static void spin_under_signals(struct notes *notes)
{
	struct sigaction action = { .sa_handler = count_signal };

	handler_notes = notes;
	sigaction(SIGRTMIN, &action, NULL);
	spin(notes);
}

Test(signals, are_neither_lost_nor_doubled)
{
	struct subject subject = subject_start(spin_under_signals, NULL, NULL);
	const struct hold_copy *copy;
	long sent = 0;

	for (int i = 0; i < 5000; i++) {
		union sigval value = { 0 };

		for (int k = 0; k < 2; k++)
			sent += sigqueue(subject.pid, SIGRTMIN, value) == 0;
		holder_copy(subject.holder, subject.pid, false, &copy);
	}
	for (int i = 0; i < 200 && subject.notes->signals < sent; i++)
		usleep(10000);
	cr_assert_eq(subject.notes->signals, sent, "%ld of %ld", subject.notes->signals, sent);
	cr_assert_eq(subject_end(&subject), 0);
}

static char state_of(pid_t pid)
{
	struct proc_status status;

	return procfs_status(&procfs_real, pid, pid, &status) < 0 ? '?' : status.state;
}

/* Let go in a group stop, a thread goes to it by way of the run queue: it makes no step of its own there, but /proc says R until it has had a CPU. */
static bool comes_to_a_stop(pid_t pid)
{
	for (int i = 0; i < 2000 && state_of(pid) != 'T'; i++)
		usleep(1000);
	return state_of(pid) == 'T';
}

Test(signals, leave_a_stopped_program_stopped)
{
	struct subject subject = subject_start(spin, NULL, NULL);
	const struct hold_copy *copy;

	kill(subject.pid, SIGSTOP);
	waitpid(subject.pid, NULL, WUNTRACED);
	for (int i = 0; i < 20; i++) {
		cr_assert_eq(holder_copy(subject.holder, subject.pid, i % 2, &copy), HOLD_NOT_NOW);
		cr_assert_eq(state_of(subject.pid), 'T');
	}
	kill(subject.pid, SIGCONT);
	must_copy(&subject, subject.pid, false);
	cr_assert_eq(subject_end(&subject), 0);
}

Test(signals, leave_a_program_stopped_that_is_stopped_while_held)
{
	struct subject subject = subject_start(spin, NULL, NULL);
	const struct hold_copy *copy;
	long turns;

	for (int i = 0; i < 200; i++) {
		kill(subject.pid, SIGSTOP);
		holder_copy(subject.holder, subject.pid, false, &copy);
		cr_assert_eq(waitpid(subject.pid, NULL, WUNTRACED), subject.pid);
		turns = subject.notes->rounds;
		cr_assert(comes_to_a_stop(subject.pid));
		cr_assert_eq(subject.notes->rounds, turns, "it ran while it was stopped");
		kill(subject.pid, SIGCONT);
		holder_copy(subject.holder, subject.pid, false, &copy);
	}
	cr_assert_eq(subject_end(&subject), 0);
}

/* ---- threads that come and go ---- */

static void *short_life(void *context)
{
	struct notes *notes = context;

	notes->tid = gettid();
	for (volatile int i = 0; i < 30000; i++)
		;
	return NULL;
}

static void churn(struct notes *notes)
{
	pthread_t thread;

	notes->ready = 1;
	while (!notes->stop) {
		if (pthread_create(&thread, NULL, short_life, notes) != 0)
			continue;
		pthread_join(thread, NULL);
		notes->rounds++;
	}
}

Test(threads, may_end_while_they_are_held)
{
	struct subject subject = subject_start(churn, NULL, NULL);
	uint64_t until_ns = clock_monotonic_ns() + 1000000000ull;
	const struct hold_copy *copy;
	long copied = 0, gone = 0;

	while (clock_monotonic_ns() < until_ns) {
		enum hold_result result = holder_copy(subject.holder, subject.notes->tid, false, &copy);

		copied += result == HOLD_COPIED;
		gone += result == HOLD_GONE;
		cr_assert(result != HOLD_FAILED && result != HOLD_REFUSED, "result %d, error %d", (int)result, copy->error);
	}
	cr_assert(copied > 0 && gone > 0 && subject.notes->rounds > 10, "%ld copied, %ld gone", copied, gone);
	cr_assert_eq(subject_end(&subject), 0);
}

static void end_at_once(struct notes *notes)
{
	notes->ready = 1;
	while (!notes->stop)
		;
	_exit(7);
}

Test(threads, are_their_parents_when_they_have_ended)
{
	for (int i = 0; i < 40; i++) {
		struct subject subject = subject_start(end_at_once, NULL, NULL);
		const struct hold_copy *copy;
		enum hold_result result = HOLD_COPIED;
		uint64_t until_ns = clock_monotonic_ns() + 10000000000ull;

		for (int k = 0; result != HOLD_GONE && clock_monotonic_ns() < until_ns; k++) {
			if (k == i)
				subject.notes->stop = 1;
			result = holder_copy(subject.holder, subject.pid, false, &copy);
		}
		cr_assert_eq(result, HOLD_GONE);
		cr_assert_eq(waitpid(subject.pid, &(int){ 0 }, 0), subject.pid);
		holder_close(subject.holder);
	}
}

static void *outlive(void *context)
{
	struct notes *notes = context;

	notes->tid = gettid();
	while (!notes->stop)
		usleep(1000);
	_exit(3);
}

static void leave_others(struct notes *notes)
{
	pthread_t thread;

	pthread_create(&thread, NULL, outlive, notes);
	notes->ready = 1;
	for (volatile int i = 0; i < 3000000; i++)
		;
	pthread_exit(NULL);
}

Test(threads, may_be_the_first_one_that_ends_before_the_others)
{
	struct subject subject = subject_start(leave_others, NULL, NULL);
	enum hold_result result = HOLD_COPIED;
	const struct hold_copy *copy;

	for (int k = 0; k < 100000 && result != HOLD_GONE; k++)
		result = holder_copy(subject.holder, subject.pid, false, &copy);
	cr_assert_eq(result, HOLD_GONE);
	cr_assert_eq(subject_end(&subject), 3);
}

Test(threads, of_another_tracer_are_refused)
{
	struct subject subject = subject_start(spin, NULL, NULL);
	const struct hold_copy *copy;

	cr_assert_eq(ptrace(PTRACE_SEIZE, subject.pid, NULL, NULL), 0);
	cr_assert_eq(holder_copy(subject.holder, subject.pid, false, &copy), HOLD_REFUSED);
	cr_assert_eq(copy->error, EPERM);
	ptrace(PTRACE_INTERRUPT, subject.pid, NULL, NULL);
	waitpid(subject.pid, NULL, __WALL);
	ptrace(PTRACE_DETACH, subject.pid, NULL, NULL);
	must_copy(&subject, subject.pid, false);
	cr_assert_eq(subject_end(&subject), 0);
}

/* ---- the small process ---- */

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
	uint64_t until_ns = clock_monotonic_ns() + 1500000000ull;
	const struct hold_copy *copy;
	pthread_t thread;
	long copied = 0;

	pthread_create(&thread, NULL, kill_holders, &killer);
	while (clock_monotonic_ns() < until_ns)
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

Test(holder, ends_with_the_attacher)
{
	struct subject subject = subject_start(spin, NULL, NULL);

	holder_close(subject.holder);
	subject.holder = NULL;
	for (int i = 0; i < 20; i++) {
		pid_t attacher = fork(), small = 0;

		if (attacher == 0) {
			const struct hold_copy *copy;
			struct holder *holder;

			prctl(PR_SET_PDEATHSIG, SIGKILL);
			if (holder_open(subject.target, NULL, NULL, &holder, NULL) == 0)
				for (;;)
					holder_copy(holder, subject.pid, false, &copy);
			_exit(1);
		}
		for (int k = 0; k < 2000 && (small = holder_pid(attacher)) == 0; k++)
			usleep(1000);
		cr_assert_neq(small, 0);
		usleep((useconds_t)(i * 337));
		kill(attacher, SIGKILL);
		waitpid(attacher, NULL, 0);
		for (int k = 0; k < 3000 && kill(small, 0) == 0 && state_of(small) != 'Z'; k++)
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
	attacher = fork();
	if (attacher == 0) {
		const struct hold_copy *copy;
		struct holder *holder;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (holder_open(subject.target, NULL, NULL, &holder, NULL) == 0)
			for (;;)
				holder_copy(holder, subject.pid, false, &copy);
		_exit(1);
	}
	for (int i = 0; i < 100; i++) {
		long rounds;

		for (int k = 0; k < 10000 && (small = holder_pid(attacher)) == 0; k++)
			usleep(1000);
		cr_assert_neq(small, 0);
		usleep((useconds_t)(i * 7));
		kill(attacher, SIGSTOP);
		kill(small, SIGSTOP);
		rounds = subject.notes->rounds;
		for (int k = 0; k < 2000 && (subject.notes->rounds == rounds || state_of(subject.pid) == 't'); k++)
			usleep(1000);
		cr_assert(subject.notes->rounds != rounds && state_of(subject.pid) != 't', "held for two seconds");
		kill(small, SIGCONT);
		kill(attacher, SIGCONT);
	}
	kill(attacher, SIGKILL);
	waitpid(attacher, NULL, 0);
	cr_assert_eq(subject_end(&subject), 0);
}
