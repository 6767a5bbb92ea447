/*
 * The switch thread: sleeps on a futex in the page, and takes the GIL to open the next window, for the turns of --alternate, and to take hooks off that nobody calls. It begins the
 * device's part where the driver came late: nobody has to enter the process for that.
 */
#include "collector/collector.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collector/thread.h"

enum { WATCH_MS = 500, ALONE_MS = 400, FOLDER_LINKS = 2, LEAVES_NS = 100000000, LEAVING_POLL_NS = 20000, BREATH_MS = 5, SWITCH_INTERVAL_MS = 5 /* sys.getswitchinterval(), 3.8-3.15, unless the program changed it */, SWITCHER_STACK_BYTES = 256 * 1024 };

enum switcher_sleep { AWAKE = 0, ASLEEP = 1, DISMISSED = 2 /* in its sleep: it touches nothing any more */ };

static bool sleep_ends(uint32_t how)
{
	uint32_t asleep = ASLEEP;

	return __atomic_compare_exchange_n(&the.switcher_sleep, &asleep, how, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

void switcher_tell(uint32_t value)
{
	futex_tell(&the.page->switch_word, value);
}

static uint64_t ns_until(uint64_t ticks)
{
	uint64_t now = ticks_now();

	return ticks <= now ? 0 : ticks_to_ns(ticks - now) + 1;
}

static uint64_t next_window(const struct page *page)
{
	return __atomic_load_n(&page->switch_at_ticks, __ATOMIC_ACQUIRE);
}

static uint64_t rest_end(void)
{
	return __atomic_load_n(&the.memory.rest_until, __ATOMIC_ACQUIRE);
}

static uint64_t turn_ticks(void)
{
	return the.settings.ticks_per_second * the.settings.alternate_ms / 1000;
}

/* On for a turn, off for a turn: what the program does in both can be compared. The budget is that of the turns with hooks. */
static void alternate(uint64_t now)
{
	the.alternate_at += turn_ticks();
	if (the.alternate_at < now)
		the.alternate_at = now + turn_ticks();
	if (!the.pausing) {
		if (the.hooks_on)
			window_close(now, WINDOW_ALTERNATE);
		budget_earn(now);
		the.alternate_saved = the.saved;
	}
	the.pausing = !the.pausing;
	write_throttle(now, 0, the.pausing ? THROTTLE_TURN_OFF : THROTTLE_TURN_ON, 0);
	__atomic_store_n(&the.page->alternate_off, the.pausing, __ATOMIC_RELEASE);
	if (the.pausing) {
		memory_pause();
		return;
	}
	memory_resume();
	budget_earn(now);
	the.saved = the.alternate_saved;
	window_open(now, WINDOW_ALTERNATE, now);
}

static bool is_turn(uint64_t now)
{
	return the.alternate_at && now >= the.alternate_at;
}

/* Takes the GIL, and does what is due. False: there is nothing more to do, ever. */
static bool switcher_act(void)
{
	uint64_t asked = ticks_now(), now, begin, held;
	int gil;

	if (python_ends(&the.python))
		return false;
	if (!gil_ensure(&gil))
		return true; /* another time */
	the.memory.muted++;
	begin = monotonic_ns();
	now = ticks_now();
	if (the.armed && !the.child && !the.dead) {
		if (budget_is_over(now))
			window_close(now, __atomic_load_n(&the.page->stop, __ATOMIC_RELAXED) ? WINDOW_ARM : WINDOW_DEADLINE);
		else if (is_turn(now))
			alternate(now);
		else if (!the.hooks_on && now >= the.cycle_end)
			window_open(now, WINDOW_BUDGET, asked + the.settings.ticks_per_second * SWITCH_INTERVAL_MS / 1000);
		__atomic_store_n(&the.page->switch_at_ticks, the.cycle_end, __ATOMIC_RELEASE);
		if (!the.dead && !the.pausing && memory_rested(now))
			memory_resume();
		if (the.hooks_on)
			the.page->switch_word = SWITCH_RUNNING;
	}
	held = monotonic_ns() - begin;
	if (held > the.page->holder_ns_max)
		the.page->holder_ns_max = held;
	if (the.hooks_on && the.settings.max_overhead_ppm)
		budget_charge(held);
	the.memory.muted--;
	gil_release(gil);
	return !__atomic_load_n(&the.dead, __ATOMIC_ACQUIRE);
}

/* Main and we are all there is, as os.fork() of 3.12 and later would count; where there is no /proc, that counts no thread of ours. The folder has a link for each thread beside its own two. */
static bool is_alone(void)
{
	struct stat folder;

	return syscall(SYS_newfstatat, AT_FDCWD, "/proc/self/task", &folder, 0) == 0 && folder.st_nlink == FOLDER_LINKS + 2;
}

/* It has nothing to do but to open windows, which the attacher can do as well; rests of samples of allocations are its own to end. */
static bool is_spare(void)
{
	return the.settings.may_start_thread == SWITCHER_BESIDE && !the.settings.alternate_ms && !the.settings.memory_interval && !the.settings.heap_slot_count && !rest_end() && is_alone();
}

/* Windows are the attacher's to open from now on. With the GIL. */
static void hand_over(void)
{
	the.switcher_over = true;
	__atomic_store_n(&the.page->switch_tid, 0, __ATOMIC_RELAXED);
	if (!the.hooks_on)
		__atomic_store_n(&the.page->rearm_wanted, 1, __ATOMIC_RELEASE);
}

void switcher_give_way(void)
{
	const struct timespec pause = {0, LEAVING_POLL_NS};
	uint64_t end = monotonic_ns() + LEAVES_NS;

	if (!the.switcher_made || the.switcher_over || !is_spare() || !sleep_ends(DISMISSED))
		return;
	hand_over();
	switcher_tell(SWITCH_QUIT);
	while (is_alone() && monotonic_ns() < end)
		nanosleep(&pause, NULL);
}

/* Twice in a row, or a program with a thread now and then would lose it at once. */
static bool is_to_end(uint64_t *spare_since)
{
	uint64_t now = monotonic_ns();
	bool over = false;
	int gil;

	if (!is_spare()) {
		*spare_since = 0;
		return false;
	}
	if (!*spare_since)
		*spare_since = now;
	if (now - *spare_since < ALONE_MS * 1000000ull || python_ends(&the.python) || !gil_ensure(&gil))
		return false;
	/* From here on who closes a window knows that it asks the attacher. */
	if (the.armed && !the.dead && is_spare()) {
		hand_over();
		over = true;
	}
	gil_release(gil);
	return over;
}

static void *switcher_run(void *nothing)
{
	uint64_t spare_since = 0;
	struct page *page = the.page;
	bool acted = false, followed = false;

	prctl(PR_SET_NAME, "inferscope");
	__atomic_store_n(&page->switch_tid, (uint32_t)syscall(SYS_gettid), __ATOMIC_RELAXED);
	for (;;) {
		uint32_t word = __atomic_load_n(&page->switch_word, __ATOMIC_ACQUIRE);
		uint64_t wait = WATCH_MS * 1000000ull;

		if (word == SWITCH_QUIT || __atomic_load_n(&the.switcher_quit, __ATOMIC_ACQUIRE))
			break;
		if (word == SWITCH_OFF && ns_until(next_window(page)) < wait)
			wait = ns_until(next_window(page));
		if (the.alternate_at && (word != SWITCH_OFF || the.pausing || ns_until(the.alternate_at) < wait))
			wait = ns_until(the.alternate_at);
		if (rest_end() && !the.pausing && ns_until(rest_end()) < wait)
			wait = ns_until(rest_end());
		/* Whatever the words say: the GIL is not asked for again and again. */
		if (acted && wait < BREATH_MS * 1000000ull)
			wait = BREATH_MS * 1000000ull;
		if (wait) {
			__atomic_store_n(&the.switcher_sleep, ASLEEP, __ATOMIC_RELEASE);
			futex_wait(&page->switch_word, word, wait);
			if (!sleep_ends(AWAKE))
				return NULL;
		}
		if (__atomic_load_n(&page->switch_word, __ATOMIC_ACQUIRE) == SWITCH_QUIT || __atomic_load_n(&the.switcher_quit, __ATOMIC_ACQUIRE))
			break;
		if (!followed && __atomic_load_n(&page->gpu_begin, __ATOMIC_ACQUIRE)) {
			followed = true;
			device_follow();
		}
		heap_tend();
		acted = (word == SWITCH_OFF && !the.pausing && !ns_until(next_window(page))) || is_turn(ticks_now()) || (!the.pausing && memory_rested(ticks_now())) || budget_is_over(ticks_now());
		if (acted && !switcher_act())
			break;
		if (the.pausing)
			heap_pause();
		else
			heap_resume();
		if (is_to_end(&spare_since))
			return NULL;
	}
	heap_tend();
	__atomic_store_n(&page->switch_tid, 0, __ATOMIC_RELAXED);
	return NULL;
}

void switcher_start(bool again)
{
	if (!the.settings.may_start_thread || (the.switcher_made && !the.switcher_over))
		return;
	__atomic_store_n(&the.page->switch_at_ticks, the.cycle_end, __ATOMIC_RELEASE);
	the.page->switch_word = the.hooks_on || !again ? SWITCH_RUNNING : SWITCH_OFF;
	if (the.switcher_made) { /* it ended with the GIL, which is ours now, or was dismissed in its sleep: it needs nobody any more */
		pthread_join(the.switcher, NULL);
		the.switcher_made = false;
	}
	the.switcher_over = the.switcher_quit = false;
	the.switcher_sleep = AWAKE;
	the.alternate_at = the.settings.alternate_ms ? ticks_now() + turn_ticks() : 0;
	the.pausing = false;
	the.switcher_made = thread_start(&the.switcher, switcher_run, SWITCHER_STACK_BYTES);
	if (the.switcher_made)
		__atomic_store_n(&the.page->rearm_wanted, 0, __ATOMIC_RELEASE);
}

void switcher_stop(void)
{
	if (!the.switcher_made)
		return;
	__atomic_store_n(&the.switcher_quit, true, __ATOMIC_RELEASE);
	switcher_tell(SWITCH_QUIT);
	pthread_join(the.switcher, NULL);
	the.switcher_made = the.switcher_over = false;
}
