/* Asks the small process (holder.c) for looks at threads, watches it, ends it when it does not answer, and starts it anew. */
#include "inject/hold.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "inject/holder.h"

#define NS_PER_MS 1000000ull
#define TIMEOUT_MS 50     /* the alarm inside */
#define HOLD_MS 2500     /* longer than it can take, for all its alarms */
#define PATIENCE_MS 200  /* for the rest of the answer: its death harms nobody then */
#define LOOK_NS 2000000l /* whether it lives, while it is silent */

struct holder {
	struct hold_work work;
	pid_t child; /* 0: none now */
	struct hold_totals totals;
	struct hold_copy none; /* what is handed out when nothing can be said */
};

static void reap(struct holder *holder)
{
	while (waitpid(holder->child, NULL, 0) < 0 && errno == EINTR)
		;
	holder->child = 0;
}

static int start(struct holder *holder)
{
	struct hold_page *page = holder->work.page;
	sigset_t all, before;
	pid_t child;
	int error;

	page->answered = page->asked;
	page->leaving = page->held = false;
	holder->work.parent = getpid();
	/* No handler of the attacher's may run in the child. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	child = fork();
	error = errno;
	if (child == 0)
		holder_process(&holder->work);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (child < 0) {
		errno = error;
		return -1;
	}
	holder->child = child;
	return 0;
}

static void count_hold(struct holder *holder, uint64_t hold_ns)
{
	holder->totals.count++;
	holder->totals.total_ns += hold_ns;
	if (hold_ns > holder->totals.longest_ns)
		holder->totals.longest_ns = hold_ns;
}

/* Has the child ended? Also true when somebody else reaped it. */
static bool has_ended(struct holder *holder)
{
	if (waitpid(holder->child, NULL, WNOHANG) == 0)
		return false;
	holder->child = 0;
	return true;
}

static bool is_late(const struct hold_page *page, uint64_t since_ns)
{
	uint64_t now_ns = clock_monotonic_ns();

	return page->held ? now_ns - page->interrupted_ns > HOLD_MS * NS_PER_MS : now_ns - since_ns > PATIENCE_MS * NS_PER_MS;
}

/* False when the child ended, or had to be ended, before it answered. */
static bool wait_for_answer(struct holder *holder, uint32_t question)
{
	struct hold_page *page = holder->work.page;
	const struct timespec look = { 0, LOOK_NS };
	uint64_t since_ns = clock_monotonic_ns();
	uint32_t answered;

	while ((answered = __atomic_load_n(&page->answered, __ATOMIC_ACQUIRE)) != question) {
		if (syscall(SYS_futex, &page->answered, FUTEX_WAIT, answered, &look, NULL, 0) == 0 || errno != ETIMEDOUT)
			continue;
		if (has_ended(holder))
			return __atomic_load_n(&page->answered, __ATOMIC_ACQUIRE) == question;
		if (is_late(page, since_ns)) {
			kill(holder->child, SIGKILL);
			reap(holder);
			return __atomic_load_n(&page->answered, __ATOMIC_ACQUIRE) == question;
		}
	}
	return true;
}

enum hold_result holder_copy(struct holder *holder, pid_t tid, bool force, const struct hold_copy **out)
{
	struct hold_page *page = holder->work.page;
	uint32_t question;

	holder->none.error = 0;
	*out = &holder->none;
	if (!holder->child || has_ended(holder)) {
		if (start(holder) < 0) {
			holder->none.error = errno;
			return HOLD_FAILED;
		}
		holder->totals.restarts++;
	}
	page->tid = tid;
	page->force = force;
	question = __atomic_add_fetch(&page->asked, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, &page->asked, FUTEX_WAKE, 1, NULL, NULL, 0);
	if (!wait_for_answer(holder, question)) {
		if (page->held)
			count_hold(holder, clock_monotonic_ns() - page->interrupted_ns);
		return HOLD_NOT_NOW;
	}
	if (page->leaving && holder->child)
		reap(holder);
	if (page->copy.hold_ns) {
		count_hold(holder, page->copy.hold_ns);
		holder->totals.repaired += page->copy.repaired;
	}
	*out = &page->copy;
	return (enum hold_result)page->result;
}

bool holder_possible(void)
{
	return MACHINE_BORROWS_RUNNING; /* else what a stop does to a thread that waits in no system call cannot be told */
}

int holder_open(const struct target *target, hold_extra extra, void *context, struct holder **out, struct error *err)
{
	struct holder *holder;
	struct hold_page *page;

	if (!holder_possible())
		return fail(err, ERR_ARCHITECTURE, "no thread is held for samples on " MACHINE_NAME);
	holder = calloc(1, sizeof *holder);
	page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (!holder || page == MAP_FAILED) {
		free(holder);
		if (page != MAP_FAILED)
			munmap(page, sizeof *page);
		return fail(err, ERR_MEMORY, "preparing to sample");
	}
	page->timeout_ms = TIMEOUT_MS;
	holder->work = (struct hold_work){ .page = page, .target = target, .extra = extra, .context = context };
	if (start(holder) < 0) {
		fail(err, error_of(errno, ERR_INJECT), "cannot start the process that samples: %s", strerror(errno));
		holder_close(holder);
		return -1;
	}
	*out = holder;
	return 0;
}

void holder_close(struct holder *holder)
{
	if (!holder)
		return;
	if (holder->child) {
		kill(holder->child, SIGKILL); /* it holds nothing between questions */
		reap(holder);
	}
	munmap(holder->work.page, sizeof *holder->work.page);
	free(holder);
}

struct hold_totals holder_totals(const struct holder *holder)
{
	return holder->totals;
}
