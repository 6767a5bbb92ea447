/*
 * Forked children are clean: the lanes are their parent's, and must not be written by two. What needs the interpreter's help
 * (sys.monitoring's tool id) is given back as soon as it lets us: monitoring.c. And they inherit no lock of the interpreter's that one of our
 * threads holds.
 */
#include "collector/collector.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "collector/libc.h"
#include "collector/page.h"

enum { PAUSE_NS = 20000, FORK_WAITS_NS = 1000000000 };

static bool take_turn(uint32_t own)
{
	uint32_t nobody = 0;

	return __atomic_compare_exchange_n(&the.fork_turn, &nobody, own, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

void fork_forbid(void)
{
	const struct timespec pause = {0, PAUSE_NS};
	uint32_t own = thread_tid_own();
	int saved = errno;

	while (!take_turn(own))
		nanosleep(&pause, NULL);
	errno = saved;
}

bool fork_try_forbid(void)
{
	return take_turn(thread_tid_own());
}

void fork_allow(void)
{
	uint32_t own = thread_tid_own();

	__atomic_compare_exchange_n(&the.fork_turn, &own, 0, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

/*
 * A thread of the program's goes on after a second, whatever we are at: it may hold what we wait for (it forks out of a callback of dl_iterate_phdr). And at
 * once where it forks already: in a signal handler, in the middle of a fork.
 */
static void before_fork(void)
{
	const struct timespec pause = {0, PAUSE_NS};
	uint64_t end = monotonic_ns() + FORK_WAITS_NS;
	uint32_t own = thread_tid_own();
	int saved = errno;

	/* Whoever warns of other threads has the GIL; without it the page may go at this moment. */
	if (__atomic_load_n(&the.armed, __ATOMIC_ACQUIRE) && !the.child && the.settings.may_start_thread == SWITCHER_BESIDE && gil_holder())
		switcher_give_way();
	while (!take_turn(own) && __atomic_load_n(&the.fork_turn, __ATOMIC_RELAXED) != own && monotonic_ns() < end)
		nanosleep(&pause, NULL);
	errno = saved;
}

/* Perhaps without the GIL: then the page may go at this moment, and the number is told when we leave. */
static void in_parent(void)
{
	fork_allow();
	if (__atomic_load_n(&the.armed, __ATOMIC_ACQUIRE) && !the.child) {
		uint64_t forks = __atomic_add_fetch(&the.forks, 1, __ATOMIC_RELAXED);

		if (gil_holder())
			__atomic_store_n(&the.page->fork_children, forks, __ATOMIC_RELAXED);
	}
}

/* The child has one thread, which may hold the GIL or not: plain stores only. */
static void in_child(void)
{
	__atomic_store_n(&the.fork_turn, 0, __ATOMIC_RELEASE); /* whoever's: that thread stayed with the parent, or has another number here */
	the.entered = the.waits_for_gil = the.gil_asked = false; /* the thread that entered stayed with the parent */
	the.gil_since = 0;
	if (the.lanes_fd)
		close(the.lanes_fd);
	if (the.mapped && the.mapped != the.page)
		munmap(the.mapped, the.settings.mapping_bytes);
	the.lanes_fd = 0;
	the.mapped = NULL;
	gpu_forked();
	heap_forked();
	if (!the.page)
		return;
	the.child = true;
	the.armed = false;
	the.tokens = -1;
	the.window++;
	if (the.hooks && the.hooks->forked)
		the.hooks->forked();
	codes_forget();
	munmap(the.page, the.mapping_bytes);
	the.page = NULL;
	the.hooks_on = the.memory.on = the.memory.inside = false;
	the.memory.muted = 0; /* by a thread that is not here */
	the.memory.left = 0; /* the first allocation takes our functions off */
	sampled_forget(&the.memory.blocks);
	the.switcher_made = the.switcher_over = false;
	the.lanes.leaving = the.lanes.count = 0; /* its threads are not here, nor what they wrote to */
	lane_mine = NULL;
}

int fork_watch(void)
{
	return pthread_atfork(before_fork, in_parent, in_child);
}
