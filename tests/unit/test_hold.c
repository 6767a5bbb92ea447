/* Threads held and let go: children of the test that know their registers, count their signals, come and go. */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "hold_subject.h"
#include "inject/critical.h"
#include "inject/memory.h"

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
	cr_assert(copy->stack_size > 64 && copy->regs[7] + copy->stack_size == copy->thread_pointer, "the control block lies above a thread's stack");
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

/* ---- signals ---- */

static void spin_under_signals(struct notes *notes)
{
	count_signals(SIGRTMIN, notes);
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
	uint64_t begun_ns = clock_monotonic_ns();
	const struct hold_copy *copy;
	long copied = 0, gone = 0;

	/* A second, and longer where others want the CPUs. */
	for (uint64_t took_ns = 0; took_ns < 1000000000 || (took_ns < 30000000000 && !(copied > 0 && gone > 0 && subject.notes->rounds > 10)); took_ns = clock_monotonic_ns() - begun_ns) {
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

/* A number of a thread that has ended, and is another process's by the time it is seized. */
Test(threads, of_another_process_are_left_alone)
{
	struct subject subject = subject_start(spin, NULL, NULL);
	struct window *window = window_new();

	window->tid = window->inner_tid = subject.pid;
	window->memory_fd = window->status_fd = window->call_fd = -1;
	window->max_tries = 1;
	window->stop_timeout_ms = window->runnable_timeout_ms = window->hold_timeout_ms = 1000;
	snprintf(window->stat_path, sizeof window->stat_path, "/proc/%d/task/%d/stat", (int)getpid(), (int)subject.pid);
	window_run(window);
	cr_assert_eq(window->result, WINDOW_GONE, "result %d", window->result);
	cr_assert_eq(window->hold_ns, 0, "it was held");
	window_free(window);
	must_copy(&subject, subject.pid, false);
	cr_assert_eq(subject_end(&subject), 0);
}
