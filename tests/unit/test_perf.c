/* Samples by perf_event: of children that know their registers. Rings made by hand are perf_ring.c's. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "unwind/perf.h"

static pid_t spin_child(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		__asm__ volatile("movabs $0x1111111111111111, %%rbx\n\tmovabs $0x2222222222222222, %%r12\n\tsub $64, %%rsp\n\tmov %%r12, (%%rsp)\n\t1: jmp 1b" : : : "rbx", "r12", "memory");
	}
	return pid;
}

static struct perf *open_or_skip(pid_t pid, uint32_t rate_hz, uint32_t stack_bytes)
{
	struct perf *perf = NULL;
	struct error err;

	if (perf_possible(pid, &err) < 0) {
		kill(pid, SIGKILL);
		cr_skip_test("%s", err.text);
	}
	cr_assert_eq(perf_open(rate_hz, stack_bytes, true, &perf, &err), 0);
	return perf;
}

struct check {
	pid_t tid;
	int count, wrong;
	uint64_t last_ns;
};

static void check_sample(void *context, const struct thread_copy *copy, uint64_t cpu_ns)
{
	struct check *check = context;
	uint64_t word = 0;

	memcpy(&word, copy->stack, sizeof word);
	/* The first ones may come from before it spins. */
	if (copy->regs[DWARF_RBX] == 0x1111111111111111 && (copy->regs[12] != 0x2222222222222222 || copy->stack_size < 64 || word != 0x2222222222222222))
		check->wrong++;
	if (copy->tid != check->tid || copy->at_ns < check->last_ns || copy->at_ns > clock_monotonic_ns() || cpu_ns == 0)
		check->wrong++;
	check->last_ns = copy->at_ns;
	check->count += copy->regs[DWARF_RBX] == 0x1111111111111111;
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

Test(perf, samples_registers_and_stack_of_a_running_thread)
{
	pid_t pid = spin_child();
	struct perf *perf = open_or_skip(pid, 1000, 16384);
	struct check check = { .tid = pid };
	struct perf_totals totals;

	cr_assert_eq(perf_add(perf, pid), 0);
	cr_assert_eq(perf_add(perf, pid), 0, "it is watched already");
	for (int i = 0; i < 1000 && check.count < 300; i++) {
		usleep(10000);
		perf_read(perf, check_sample, &check);
	}
	totals = perf_totals(perf);
	cr_assert(check.count >= 300 && check.wrong == 0, "%d samples, %d wrong", check.count, check.wrong);
	cr_assert(totals.threads == 1 && totals.refused == 0 && totals.samples >= 300 && totals.why[0] == '\0');
	perf_remove(perf, pid);
	perf_remove(perf, pid);
	cr_assert_eq(perf_totals(perf).threads, 0);
	perf_close(perf);
	end_child(pid);
}

Test(perf, that_is_given_up_watches_nobody_and_names_each_once)
{
	pid_t pid = spin_child(), other = spin_child();
	struct perf *perf = open_or_skip(pid, 1000, 16384);
	struct perf_totals totals;

	cr_assert_eq(perf_add(perf, pid), 0);
	perf_give_up(perf, "too dear");
	cr_assert_eq(perf_add(perf, pid), -1);
	cr_assert_eq(perf_add(perf, other), -1);
	totals = perf_totals(perf);
	cr_assert(totals.threads == 0 && totals.refused == 2, "%u watched, %u refused", totals.threads, totals.refused);
	cr_assert_str_eq(totals.why, "too dear");
	perf_close(perf);
	end_child(pid);
	end_child(other);
}

struct told { uint64_t samples, cpu_ns; };

static void add_told(void *context, const struct thread_copy *copy, uint64_t cpu)
{
	struct told *told = context;

	told->samples++;
	told->cpu_ns += cpu;
}

static uint64_t cpu_ns(pid_t pid)
{
	uint64_t run_ns = 0, wait_ns;

	procfs_schedstat(&procfs_real, pid, pid, &run_ns, &wait_ns);
	return run_ns;
}

/* On for less than a sample's distance each time: nothing would ever be told if each turn began anew. */
Test(perf, goes_on_after_a_rest_where_it_was)
{
	pid_t pid = spin_child();
	struct perf *perf = open_or_skip(pid, 50, 8192);
	struct told told = { 0 }, before;
	struct pollfd wait = { .fd = perf_descriptor(perf), .events = POLLIN };
	uint64_t on_ns = 0;

	for (int turn = 0; turn < 2000 && on_ns < 400000000; turn++) {
		uint64_t begun_ns = cpu_ns(pid);

		cr_assert_eq(perf_add(perf, pid), 0);
		for (uint64_t end_ns = clock_monotonic_ns() + 6000000; clock_monotonic_ns() < end_ns;) {
			poll(&wait, 1, 2);
			perf_read(perf, add_told, &told);
		}
		perf_rest(perf);
		on_ns += cpu_ns(pid) - begun_ns;
		before = told;
		usleep(2000);
		perf_read(perf, add_told, &told);
		cr_assert(told.samples == before.samples && perf_waiting(perf) == 0, "it does not rest");
		cr_assert_eq(perf_totals(perf).threads, 1);
	}
	/* What runs between a turn's first sample and its reading is not told, which takes long on a busy machine. */
	cr_assert(told.samples >= 4 && told.samples <= 40, "%llu samples", (unsigned long long)told.samples);
	cr_assert(told.cpu_ns > on_ns / 100 * 20 && told.cpu_ns < on_ns / 100 * 110, "%llu of %llu ms told", (unsigned long long)told.cpu_ns / 1000000, (unsigned long long)on_ns / 1000000);
	perf_remove(perf, pid);
	cr_assert_eq(perf_totals(perf).threads, 0);
	perf_close(perf);
	end_child(pid);
}

/* A page for children to say in that they are where they are to be sampled. */
static volatile int *place_to_say(void)
{
	volatile int *said = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(said, MAP_FAILED);
	return said;
}

static void await_said(const volatile int *said)
{
	while (!*said)
		usleep(1000);
}

/* Spins with so much stack that no sample ends before it does. */
static pid_t deep_child(void)
{
	enum { DEEP = 1 << 17 };
	volatile int *said = place_to_say();
	pid_t pid = fork();

	if (pid == 0) {
		volatile char *deep = __builtin_alloca(DEEP);

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (size_t i = 0; i < DEEP; i += 64)
			deep[i] = 1;
		*said = 1;
		for (;;)
			;
	}
	await_said(said);
	return pid;
}

static void keep_size(void *context, const struct thread_copy *copy, uint64_t cpu_ns)
{
	*(uint32_t *)context = copy->stack_size;
}

/* Of the samples from now on. */
static uint32_t stack_size(struct perf *perf)
{
	uint32_t size = 0;

	perf_read(perf, keep_size, &size);
	size = 0;
	for (int i = 0; i < 2000 && !size; i++) {
		usleep(10000);
		perf_read(perf, keep_size, &size);
	}
	return size;
}

Test(perf, brings_more_stack_once_that_was_asked_for)
{
	pid_t pid = deep_child();
	struct perf *perf = open_or_skip(pid, 1000, 4096);

	cr_assert_eq(perf_add(perf, pid), 0);
	cr_assert_eq(stack_size(perf), 4096);
	perf_widen(perf, pid, 9000);
	cr_assert_eq(stack_size(perf), 16384);
	perf_widen(perf, pid, 100);
	cr_assert_eq(stack_size(perf), 16384, "never less again");
	cr_assert_eq(perf_totals(perf).stack_bytes, 16384);
	cr_assert_gt(perf_totals(perf).copied_bytes, 3 * 4096);
	perf_widen(perf, pid, 1 << 20);
	cr_assert_geq(stack_size(perf), 65000, "as much as a record holds");
	perf_widen(perf, pid + 1, 1 << 20);
	cr_assert_eq(perf_totals(perf).threads, 1);
	perf_close(perf);
	end_child(pid);
}

/* Spins on a stack at STACK of which only the first page was ever touched. */
static pid_t sparse_child(void *stack)
{
	volatile int *said = place_to_say();
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		*(volatile char *)stack = 1;
		__asm__ volatile("mov %0, %%rsp\n\tmovl $1, (%1)\n\t1: jmp 1b" : : "r"(stack), "r"(said) : "memory");
	}
	await_said(said);
	return pid;
}

/* What looker_touch() relies on (Linux 6.18). */
Test(perf, copies_stack_to_the_first_page_that_was_neither_written_nor_read)
{
	enum { BYTES = 16384, TOUCHED = 4096 };
	char *stack = mmap(NULL, 2 * BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), rest[BYTES - TOUCHED];
	struct iovec ours = { rest, sizeof rest }, theirs = { stack + TOUCHED, sizeof rest };
	struct perf *perf;
	pid_t pid;

	cr_assert_neq(stack, MAP_FAILED);
	madvise(stack, 2 * BYTES, MADV_NOHUGEPAGE);
	pid = sparse_child(stack);
	perf = open_or_skip(pid, 1000, BYTES);
	cr_assert_eq(perf_add(perf, pid), 0);
	cr_expect_eq(stack_size(perf), TOUCHED);
	cr_assert_eq(process_vm_readv(pid, &ours, 1, &theirs, 1, 0), (ssize_t)sizeof rest);
	cr_expect_eq(stack_size(perf), BYTES);
	perf_close(perf);
	end_child(pid);
}

Test(perf, wakes_who_waits_for_a_sample)
{
	pid_t pid = spin_child();
	struct perf *perf = open_or_skip(pid, 1000, 8192);
	struct check check = { .tid = pid };
	struct pollfd wait = { .fd = perf_descriptor(perf), .events = POLLIN };

	cr_assert_eq(poll(&wait, 1, 0), 0, "nothing is watched yet");
	cr_assert_eq(perf_add(perf, pid), 0);
	cr_assert_eq(poll(&wait, 1, 30000), 1);
	while (perf_read(perf, check_sample, &check) == 0)
		usleep(1000);
	cr_assert_eq(check.wrong, 0);
	end_child(pid);
	perf_read(perf, check_sample, &check);
	perf_close(perf);
}

Test(perf, takes_about_as_many_as_were_asked_for)
{
	pid_t pid = spin_child();
	struct perf *perf = open_or_skip(pid, 200, 4096);
	struct check check = { .tid = pid };
	uint64_t since_ns, until_ns = clock_monotonic_ns() + 1500000000ull;
	double wanted;

	cr_assert_eq(perf_add(perf, pid), 0);
	since_ns = cpu_ns(pid);
	while (clock_monotonic_ns() < until_ns) {
		usleep(20000);
		perf_read(perf, check_sample, &check);
	}
	wanted = (double)(cpu_ns(pid) - since_ns) * 200e-9;
	check.count += (int)perf_totals(perf).lost; /* this machine may be too busy to read in time */
	cr_assert(wanted < 20 || (check.count > wanted * 0.6 && check.count < wanted * 1.4), "%d instead of %.0f", check.count, wanted);
	perf_close(perf);
	end_child(pid);
}

Test(perf, counts_and_names_threads_beyond_the_limit_of_descriptors)
{
	int fd;
	struct rlimit few = { 48, 48 };
	struct perf_totals totals;
	pid_t pids[40];
	struct perf *perf;

	for (int i = 0; i < 40; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			for (;;)
				pause();
		}
	}
	setrlimit(RLIMIT_NOFILE, &few);
	perf = open_or_skip(pids[0], 100, 4096);
	for (int round = 0; round < 2; round++)
		for (int i = 0; i < 40; i++)
			perf_add(perf, pids[i]);
	totals = perf_totals(perf);
	cr_assert(totals.threads > 5 && totals.threads + totals.refused == 40 && strstr(totals.why, "no descriptor left"), "%u %u %s", totals.threads,
	          totals.refused, totals.why);
	fd = open("/dev/null", O_RDONLY);
	cr_assert_geq(fd, 0, "others can be opened still");
	close(fd);
	perf_close(perf);
	for (int i = 0; i < 40; i++)
		end_child(pids[i]);
}

enum { PAGES = 20000, FAULTS_LEAST = PAGES - PAGES / 20 /* on a busy machine the kernel may throttle, and counts nothing meanwhile */ };
/* The sanitizer's shadow of a page is touched with it: an eighth. */
#ifdef __SANITIZE_ADDRESS__
enum { FAULTS_MOST = PAGES * 115 / 100 };
#else
enum { FAULTS_MOST = PAGES * 102 / 100 };
#endif

/* Touches each page once, then spins, so that samples go on. */
static pid_t touch_child(int go)
{
	pid_t pid = fork();
	char byte;

	if (pid == 0) {
		volatile char *pages = mmap(NULL, (size_t)PAGES * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		madvise((void *)pages, (size_t)PAGES * 4096, MADV_NOHUGEPAGE);
		if (read(go, &byte, 1) != 1)
			_exit(1);
		for (size_t i = 0; i < PAGES; i++)
			pages[i * 4096] = 1;
		for (;;)
			;
	}
	return pid;
}

static void add_faults(void *context, const struct thread_copy *copy, uint64_t cpu)
{
	uint64_t *faults = context;

	if (copy->gained_count)
		*faults += copy->gained[COUNTER_MINOR_FAULTS - COUNTERS_SAMPLED];
}

Test(perf, tells_with_each_sample_what_page_faults_came_since_the_one_before)
{
	uint64_t faults = 0, until_ns = clock_monotonic_ns() + 20000000000ull;
	struct perf *perf;
	int go[2];
	pid_t pid;

	cr_assert_eq(pipe(go), 0);
	pid = touch_child(go[0]);
	perf = open_or_skip(pid, 200, 8192);
	perf_count(perf);
	cr_assert_eq(perf_add(perf, pid), 0);
	cr_assert_eq(write(go[1], "g", 1), 1);
	while (faults < FAULTS_LEAST && clock_monotonic_ns() < until_ns) {
		usleep(10000);
		perf_read(perf, add_faults, &faults);
	}
	cr_expect(faults >= FAULTS_LEAST && faults <= FAULTS_MOST, "%llu faults for %d pages", (unsigned long long)faults, PAGES);
	perf_close(perf);
	end_child(pid);
}

static void *sleep_for_ever(void *context)
{
	(void)context;
	for (;;)
		pause();
	return NULL;
}

Test(perf, watches_150_threads)
{
	pid_t tids[200], pid = fork();
	ssize_t count = 0;
	struct perf *perf;

	if (pid == 0) {
		pthread_attr_t small;
		pthread_t thread;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pthread_attr_init(&small);
		pthread_attr_setstacksize(&small, 65536);
		for (int i = 0; i < 150; i++)
			pthread_create(&thread, &small, sleep_for_ever, NULL);
		sleep_for_ever(NULL);
	}
	for (int i = 0; i < 10000 && count < 151; i++) {
		usleep(1000);
		count = procfs_threads(&procfs_real, pid, tids, 200);
	}
	perf = open_or_skip(pid, 100, 8192);
	for (ssize_t i = 0; i < count; i++)
		perf_add(perf, tids[i]);
	cr_assert_eq(perf_totals(perf).threads + perf_totals(perf).refused, 151);
	cr_assert(perf_totals(perf).refused == 0 || geteuid() != 0, "%s", perf_totals(perf).why);
	perf_close(perf);
	end_child(pid);
}

/* Two must fit, though only one comes between two reads. */
Test(perf, has_a_ring_at_few_samples_per_second)
{
	pid_t pid = spin_child();
	struct perf *perf = open_or_skip(pid, 10, 8192);

	cr_assert_eq(perf_add(perf, pid), 0);
	perf_close(perf);
	end_child(pid);
}

Test(perf, knows_what_a_sample_costs)
{
	pid_t pid = spin_child();
	uint64_t cost_ns;

	perf_close(open_or_skip(pid, 100, 4096));
	end_child(pid);
	cost_ns = perf_cost_ns(8192, false, false);
	cr_assert(cost_ns == 0 || (cost_ns > 400 && cost_ns < 60000000), "%llu ns", (unsigned long long)cost_ns);
}

Test(perf, says_why_not)
{
	struct error err = { 0 };
	struct perf *perf;

	cr_assert_eq(perf_possible(999999999, &err), -1);
	cr_assert(err.code == ERR_EXITED || err.code == ERR_PERMISSION, "%s", err.text);
	cr_assert_eq(perf_open(0, 8192, true, &perf, &err), -1);
	cr_assert_eq(perf_open(100, 8191, true, &perf, &err), -1);
	cr_assert_eq(perf_open(100, 65536, true, &perf, &err), -1);
}
