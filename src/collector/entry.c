/*
 * The one way in: commands of the attacher, on a thread that it started and that ends with the command. abi/handover.h has the
 * protocol. Commands of two attachers at once are told apart by a lock that is waited for no longer than a dead attacher can hold it.
 */
#include "collector/collector.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collector/libc.h"
#include "collector/page.h"
#include "collector/stack.h"

enum { BUSY_EXTRA_NS = 500000000, LEAVING_TRIES = 50 };

struct collector the __attribute__((visibility("hidden")));

/* Another attacher is at work here, or a thread that one left. */
static void say_busy(struct handover *handover, const char *what)
{
	if (the.holder)
		snprintf(handover->text, sizeof handover->text, "process %u %s", (unsigned)the.holder, what);
	else
		snprintf(handover->text, sizeof handover->text, "another inferscope %s", what);
	handover->error = EBUSY;
	handover_say(handover, SAID_FAILED);
}

static const struct hooks *choose(const struct page *settings, int minor)
{
	switch (settings->backend) {
	case BACKEND_NONE:
		return NULL;
	case BACKEND_MONITORING:
		return &hooks_monitoring;
	case BACKEND_EVALUATOR:
		return &hooks_evaluator;
	case BACKEND_SETPROFILE:
		return &hooks_setprofile;
	case BACKEND_SETTRACE:
		return minor >= 12 ? &hooks_monitoring_lines : &hooks_settrace;
	default:
		if (minor >= 12)
			return &hooks_monitoring;
		return settings->c_calls == C_CALLS_ALL ? &hooks_setprofile : &hooks_evaluator;
	}
}

static int refuse(struct page *page, int reason)
{
	page->reason = (uint32_t)reason;
	return reason;
}

/* What can be had without the GIL. */
static int prepare(struct page *page)
{
	int reason = python_find(&the.python, page->reason_text, PAGE_TEXT_BYTES);

	if (reason)
		return refuse(page, reason);
	page->python_hex = the.python.hex;
	the.hooks = choose(&the.settings, the.python.minor);
	if (!the.hooks || !the.hooks->cost_factor[the.python.minor]) {
		snprintf(page->reason_text, PAGE_TEXT_BYTES, "this way to hook does not exist on Python 3.%d", the.python.minor);
		return refuse(page, REASON_VERSION);
	}
	if (lanes_open() || codes_open()) {
		snprintf(page->reason_text, PAGE_TEXT_BYTES, "no memory for the tables");
		return refuse(page, REASON_MEMORY);
	}
	the.page = page;
	the.mapping_bytes = the.settings.mapping_bytes;
	the.tsc = the.settings.clock == CLOCK_TSC;
	the.hooks_on = the.dead = false;
	the.tokens = -1;
	stack_learn();
	budget_init();
	return 0;
}

/* Under the GIL. The evaluator may be taken by another: then the profile function, where nobody has that either. */
static int install(struct page *page)
{
	int reason = python_check(&the.python, page->reason_text, PAGE_TEXT_BYTES);

	if (reason)
		return reason;
	reason = the.hooks->install(page->reason_text, PAGE_TEXT_BYTES);
	if (reason == REASON_HOOK_TAKEN && the.settings.backend == BACKEND_AUTO && the.hooks == &hooks_evaluator) {
		the.hooks = &hooks_setprofile;
		budget_init();
		reason = the.hooks->install(page->reason_text, PAGE_TEXT_BYTES);
	}
	return reason;
}

static void forget(void)
{
	void *page = the.page;

	__atomic_store_n(&the.armed, false, __ATOMIC_SEQ_CST);
	the.tokens = -1;
	the.window++;
	lanes_end();
	the.page = the.mapped = NULL;
	munmap(page, the.mapping_bytes);
}

/* Its attacher has not pushed the deadline ahead: it is dead. */
static bool is_past(const struct page *page)
{
	return ticks_now() > __atomic_load_n(&page->deadline_ticks, __ATOMIC_ACQUIRE);
}

static void arm_with_gil(struct page *page)
{
	uint32_t pending = ARM_PENDING;
	uint64_t begin = monotonic_ns();
	int reason;

	/* The GIL took so long that whoever wanted this is gone. */
	if (is_past(page))
		__atomic_compare_exchange_n(&page->arm, &pending, ARM_CANCELLED, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
	pending = ARM_PENDING;
	if (!__atomic_compare_exchange_n(&page->arm, &pending, ARM_ARMED, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
		forget();
		codes_close();
		return;
	}
	lanes_begin();
	__atomic_store_n(&the.forks, 0, __ATOMIC_RELAXED);
	reason = install(page);
	if (reason) {
		refuse(page, reason);
		__atomic_store_n(&page->arm, ARM_FAILED, __ATOMIC_RELEASE);
		forget();
		codes_close();
		return;
	}
	the.heap.lane = the.settings.heap_slot_count ? lanes_take_memory() : NULL;
	if (the.settings.gpu && lanes_take_gpu(&the.gpu.names_lane, &the.gpu.work_lane))
		the.gpu.profiled = torch_profiled();
	page->backend_used = the.hooks->kind;
	__atomic_store_n(&page->state, COLLECTOR_COLLECTING, __ATOMIC_RELEASE);
	__atomic_store_n(&the.armed, true, __ATOMIC_SEQ_CST);
	window_open(ticks_now(), WINDOW_ARM, 0);
	scopes_begin(ticks_now());
	garbage_begin();
	memory_begin();
	page->arm_ns = monotonic_ns() - begin;
}

/* Asks for the GIL unless the interpreter ends, or there is no memory for it. */
static bool gil_take(int *gil)
{
	bool taken;

	if (!the.python.Py_IsInitialized || python_ends(&the.python))
		return false;
	the.waits_for_gil = true;
	taken = gil_ensure(gil);
	the.waits_for_gil = false;
	return taken;
}

/* Hooks are to go: memory is waited for a little. Without it they take themselves off when their deadline is over. */
static bool gil_take_at_last(int *gil)
{
	const struct timespec pause = {0, 10000000};

	for (int tries = 0; !gil_take(gil); tries++) {
		if (tries == LEAVING_TRIES || python_ends(&the.python))
			return false;
		nanosleep(&pause, NULL);
	}
	return true;
}

static void disarm(void)
{
	struct page *page = the.page;
	int gil;

	if (!page)
		return;
	if (__atomic_load_n(&the.gpu.taken, __ATOMIC_ACQUIRE) && gil_take(&gil)) {
		the.gpu.profiled = torch_profiled();
		gil_release(gil);
	}
	switcher_stop(); /* first: it may begin the device's part */
	gpu_stop();
	heap_end();
	if (!gil_take_at_last(&gil)) { /* the process ends, or there is no memory: what hooks there are take themselves off */
		if (!python_ends(&the.python))
			refuse(page, REASON_MEMORY);
		return;
	}
	memory_end();
	window_close(ticks_now(), WINDOW_ARM);
	scopes_end();
	garbage_end();
	the.hooks->remove();
	page->fork_children = __atomic_load_n(&the.forks, __ATOMIC_RELAXED);
	__atomic_store_n(&page->state, COLLECTOR_FINALIZED, __ATOMIC_RELEASE);
	__atomic_store_n(&page->arm, ARM_DISARMED, __ATOMIC_RELEASE);
	forget();
	codes_close();
	gil_release(gil);
}

static void arm(struct handover *handover)
{
	struct page *page;
	int gil;

	if (the.armed && !the.dead && !is_past(the.page)) {
		say_busy(handover, "is measuring it");
		return;
	}
	disarm(); /* of an attacher that died */
	if (the.page) { /* hooks that could not be taken off look at it */
		bool ends = python_ends(&the.python);

		handover_fail(handover, ends ? ECANCELED : ENOMEM, ends ? "the interpreter is about to end" : "a thread state of the interpreter");
		return;
	}
	the.holder = handover->attacher_pid;
	page = page_take(handover);
	if (!page)
		return;
	handover->page_addr = (uint64_t)(uintptr_t)page;
	handover_say(handover, SAID_MAPPED);
	if (prepare(page)) {
		__atomic_store_n(&page->arm, ARM_FAILED, __ATOMIC_RELEASE);
		the.page = the.mapped = NULL;
		codes_forget(); /* empty */
		munmap(page, the.settings.mapping_bytes);
	} else if (gil_take(&gil)) {
		arm_with_gil(page);
		if (the.armed && (the.settings.max_overhead_ppm || the.settings.alternate_ms))
			switcher_start(false);
		gil_release(gil);
		if (the.armed)
			heap_begin();
		if (the.armed && the.settings.gpu == GPU_NOW)
			gpu_start();
	} else {
		bool ends = python_ends(&the.python);

		snprintf(page->reason_text, PAGE_TEXT_BYTES, ends ? "the interpreter is about to end" : "no memory for a thread state of the interpreter");
		refuse(page, ends ? REASON_FINALIZING : REASON_MEMORY);
		__atomic_store_n(&page->arm, ARM_FAILED, __ATOMIC_RELEASE);
		forget();
		codes_forget(); /* empty */
	}
	handover_say(handover, SAID_DONE);
}

/* Locations that were disabled are armed again: the attacher's way where nothing in the target fires any more. Where the program has other threads by now, the next time is a switch thread's. */
static void rearm(void)
{
	int gil;

	if (!the.armed || !gil_take(&gil))
		return;
	if (the.armed && !the.hooks_on)
		window_open(ticks_now(), WINDOW_BUDGET, 0);
	if (the.armed && !the.dead && __atomic_load_n(&the.page->may_start_thread, __ATOMIC_ACQUIRE)) {
		if (!the.settings.may_start_thread)
			the.settings.may_start_thread = SWITCHER_BESIDE;
		switcher_start(true);
	}
	gil_release(gil);
}

void device_follow(void)
{
	int gil;

	if (!the.armed || the.dead || !gil_take(&gil))
		return;
	the.gpu.profiled = the.armed && torch_profiled();
	gil_release(gil);
	gpu_start();
}

__attribute__((visibility("default"))) void inferscope_collector_entry(struct handover *handover);

/* One command at a time. The thread of an attacher that died gives up after its wait_ms; so it is worth to wait a little longer here. */
static bool enter(const struct handover *handover)
{
	uint64_t end = monotonic_ns() + (uint64_t)handover->wait_ms * 1000000 + BUSY_EXTRA_NS;
	struct timespec pause = {0, 1000000};

	for (;;) {
		bool expected = false;

		if (__atomic_compare_exchange_n(&the.entered, &expected, true, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			return true;
		if (__atomic_load_n(&handover->answer, __ATOMIC_ACQUIRE) == ANSWER_GIVE_UP || monotonic_ns() > end)
			return false;
		nanosleep(&pause, NULL);
	}
}

void inferscope_collector_entry(struct handover *handover)
{
	bool helped;

	if (!handover || handover->magic != HANDOVER_MAGIC)
		return;
	handover->lanes_fd = -1;
	if (!enter(handover)) {
		say_busy(handover, the.waits_for_gil ? "sent a thread into it that still waits for the GIL" : "is entering or leaving it");
		return;
	}
	the.child = false; /* a forked child that is attached itself: its parent's session is gone already */
	if (!the.fork_watched)
		the.fork_watched = !fork_watch();
	helped = handover->command != HANDOVER_NOTHING && gil_help_begin();
	switch (handover->command) {
	case HANDOVER_ARM:
		arm(handover);
		break;
	case HANDOVER_DISARM:
		disarm();
		handover_say(handover, SAID_DONE);
		break;
	case HANDOVER_REARM:
		rearm();
		handover_say(handover, SAID_DONE);
		break;
	case HANDOVER_GPU:
		device_follow();
		handover_say(handover, SAID_DONE);
		break;
	case HANDOVER_NOTHING:
		handover_say(handover, SAID_DONE);
		break;
	default:
		handover_fail(handover, EINVAL, "a command that this collector does not know");
	}
	gil_help_end(helped);
	__atomic_store_n(&the.entered, false, __ATOMIC_RELEASE);
}
