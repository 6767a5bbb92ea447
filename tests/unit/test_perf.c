/* Samples by perf_event: of children that know their registers, and of rings made by hand. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "unwind/perf.h"
#include "unwind/perf_record.h"

/* ---- rings ---- */

enum { RING = 4096, STACK = 64, SAMPLE = 8 + 32 + 17 * 8 + 8 + STACK + 8 };

struct made {
	unsigned char ring[RING];
	uint64_t head;
};

static void put(struct made *made, const void *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		made->ring[made->head++ & (RING - 1)] = ((const unsigned char *)bytes)[i];
}

static void put_word(struct made *made, uint64_t word)
{
	put(made, &word, sizeof word);
}

static void put_header(struct made *made, uint32_t type, uint16_t size)
{
	struct perf_event_header header = { .type = type, .size = size };

	put(made, &header, sizeof header);
}

static void put_sample(struct made *made, uint32_t tid, uint64_t abi, uint64_t valid)
{
	put_header(made, PERF_RECORD_SAMPLE, SAMPLE);
	put(made, (uint32_t[]){ 1, tid }, 8);
	put_word(made, 1000 + tid);
	put_word(made, 2000 + tid);
	put_word(made, abi);
	for (uint64_t i = 0; i < 17; i++)
		put_word(made, 100 + i);
	put_word(made, STACK);
	for (uint64_t i = 0; i < STACK / 8; i++)
		put_word(made, i);
	put_word(made, valid);
}

struct seen {
	int count;
	uint64_t cpu_ns;
	struct thread_copy last;
};

static void see(void *context, const struct thread_copy *copy, uint64_t cpu_ns)
{
	struct seen *seen = context;

	seen->count++;
	seen->cpu_ns = cpu_ns;
	seen->last = *copy;
}

static struct thread_copy scratch;

static uint64_t parse(const struct made *made, uint64_t tail, struct seen *seen, struct perf_counts *counts)
{
	memset(counts, 0, sizeof *counts);
	memset(seen, 0, sizeof *seen);
	return perf_parse(made->ring, RING, tail, made->head, false, &scratch, see, seen, counts);
}

Test(ring, gives_samples_in_dwarf_order_also_across_its_end)
{
	static const unsigned char dwarf[17] = { 0, 3, 2, 1, 4, 5, 6, 7, 16, 8, 9, 10, 11, 12, 13, 14, 15 };

	for (uint64_t start = RING - SAMPLE - 8; start <= RING; start += 8) {
		struct made made = { .head = start };
		struct perf_counts counts;
		struct seen seen;

		put_sample(&made, 7, PERF_SAMPLE_REGS_ABI_64, 40);
		cr_assert_eq(parse(&made, start, &seen, &counts), made.head);
		cr_assert(seen.count == 1 && counts.samples == 1 && counts.damaged == 0);
		cr_assert(seen.last.tid == 7 && seen.last.at_ns == 1007 && seen.cpu_ns == 2007 && seen.last.stack_size == 40);
		for (unsigned i = 0; i < 17; i++)
			cr_assert_eq(seen.last.regs[dwarf[i]], 100 + i);
		cr_assert_eq(seen.last.stack[8], 1);
	}
}

/* A sample as before, with a group of COUNT values behind its period. */
static void put_counted(struct made *made, uint64_t count, uint64_t stated)
{
	put_header(made, PERF_RECORD_SAMPLE, (uint16_t)(SAMPLE + 8 + count * 8));
	put(made, (uint32_t[]){ 1, 7 }, 8);
	put_word(made, 1007);
	put_word(made, 2007);
	put_word(made, stated);
	for (uint64_t i = 0; i < count; i++)
		put_word(made, 50 + i);
	put_word(made, PERF_SAMPLE_REGS_ABI_64);
	for (uint64_t i = 0; i < 17; i++)
		put_word(made, 100 + i);
	put_word(made, STACK);
	for (uint64_t i = 0; i < STACK / 8; i++)
		put_word(made, i);
	put_word(made, 40);
}

static void parse_counted(const struct made *made, struct seen *seen, struct perf_counts *counts)
{
	memset(counts, 0, sizeof *counts);
	memset(seen, 0, sizeof *seen);
	perf_parse(made->ring, RING, 0, made->head, true, &scratch, see, seen, counts);
}

Test(ring, gives_what_the_counters_of_a_group_stand_at)
{
	struct made made = { .head = 0 };
	struct perf_counts counts;
	struct seen seen;

	put_counted(&made, 3, 3);
	parse_counted(&made, &seen, &counts);
	cr_assert(seen.count == 1 && seen.last.gained_count == 2 && seen.last.stack_size == 40 && seen.last.regs[0] == 100);
	cr_expect(seen.last.gained[0] == 51 && seen.last.gained[1] == 52, "the first one is the clock");
}

Test(ring, takes_no_group_that_does_not_fit)
{
	static const uint64_t stated[] = { 0, SAMPLED_COUNTERS + 2, 1000, UINT64_MAX };

	for (size_t i = 0; i < sizeof stated / sizeof *stated; i++) {
		struct made made = { .head = 0 };
		struct perf_counts counts;
		struct seen seen;

		put_counted(&made, 3, stated[i]);
		parse_counted(&made, &seen, &counts);
		cr_expect(seen.count == 0 && counts.without_stack == 1, "%llu", (unsigned long long)stated[i]);
	}
}

Test(ring, counts_what_was_lost_throttled_or_has_no_stack)
{
	struct made made = { .head = 0 };
	struct perf_counts counts;
	struct seen seen;

	put_header(&made, PERF_RECORD_LOST, 24);
	put_word(&made, 1);
	put_word(&made, 5);
	put_header(&made, PERF_RECORD_LOST_SAMPLES, 16);
	put_word(&made, 3);
	put_header(&made, PERF_RECORD_THROTTLE, 8);
	put_header(&made, 77, 16); /* of a later kernel */
	put_word(&made, 0);
	put_sample(&made, 7, PERF_SAMPLE_REGS_ABI_32, 40);
	put_sample(&made, 8, PERF_SAMPLE_REGS_ABI_NONE, 40);
	put_sample(&made, 9, PERF_SAMPLE_REGS_ABI_64, 0);
	parse(&made, 0, &seen, &counts);
	cr_assert(counts.lost == 8 && counts.throttled == 1 && counts.without_stack == 2 && counts.damaged == 0);
	cr_assert(seen.count == 1 && seen.last.tid == 9 && seen.last.stack_size == 0);
}

Test(ring, drops_what_makes_no_sense)
{
	struct perf_counts counts;
	struct seen seen;

	for (uint16_t size = 0; size < 8; size++) {
		struct made made = { .head = 0 };

		put_header(&made, PERF_RECORD_SAMPLE, size);
		put_sample(&made, 9, PERF_SAMPLE_REGS_ABI_64, 0);
		cr_assert_eq(parse(&made, 0, &seen, &counts), made.head);
		cr_assert(seen.count == 0 && counts.damaged == 1);
	}
	{
		struct made made = { .head = 3 * RING };

		cr_assert_eq(parse(&made, RING, &seen, &counts), made.head);
		cr_assert_eq(counts.damaged, 1);
	}
}

Test(ring, reads_nothing_outside_whatever_it_holds)
{
	struct made *made = malloc(sizeof *made); /* exactly as large, for the sanitizer */
	struct perf_counts counts;
	struct seen seen;
	unsigned seed = 1;

	for (int round = 0; round < 20000; round++) {
		uint64_t tail = (uint64_t)rand_r(&seed) % RING & ~7ull;

		made->head = tail;
		for (int i = 0; i < 3; i++)
			put_sample(made, 7, PERF_SAMPLE_REGS_ABI_64, 40);
		for (int i = 0; i < 12; i++)
			made->ring[rand_r(&seed) % RING] = (unsigned char)rand_r(&seed);
		made->ring[(tail + 8 + 32 + 17 * 8 + (unsigned)rand_r(&seed) % 8) % RING] = (unsigned char)rand_r(&seed); /* the size of the stack */
		cr_assert(parse(made, tail, &seen, &counts) <= made->head);
		cr_assert(seen.count <= 512 && seen.last.stack_size <= THREAD_COPY_STACK_MAX);
	}
	free(made);
}

/* ---- real ones ---- */

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

static uint64_t cpu_ns(pid_t pid)
{
	uint64_t run_ns = 0, wait_ns;

	procfs_schedstat(&procfs_real, pid, pid, &run_ns, &wait_ns);
	return run_ns;
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

enum { PAGES = 20000 };
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
	while (faults < PAGES && clock_monotonic_ns() < until_ns) {
		usleep(10000);
		perf_read(perf, add_faults, &faults);
	}
	cr_expect(faults >= PAGES && faults <= FAULTS_MOST, "%llu faults for %d pages", (unsigned long long)faults, PAGES);
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
