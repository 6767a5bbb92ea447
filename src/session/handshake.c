/* Talking to the collector's entry thread: its words lie in the target and are read and written by process_vm. */
#include "session/handshake.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "inject/memfd.h"
#include "session/payload.h"

enum { LOAD_TIMEOUT_MS = 10000, MAP_TIMEOUT_MS = 5000, END_TIMEOUT_MS = 5000, ANSWER_WAIT_MS = 2500, POLL_US = 200, RETRY_US = 100000,
       ARM_PATIENCE_MS = 5000, LEAVE_PATIENCE_MS = 15000, GIL_NOTICE_MS = 1000, SHUTDOWN_MS = 1000, ARM_TRIES = 2, PUSH_MS = 200 };

static uint64_t deadline_after(uint32_t timeout_ms)
{
	return clock_monotonic_ns() + (uint64_t)timeout_ms * 1000000;
}

static void pause_us(unsigned microseconds)
{
	struct timespec pause = { 0, (long)microseconds * 1000 };

	nanosleep(&pause, NULL);
}

/* One call of the collector's entry: on a thread of ours that was put there, or on one of the process's own. */
struct visit {
	struct entry *entry; /* NULL: the process made the call itself */
	struct inside *inside;
};

static int handover_read(const struct handshake *handshake, const struct visit *visit, struct handover *out, struct error *err)
{
	uint32_t said;

	if (visit->inside) {
		if (inside_ended(visit->inside, 0, err) < 0)
			return -1;
		said = __atomic_load_n(&inside_handover(visit->inside)->said, __ATOMIC_ACQUIRE); /* the rest is valid by that */
		*out = *inside_handover(visit->inside);
		out->said = said;
	} else if (target_read(handshake->target, entry_argument(visit->entry), out, sizeof *out) < 0) {
		if (!target_alive(handshake->target))
			return fail(err, ERR_EXITED, "process %d ended while the collector was being loaded", (int)target_facts(handshake->target)->pid);
		return fail(err, error_of(errno, ERR_COLLECTOR), "the hand-over cannot be read: %s", strerror(errno));
	}
	if (out->magic != HANDOVER_MAGIC)
		return fail(err, ERR_COLLECTOR, "the hand-over was overwritten");
	out->text[sizeof out->text - 1] = '\0';
	return 0;
}

static int answer_write(const struct handshake *handshake, const struct visit *visit, uint64_t lanes_bytes, uint32_t answer)
{
	remote_addr base = visit->entry ? entry_argument(visit->entry) : 0;

	if (visit->inside) {
		inside_handover(visit->inside)->lanes_bytes = lanes_bytes;
		__atomic_store_n(&inside_handover(visit->inside)->answer, answer, __ATOMIC_RELEASE);
		return 0;
	}
	/* The size first: the thread reads it once it has seen the answer. */
	if (target_write(handshake->target, base + offsetof(struct handover, lanes_bytes), &lanes_bytes, sizeof lanes_bytes) < 0)
		return -1;
	return target_write(handshake->target, base + offsetof(struct handover, answer), &answer, sizeof answer);
}

static int visit_wait(const struct visit *visit, int timeout_ms, struct error *err)
{
	int ended;

	if (visit->entry)
		return entry_wait(visit->entry, timeout_ms, err);
	ended = inside_ended(visit->inside, timeout_ms, err);
	return ended ? (ended > 0 ? 0 : -1) : fail(err, ERR_TIMEOUT, "the process has not ended its call of the collector within %d ms", timeout_ms);
}

static void visit_close(const struct visit *visit)
{
	if (visit->entry)
		entry_close(visit->entry);
}

static bool is_stopped(const struct handshake *handshake, struct error *err)
{
	if (!handshake->stop || *handshake->stop == 0)
		return false;
	fail(err, ERR_INTERRUPTED, "attaching to %d was interrupted", (int)target_facts(handshake->target)->pid);
	return true;
}

/* The dead man's switch must not go off while we are still waiting. */
static void deadline_push(struct page *page)
{
	uint64_t ahead = page->clock == CLOCK_TSC ? clock_tsc() + page->ticks_per_second * DEADLINE_AHEAD_MS / 1000 : clock_monotonic_ns() + DEADLINE_AHEAD_MS * 1000000ull;

	__atomic_store_n(&page->deadline_ticks, ahead, __ATOMIC_RELEASE);
}

/* The hooks are on, and the thread has things to do yet that can take long: slots, while others fork. A deadline that we missed ourselves is not told as one that was kept. */
static int armed_wait(struct handshake *handshake, const struct visit *visit, struct page *page, struct error *err)
{
	uint64_t now_ns = clock_monotonic_ns(), end_ns = deadline_after(END_TIMEOUT_MS);
	struct error failure = { .code = ERR_TIMEOUT };
	int result = -1;

	handshake->pushed_ns = now_ns;
	for (;;) {
		deadline_push(page);
		if (result == 0 || failure.code != ERR_TIMEOUT || now_ns > end_ns)
			break;
		result = visit_wait(visit, PUSH_MS, &failure);
		now_ns = clock_monotonic_ns();
		if (now_ns - handshake->pushed_ns <= DEADLINE_AHEAD_MS * 1000000ull)
			handshake->pushed_ns = now_ns;
	}
	if (result < 0 && err)
		*err = failure;
	return result;
}

static int gave_up(const struct handshake *handshake, const struct handover *said, struct error *err)
{
	if (said->said == SAID_GAVE_UP)
		return fail(err, ERR_COLLECTOR, "the collector gave up: it waited %u ms for an answer", (unsigned)said->wait_ms);
	if (said->error == EBUSY)
		return fail(err, ERR_BUSY, "process %d is busy: %.200s", (int)target_facts(handshake->target)->pid, said->text);
	return fail(err, ERR_COLLECTOR, "the collector gave up: %.200s", said->text[0] ? said->text : strerror(said->error));
}

/* Waits until the thread has said at least WANTED. PAGE (may be NULL): its deadline is pushed ahead meanwhile. */
static int said_wait(const struct handshake *handshake, const struct visit *visit, uint32_t wanted, uint32_t timeout_ms, struct page *page, struct handover *out, struct error *err)
{
	uint64_t end_ns = deadline_after(timeout_ms);

	for (;;) {
		if (handover_read(handshake, visit, out, err) < 0)
			return -1;
		if (out->said == SAID_FAILED || out->said == SAID_GAVE_UP)
			return gave_up(handshake, out, err);
		if (out->said >= wanted)
			return 0;
		if (clock_monotonic_ns() > end_ns)
			return fail(err, ERR_TIMEOUT, "the collector did not answer within %u ms", timeout_ms);
		if (page)
			deadline_push(page); /* it maps at this moment: from then on the page decides */
		else if (wanted == SAID_HAVE_FD && is_stopped(handshake, err)) /* leaving is not given up */
			return -1;
		pause_us(POLL_US);
	}
}

static int lanes_open(const struct handshake *handshake, int32_t fd, size_t bytes, struct pool *pool, struct error *err)
{
	const struct procfs *procfs = handshake->inject->procfs ? handshake->inject->procfs : &procfs_real;
	int result, own = memfd_open(procfs, target_facts(handshake->target)->pid, fd, LANES_MEMFD_NAME, O_RDWR, err);

	if (own < 0)
		return -1;
	result = pool_open(own, bytes, pool, err);
	close(own);
	return result;
}

/* The settings of the caller, and what only the pool knows. */
static void page_fill(struct pool *pool, const struct page *settings, uint32_t first)
{
	struct page *page = pool->page;

	memcpy(page, settings, offsetof(struct page, arm));
	page->magic = PAGE_MAGIC;
	page->version = PAGE_VERSION;
	page->page_bytes = PAGE_BYTES;
	page->mapping_bytes = pool->bytes;
	page->subbuf_count = pool->limit;
	page->pool_count = 0;
	deadline_push(page);
	pool_grow(pool, first);
}

static int reason_fail(const struct page *page, struct error *err)
{
	static const struct { uint32_t reason; enum error_code code; const char *text; } rows[] = {
		{ REASON_NOT_PYTHON, ERR_NOT_PYTHON, "no Python interpreter was found in it" },
		{ REASON_NOT_INITIALIZED, ERR_COLLECTOR, "its interpreter has not started yet" },
		{ REASON_FINALIZING, ERR_COLLECTOR, "its interpreter is shutting down" },
		{ REASON_VERSION, ERR_PYTHON_VERSION, "its Python version is not supported" },
		{ REASON_FREE_THREADED, ERR_FREE_THREADED, "it is a free-threaded build" },
		{ REASON_SYMBOLS, ERR_COLLECTOR, "its interpreter lacks a symbol" },
		{ REASON_MEMORY, ERR_COLLECTOR, "it has no memory left" },
		{ REASON_HOOK_TAKEN, ERR_COLLECTOR, "another tool uses the hook" },
		{ REASON_AUDIT_HOOK, ERR_COLLECTOR, "an audit hook stands in the way" },
		{ REASON_TOOL_IDS_TAKEN, ERR_COLLECTOR, "all ids of sys.monitoring are taken" },
		{ REASON_PYTHON_ERROR, ERR_COLLECTOR, "Python raised an error" },
		{ REASON_THREAD, ERR_COLLECTOR, "a thread could not be made" },
		{ REASON_LAYOUT, ERR_COLLECTOR, "its structures are not as expected" },
	};
	uint32_t reason = __atomic_load_n(&page->reason, __ATOMIC_ACQUIRE);
	char text[PAGE_TEXT_BYTES];

	memcpy(text, page->reason_text, sizeof text);
	text[sizeof text - 1] = '\0';
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (rows[i].reason == reason)
			return fail(err, rows[i].code, "the collector could not be armed: %s%s%.400s", rows[i].text, text[0] ? ": " : "", text);
	return fail(err, ERR_COLLECTOR, "the collector could not be armed%s%.400s", text[0] ? ": " : "", text);
}

/* The thread that has the GIL says ARMED first, so that nobody cancels it any more; whether it works out is known once it collects, or has failed. */
static bool is_undecided(const struct page *page, uint32_t *arm)
{
	*arm = __atomic_load_n(&page->arm, __ATOMIC_ACQUIRE);
	return *arm == ARM_PENDING || (*arm == ARM_ARMED && __atomic_load_n(&page->state, __ATOMIC_ACQUIRE) < COLLECTOR_COLLECTING);
}

/* From here page.arm decides. Cancelled means: a thread that gets the GIL later finds that nobody wants it any more. */
static int arm_wait(struct handshake *handshake, struct pool *pool, uint32_t timeout_ms, struct error *err)
{
	uint64_t end_ns = deadline_after(timeout_ms), notice_ns = deadline_after(GIL_NOTICE_MS);
	struct page *page = pool->page;
	uint32_t arm;

	while (is_undecided(page, &arm)) {
		uint64_t now_ns = clock_monotonic_ns();
		bool stopped = is_stopped(handshake, err);

		if (stopped || now_ns > end_ns || !target_alive(handshake->target)) {
			arm = ARM_PENDING;
			if (!__atomic_compare_exchange_n(&page->arm, &arm, ARM_CANCELLED, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
				break;
			if (stopped)
				return fail_hint(err, "the thread that was to arm it still waits for the GIL; it ends, and does nothing, once it has it");
			if (now_ns <= end_ns)
				return fail(err, ERR_EXITED, "process %d ended before measuring began", (int)target_facts(handshake->target)->pid);
			return fail(err, ERR_GIL, "process %d: the GIL was not to be had within %u ms", (int)target_facts(handshake->target)->pid, timeout_ms);
		}
		if (now_ns > notice_ns && handshake->notice) {
			handshake->notice(handshake->notice_context, "waiting for the GIL, which a thread of the process keeps for long; nothing is held up by that, and Ctrl-C gives up");
			notice_ns = UINT64_MAX;
		}
		deadline_push(page);
		pause_us(POLL_US);
	}
	if (arm == ARM_ARMED)
		return 0;
	handshake->reason = __atomic_load_n(&page->reason, __ATOMIC_ACQUIRE);
	return reason_fail(page, err);
}

/* Stopped by job control or a signal: it may stay so for ever, and only its owner may continue it. */
static bool target_stopped(const struct handshake *handshake)
{
	const struct procfs *procfs = handshake->inject->procfs ? handshake->inject->procfs : &procfs_real;
	struct proc_times times;

	return procfs_times(procfs, target_facts(handshake->target)->pid, 0, &times) == 0 && times.state == 'T';
}

/* What an attach of somebody else's left is ended from outside, as is whatever the process does not wait for. */
static bool enters_itself(const struct handshake *handshake, uint32_t command)
{
	return handshake->inside && handshake->inject->library != LIBRARY_OTHER && (command == HANDOVER_ARM || command == HANDOVER_DISARM);
}

/*
 * On a machine with more runnable threads than CPUs, or under a target whose threads all sit where they must not be touched, no thread may be
 * had at the first try. Nothing has happened then, and trying again is harmless.
 */
static int enter(struct handshake *handshake, uint32_t command, uint32_t patience_ms, struct visit *out, struct error *err)
{
	const struct payload payload = {
		.bytes = payload_begin, .size = (size_t)(payload_end - payload_begin), .memfd_name = COLLECTOR_MEMFD_NAME, .entry = COLLECTOR_ENTRY,
	};
	const struct handover handover = { .magic = HANDOVER_MAGIC, .command = command, .wait_ms = ANSWER_WAIT_MS, .attacher_pid = handshake->attacher_pid, .lanes_fd = -1 };
	struct inject_options options = *handshake->inject;
	uint64_t end_ns = deadline_after(patience_ms), now_ns;
	struct error failure = { 0 };

	*out = (struct visit){ 0 };
	if (enters_itself(handshake, command)) {
		out->inside = handshake->inside;
		handshake->receipt = (struct receipt){ .thread_state = "its own" };
		return inside_enter(handshake->inside, &handover, err);
	}
	/* Leaving is not given up, whatever was asked for. */
	options.stop = command == HANDOVER_ARM ? handshake->stop : NULL;
	while (inject_enter(handshake->target, &payload, &handover, sizeof handover, &options, &out->entry, &handshake->receipt, &failure) < 0) {
		if (failure.code != ERR_NO_THREAD || clock_monotonic_ns() > end_ns || !target_alive(handshake->target) || target_stopped(handshake)) {
			if (err)
				*err = failure;
			return -1;
		}
		pause_us(RETRY_US);
		now_ns = clock_monotonic_ns();
		options.total_timeout_ms = 1 + (int)(now_ns < end_ns ? (end_ns - now_ns) / 1000000 : 0);
	}
	return 0;
}

/* *AGAIN: nothing has begun, and it may be tried once more. */
static int arm_once(struct handshake *handshake, const struct page *settings, size_t lanes_bytes, uint32_t first, uint32_t gil_timeout_ms, struct pool *pool, bool *again,
                    struct error *err)
{
	struct visit visit;
	struct handover said = { 0 };
	struct pool lanes = { 0 };
	int result = -1;

	if (enter(handshake, HANDOVER_ARM, ARM_PATIENCE_MS, &visit, err) < 0)
		return -1;
	if (said_wait(handshake, &visit, SAID_HAVE_FD, LOAD_TIMEOUT_MS, NULL, &said, err) < 0) {
		answer_write(handshake, &visit, 0, ANSWER_GIVE_UP);
		if (err && err->code == ERR_TIMEOUT)
			err->code = ERR_COLLECTOR; /* nothing has begun */
		goto out;
	}
	if (lanes_open(handshake, said.lanes_fd, lanes_bytes, &lanes, err) < 0) {
		answer_write(handshake, &visit, 0, ANSWER_GIVE_UP);
		visit_wait(&visit, END_TIMEOUT_MS, NULL);
		goto out;
	}
	page_fill(&lanes, settings, first);
	if (answer_write(handshake, &visit, lanes_bytes, ANSWER_GO) < 0) {
		fail(err, ERR_COLLECTOR, "the collector cannot be answered: %s", strerror(errno));
		goto cancel;
	}
	if (said_wait(handshake, &visit, SAID_MAPPED, MAP_TIMEOUT_MS, lanes.page, &said, err) < 0) {
		*again = said.said == SAID_GAVE_UP;
		goto cancel;
	}
	handshake->page_addr = said.page_addr;
	if (arm_wait(handshake, &lanes, gil_timeout_ms, err) < 0) {
		visit_wait(&visit, 200, NULL);
		goto out;
	}
	if (armed_wait(handshake, &visit, lanes.page, err) < 0 && err && err->code != ERR_TIMEOUT)
		goto out;
	*pool = lanes;
	lanes.page = NULL;
	result = 0;
	goto out;
cancel:
	{
		uint32_t pending = ARM_PENDING;

		__atomic_compare_exchange_n(&lanes.page->arm, &pending, ARM_CANCELLED, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
	}
out:
	pool_close(&lanes);
	visit_close(&visit);
	return result;
}

/* What ends refuses everything, and an interpreter that shuts down has ended soon. */
static bool is_ending(const struct handshake *handshake)
{
	bool shuts_down = handshake->reason == REASON_FINALIZING || handshake->reason == REASON_NOT_INITIALIZED;
	uint64_t end_ns = deadline_after(shuts_down ? SHUTDOWN_MS : 0);

	while (target_alive(handshake->target)) {
		if (clock_monotonic_ns() >= end_ns)
			return false;
		pause_us(POLL_US);
	}
	return true;
}

int handshake_arm(struct handshake *handshake, const struct page *settings, size_t lanes_bytes, uint32_t first, uint32_t gil_timeout_ms, struct pool *pool, struct error *err)
{
	bool again = true;
	int result = -1;

	/* Stopped, or without a CPU, for seconds we find the thread gone that waited for our answer. */
	for (int i = 0; i < ARM_TRIES && result < 0 && again; i++) {
		again = false;
		result = arm_once(handshake, settings, lanes_bytes, first, gil_timeout_ms, pool, &again, err);
	}
	if (result < 0 && is_ending(handshake))
		return fail(err, ERR_EXITED, "process %d ended before measuring began", (int)target_facts(handshake->target)->pid);
	return result;
}

/* A command that needs no lanes. */
static int command_do(struct handshake *handshake, uint32_t command, uint32_t patience_ms, uint32_t timeout_ms, uint32_t end_ms, struct error *err)
{
	struct visit visit;
	struct handover said;
	int result;

	if (enter(handshake, command, patience_ms, &visit, err) < 0)
		return -1;
	result = said_wait(handshake, &visit, SAID_DONE, timeout_ms, NULL, &said, err);
	if (result == 0 || (err && err->code != ERR_TIMEOUT))
		visit_wait(&visit, (int)end_ms, NULL);
	visit_close(&visit);
	return result;
}

int handshake_disarm(struct handshake *handshake, enum library_choice library, uint32_t timeout_ms, struct error *err)
{
	const struct inject_options *usual = handshake->inject;
	struct inject_options chosen = *usual;
	int result;

	chosen.library = library;
	handshake->inject = &chosen;
	result = command_do(handshake, HANDOVER_DISARM, LEAVE_PATIENCE_MS, timeout_ms, END_TIMEOUT_MS, err);
	handshake->inject = usual;
	if (result < 0)
		return -1;
	handshake->page_addr = 0;
	return 0;
}

const char *handshake_stay(const struct page *page)
{
	if (__atomic_load_n(&page->arm, __ATOMIC_ACQUIRE) == ARM_DISARMED)
		return NULL;
	if (__atomic_load_n(&page->reason, __ATOMIC_ACQUIRE) == REASON_MEMORY)
		return "it had no memory left for taking our hooks out of it";
	return "its interpreter is shutting down, with our hooks in it";
}

int handshake_try(struct handshake *handshake, enum handover_command command, uint32_t timeout_ms, struct error *err)
{
	const struct inject_options *usual = handshake->inject;
	struct inject_options brief = *usual;
	int result;

	/* The drain stands still meanwhile, so that this must not take long; it is only worth a try. */
	brief.total_timeout_ms = (int)timeout_ms;
	handshake->inject = &brief;
	result = command_do(handshake, command, 0, timeout_ms, timeout_ms, err);
	handshake->inject = usual;
	return result;
}
