/* Counters of threads: of a child that knows how many pages it touches and how often it sleeps, and of a folder that plays /proc. */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "session/switching.h"
#include "session/thread_counts.h"
#include "tests/unit/folder.h"

enum { PAGE = 4096, PAGES = 20000, NAPS = 300 };
/* The sanitizer's shadow of a page is touched with it: an eighth. */
#ifdef __SANITIZE_ADDRESS__
enum { FAULTS_MOST = PAGES * 115 / 100 };
#else
enum { FAULTS_MOST = PAGES * 102 / 100 };
#endif

struct child { pid_t pid; int go, done; };

static void await(int fd)
{
	char byte;

	if (read(fd, &byte, 1) != 1)
		_exit(1);
}

static void touch_and_nap(void)
{
	char *pages = mmap(NULL, (size_t)PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	madvise(pages, (size_t)PAGES * PAGE, MADV_NOHUGEPAGE); /* each page a fault */
	for (size_t i = 0; i < PAGES; i++)
		pages[i * PAGE] = 1;
	for (int i = 0; i < NAPS; i++)
		nanosleep(&(struct timespec){ 0, 1000 }, NULL);
}

/* Waits for a byte, works, says so, and waits again. */
static struct child child_start(void)
{
	int go[2], done[2];
	struct child child;

	cr_assert_eq(pipe(go), 0);
	cr_assert_eq(pipe(done), 0);
	child = (struct child){ fork(), go[1], done[0] };
	if (child.pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (write(done[1], "r", 1) != 1)
			_exit(1);
		await(go[0]);
		touch_and_nap();
		if (write(done[1], "d", 1) != 1)
			_exit(1);
		await(go[0]);
		_exit(0);
	}
	await(child.done);
	return child;
}

static void child_end(const struct child *child)
{
	kill(child->pid, SIGKILL);
	waitpid(child->pid, NULL, 0);
}

struct told { uint64_t values[THREAD_COUNTERS]; uint32_t known, count; };

static void take(void *context, pid_t tid, enum thread_counter which, uint64_t value, bool scaled)
{
	struct told *told = context;

	told->values[which] = value;
	told->known |= 1u << which;
	told->count++;
}

static void expect_storm(const struct told *told)
{
	cr_expect(told->values[COUNTER_MINOR_FAULTS] >= PAGES && told->values[COUNTER_MINOR_FAULTS] <= FAULTS_MOST, "%llu faults", (unsigned long long)told->values[COUNTER_MINOR_FAULTS]);
	cr_expect(told->values[COUNTER_SWITCHES] >= NAPS - NAPS / 10, /* a nap may be over before its thread has left the CPU, where that was taken away */
	          "%llu switches", (unsigned long long)told->values[COUNTER_SWITCHES]);
}

Test(counts, know_how_many_pages_were_touched)
{
	struct child child = child_start();
	struct thread_counts *counts;
	struct told told = { 0 };
	struct error err;

	cr_assert_eq(thread_counts_open(&procfs_real, child.pid, 0, &counts, &err), 0);
	thread_counts_add(counts, child.pid, false);
	cr_assert_eq(write(child.go, "g", 1), 1);
	await(child.done);
	thread_counts_read(counts, NULL, NULL, take, &told);
	expect_storm(&told);
	cr_expect_eq(thread_counts_totals(counts).sums[COUNTER_MINOR_FAULTS], told.values[COUNTER_MINOR_FAULTS]);
	if (thread_counts_totals(counts).perf)
		cr_expect(told.known >> COUNTER_MIGRATIONS & 1 && told.known >> COUNTER_TASK_CLOCK & 1);
	thread_counts_close(counts);
	child_end(&child);
}

struct worker { pthread_t thread; int go[2], done[2]; pid_t tid; };

static void *work(void *context)
{
	struct worker *worker = context;

	worker->tid = gettid();
	touch_and_nap();
	cr_assert_eq(write(worker->done[1], "d", 1), 1);
	await(worker->go[0]);
	return NULL;
}

/* Has done its work when this returns. */
static void worker_start(struct worker *worker)
{
	cr_assert_eq(pipe(worker->go), 0);
	cr_assert_eq(pipe(worker->done), 0);
	cr_assert_eq(pthread_create(&worker->thread, NULL, work, worker), 0);
	await(worker->done[0]);
}

Test(counts, of_a_thread_that_began_meanwhile_go_back_to_its_beginning_and_of_one_that_was_only_missed_do_not)
{
	struct worker before, since;
	struct thread_counts *counts;
	struct told told = { 0 };
	struct error err;

	worker_start(&before);
	usleep(20000); /* starts are told by the hundredth of a second */
	cr_assert_eq(thread_counts_open(&procfs_real, getpid(), 0, &counts, &err), 0);
	thread_counts_add(counts, before.tid, true);
	thread_counts_read(counts, NULL, NULL, take, &told);
	cr_expect_lt(told.values[COUNTER_MINOR_FAULTS], PAGES / 10);
	thread_counts_close(counts);
	cr_assert_eq(thread_counts_open(&procfs_real, getpid(), 0, &counts, &err), 0);
	worker_start(&since);
	thread_counts_add(counts, since.tid, true);
	thread_counts_read(counts, NULL, NULL, take, &told);
	cr_expect_geq(told.values[COUNTER_MINOR_FAULTS], PAGES);
	thread_counts_close(counts);
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(write((i ? &before : &since)->go[1], "g", 1), 1);
		pthread_join((i ? &before : &since)->thread, NULL);
	}
}

static bool lives_not(const void *context, pid_t tid)
{
	return false;
}

static int descriptors(void)
{
	int next = dup(0);

	close(next);
	return next;
}

Test(counts, leave_no_descriptor_of_a_thread_that_ended)
{
	struct child child = child_start();
	int before = descriptors();
	struct thread_counts *counts;
	struct told told = { 0 };
	struct error err;

	cr_assert_eq(thread_counts_open(&procfs_real, child.pid, 0, &counts, &err), 0);
	thread_counts_add(counts, child.pid, false);
	thread_counts_read(counts, lives_not, NULL, take, &told);
	cr_expect_gt(told.count, 0, "it was read once more");
	cr_expect_eq(thread_counts_totals(counts).threads, 0);
	cr_expect_eq(descriptors(), before);
	thread_counts_close(counts);
	child_end(&child);
}

struct slowed { pid_t tids[2]; int rounds, open; };

static bool slow(void *context, const pid_t tids[2], int round)
{
	struct slowed *slowed = context;

	memcpy(slowed->tids, tids, sizeof slowed->tids);
	cr_expect_eq(tids[0], gettid());
	cr_expect(tids[1] != tids[0] && kill(tids[1], 0) == 0);
	slowed->rounds++;
	slowed->open++;
	return round != 1;
}

static void slow_no_more(void *context)
{
	struct slowed *slowed = context;

	slowed->open--;
}

Test(switching, is_measured_and_leaves_no_descriptor_and_the_cpus_as_they_were)
{
	int descriptor = descriptors();
	struct slowed slowed = { 0 };
	struct switching_load load = { slow, slow_no_more, &slowed, 3 };
	cpu_set_t before, after;

	cr_assert_eq(sched_getaffinity(0, sizeof before, &before), 0);
	cr_expect_lt(switching_extra_ns(&load), 1000000, "nothing makes them slower");
	cr_expect_eq(slowed.rounds, 3);
	cr_expect_eq(slowed.open, 1, "what could not be added is not taken away");
	cr_assert_eq(sched_getaffinity(0, sizeof after, &after), 0);
	cr_expect(CPU_EQUAL(&before, &after));
	cr_expect_eq(descriptors(), descriptor);
}

/* Calls of all threads but this one fail, where it is not 0. */
static pid_t alone_writes, alone_reads;

static bool fails(const pid_t *alone)
{
	pid_t tid = __atomic_load_n(alone, __ATOMIC_RELAXED);

	errno = EIO;
	return tid && tid != gettid();
}

ssize_t write(int fd, const void *bytes, size_t size)
{
	return fails(&alone_writes) ? -1 : syscall(SYS_write, fd, bytes, size);
}

ssize_t read(int fd, void *bytes, size_t size)
{
	return fails(&alone_reads) ? -1 : syscall(SYS_read, fd, bytes, size);
}

static bool fail_from_now(void *context, const pid_t tids[2], int round)
{
	__atomic_store_n((pid_t *)context, tids[0], __ATOMIC_RELAXED);
	return true;
}

static void goes_on(void *context)
{
}

/* An answer that never came was waited for for ever, and the attach for its sampler. */
Test(switching, ends_where_the_other_thread_fails, .timeout = 20)
{
	pid_t *const ways[] = { &alone_writes, &alone_reads };
	int descriptor = descriptors();

	for (int i = 0; i < 2; i++) {
		struct switching_load load = { fail_from_now, goes_on, ways[i], 2 };

		cr_expect_eq(switching_extra_ns(&load), 0, "from some time on");
		cr_expect_eq(switching_extra_ns(&load), 0, "from the beginning");
		*ways[i] = 0;
		cr_expect_eq(descriptors(), descriptor);
	}
}

/* ---- without perf_event ---- */

static void put_thread(const char *folder, int minor, int major, int voluntary, int involuntary)
{
	char text[8192], groups[5000]; /* as many as 1 000 of them */

	memset(groups, '1', sizeof groups - 1);
	groups[sizeof groups - 1] = '\0';
	snprintf(text, sizeof text, "999999999 (x) S 1 1 1 0 -1 4194304 %d 0 %d 0 10 5 0 0 20 0 1 0 100 1000 10 0 0 0 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0\n", minor, major);
	folder_write(folder, "999999999/task/999999999/stat", text);
	snprintf(text, sizeof text, "Name:\tx\nState:\tS (sleeping)\nGroups:\t%s\nvoluntary_ctxt_switches:\t%d\nnonvoluntary_ctxt_switches:\t%d\n", groups, voluntary, involuntary);
	folder_write(folder, "999999999/task/999999999/status", text);
}

/* No such thread is there for perf_event, so that only /proc tells of it. */
Test(counts, are_those_of_proc_where_perf_event_tells_nothing)
{
	char folder[FOLDER_BYTES];
	struct procfs procfs = { folder };
	struct thread_counts *counts;
	struct told told = { 0 };
	struct error err;

	folder_make(folder);
	put_thread(folder, 1000, 20, 300, 40);
	cr_assert_eq(thread_counts_open(&procfs, 999999999, 0, &counts, &err), 0);
	thread_counts_add(counts, 999999999, false);
	put_thread(folder, 1700, 25, 310, 41);
	thread_counts_read(counts, NULL, NULL, take, &told);
	cr_expect_eq(told.values[COUNTER_MINOR_FAULTS], 700);
	cr_expect_eq(told.values[COUNTER_MAJOR_FAULTS], 5);
	cr_expect_eq(told.values[COUNTER_SWITCHES], 11);
	cr_expect_eq(told.known >> COUNTER_MIGRATIONS & 1, 0, "which /proc does not tell");
	thread_counts_close(counts);
	folder_remove(folder);
}
