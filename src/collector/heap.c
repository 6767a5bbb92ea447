/*
 * Samples of what native libraries allocate: functions that stand in for malloc and its kin in slots of the libraries (slots.c). They pass on at once,
 * count bytes down in one of many counters chosen by the thread's address, and tell of an allocation that a point falls into: thread,
 * moment, size, address. No stack is walked: it is joined outside, by thread and moment. Nothing on this way allocates, so none of them is ever
 * called by another; a lock that is taken is not waited for, so that neither a signal handler nor a thread that stands still can hold anybody up.
 *
 * The functions are called by threads without the GIL, also when we have left: what they need is never taken away.
 */
#include "collector/heap.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "collector/libc.h"

enum { TRIES_TO_TELL = 20, TRIES_TO_END = 2000, CALIBRATION_CALLS = 4000, TELLING_NS_MAX = 20000 /* of one sample; what took longer was a thread that had no CPU */ };

/* ---- the lock ---- */

static bool lock_try(int tries)
{
	while (__atomic_load_n(&the.heap.busy, __ATOMIC_RELAXED) || __atomic_exchange_n(&the.heap.busy, true, __ATOMIC_ACQUIRE)) {
		if (tries-- <= 0)
			return false;
		machine_pause();
	}
	return true;
}

static void unlock(void)
{
	__atomic_store_n(&the.heap.busy, false, __ATOMIC_RELEASE);
}

/* ---- telling, all under the lock ---- */

static void tell(uint8_t kind, const void *payload, size_t bytes, uint64_t now)
{
	lane_put_with(the.heap.lane, now, thread_tid_own(), kind, payload, bytes);
}

static void tell_end(uint64_t address, uint64_t now)
{
	if (sampled_remove(&the.heap.blocks, address))
		tell(EVENT_MEMORY_FREE, &address, sizeof address, now);
}

/* Ends of threads that did not get the lock: before anything else, as their addresses may be given again. */
static void tell_pending(uint64_t now)
{
	if (!__atomic_load_n(&the.heap.any_pending, __ATOMIC_RELAXED) || !__atomic_exchange_n(&the.heap.any_pending, false, __ATOMIC_ACQUIRE))
		return;
	for (int i = 0; i < HEAP_PENDING; i++) {
		uint64_t address = __atomic_load_n(&the.heap.pending[i], __ATOMIC_RELAXED) ? __atomic_exchange_n(&the.heap.pending[i], 0, __ATOMIC_ACQ_REL) : 0;

		if (address)
			tell_end(address, now);
	}
}

static bool is_on(uint64_t now)
{
	return the.heap.on && may_tell(now);
}

static void stop(void)
{
	the.heap.on = false;
	for (int i = 0; i < HEAP_COUNTERS; i++)
		__atomic_store_n(&the.heap.counters[i].left, SAMPLED_NEVER, __ATOMIC_RELAXED);
}

static void charge(uint64_t calls, uint64_t began)
{
	uint64_t passing_ns = calls * the.heap.call_ps / 1000, telling_ns = ticks_to_ns(ticks_now() - began);

	if (telling_ns > TELLING_NS_MAX)
		telling_ns = TELLING_NS_MAX;
	the.heap.spending.passing_ns += passing_ns;
	the.heap.spending.telling_ns += telling_ns;
	the.page->heap_calls += calls;
	the.page->heap_cost_ns += passing_ns + telling_ns;
	__atomic_fetch_add(&the.heap.unpaid_ns, passing_ns + telling_ns, __ATOMIC_RELAXED);
	lane_charge(the.heap.lane, passing_ns + telling_ns);
}

static void tell_sample(const void *block, size_t size, uint64_t late_bytes, struct heap_counter *counter, uint64_t now)
{
	struct { uint64_t address, bytes, weight; uint32_t domain, padding; } payload = {(uint64_t)(uintptr_t)block, size, sampled_weight(size, the.heap.spending.interval) + late_bytes, MEMORY_NATIVE, 0};

	tell_pending(now);
	if (!sampled_add(&the.heap.blocks, payload.address)) {
		payload.address = 0;
		the.page->heap_full++;
	}
	the.page->heap_samples++;
	tell(EVENT_MEMORY_ALLOC, &payload, sizeof payload, now);
	charge(__atomic_exchange_n(&counter->calls, 0, __ATOMIC_RELAXED), now);
	if (spending_judge(&the.heap.spending, &the.memory.spending, NULL) != SPENT_TOO_MUCH) {
		the.page->heap_interval_now = the.heap.spending.interval;
		return;
	}
	the.page->heap_state = HEAP_TOO_DEAR;
	the.page->heap_ended_ticks = now;
	the.heap.dear = true;
	memory_tell_sampling(the.heap.lane, ticks_now(), false, true, 0);
	spending_ends(&the.heap.spending);
	stop();
}

/* A point fell into this allocation; or into one before it, when the lock was not to be had: then what was allocated since counts as this one. */
static __attribute__((noinline)) void sampled(const void *block, size_t size, struct heap_counter *counter)
{
	int saved = errno;
	int64_t before = __atomic_load_n(&counter->left, __ATOMIC_RELAXED) + (int64_t)size;
	uint64_t now;

	if (!lock_try(TRIES_TO_TELL)) {
		__atomic_fetch_add(&the.heap.late, 1, __ATOMIC_RELAXED);
		errno = saved;
		return;
	}
	now = ticks_now();
	if (!is_on(now)) {
		__atomic_store_n(&counter->left, SAMPLED_NEVER, __ATOMIC_RELAXED);
	} else {
		__atomic_store_n(&counter->left, sampled_gap(&the.heap.blocks, the.heap.spending.interval), __ATOMIC_RELAXED);
		tell_sample(block, size, before < 0 ? (uint64_t)-before : 0, counter, now);
	}
	unlock();
	errno = saved;
}

static void end_later(uint64_t address)
{
	for (uint32_t i = 0, first = sampled_slot(address); i < HEAP_PENDING; i++) {
		uint64_t empty = 0;

		if (!__atomic_compare_exchange_n(&the.heap.pending[(first + i) % HEAP_PENDING], &empty, address, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			continue;
		__atomic_store_n(&the.heap.any_pending, true, __ATOMIC_RELEASE);
		return;
	}
	__atomic_fetch_add(&the.heap.ends_missed, 1, __ATOMIC_RELAXED);
}

/* What may have been sampled is about to be given back. */
static __attribute__((noinline)) void ended(const void *block)
{
	uint64_t address = (uint64_t)(uintptr_t)block, began = ticks_now(), now;
	int saved = errno;

	if (lock_try(TRIES_TO_END)) {
		now = ticks_now();
		if (is_on(now)) {
			tell_pending(now);
			tell_end(address, now);
			charge(0, began);
		}
		unlock();
	} else {
		end_later(address);
	}
	errno = saved;
}

/* ---- the way of every call ---- */

static inline __attribute__((always_inline)) struct heap_counter *counter_of_thread(void)
{
	return &the.heap.counters[machine_thread() * 0x9e3779b97f4a7c15ull >> (64 - HEAP_COUNTERS_LOG2)];
}

static inline __attribute__((always_inline)) void count_down(struct heap_counter *counter, int64_t left)
{
	__atomic_store_n(&counter->left, left, __ATOMIC_RELAXED);
	__atomic_store_n(&counter->calls, __atomic_load_n(&counter->calls, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
}

/* Does a point fall into SIZE bytes? Else they are counted down. Two threads may share a counter: what they take from it at the very same time is counted once. */
static inline __attribute__((always_inline)) bool is_due(struct heap_counter *counter, size_t size)
{
	int64_t left = (int64_t)((uint64_t)__atomic_load_n(&counter->left, __ATOMIC_RELAXED) - size);

	if (__builtin_expect(left < 0, 0))
		return true;
	count_down(counter, left);
	return false;
}

/* What could not be had was not allocated. */
static __attribute__((noinline)) void *note_due(void *block, size_t size)
{
	struct heap_counter *counter = counter_of_thread();

	if (!block)
		return NULL;
	count_down(counter, (int64_t)((uint64_t)__atomic_load_n(&counter->left, __ATOMIC_RELAXED) - size));
	sampled(block, size, counter);
	return block;
}

static __attribute__((noinline)) void note_end(void *block)
{
	if (block)
		ended(block);
}

static void *pass_malloc(size_t size)
{
	return is_due(counter_of_thread(), size) ? note_due(the.heap.real.malloc(size), size) : the.heap.real.malloc(size);
}

static void *pass_calloc(size_t count, size_t size)
{
	return is_due(counter_of_thread(), count * size) ? note_due(the.heap.real.calloc(count, size), count * size) : the.heap.real.calloc(count, size);
}

/* The end is told first: afterwards another thread may have the address already. Where realloc fails for want of memory, the block is not told any more. */
static void *pass_realloc(void *block, size_t size)
{
	if (sampled_may_hold(&the.heap.blocks, block))
		note_end(block);
	return is_due(counter_of_thread(), size) ? note_due(the.heap.real.realloc(block, size), size) : the.heap.real.realloc(block, size);
}

static __attribute__((noinline)) void free_known(void *block)
{
	note_end(block);
	the.heap.real.free(block);
}

static void pass_free(void *block)
{
	if (sampled_may_hold(&the.heap.blocks, block))
		free_known(block);
	else
		the.heap.real.free(block);
}

static int pass_posix_memalign(void **out, size_t alignment, size_t size)
{
	int error = the.heap.real.posix_memalign(out, alignment, size);

	if (!error && is_due(counter_of_thread(), size))
		note_due(*out, size);
	return error;
}

static void *pass_aligned_alloc(size_t alignment, size_t size)
{
	return is_due(counter_of_thread(), size) ? note_due(the.heap.real.aligned_alloc(alignment, size), size) : the.heap.real.aligned_alloc(alignment, size);
}

uint64_t heap_function(enum heap_function which)
{
	static const void *const functions[HEAP_FUNCTIONS] = {
		[HEAP_MALLOC] = pass_malloc, [HEAP_CALLOC] = pass_calloc, [HEAP_REALLOC] = pass_realloc, [HEAP_FREE] = pass_free,
		[HEAP_POSIX_MEMALIGN] = pass_posix_memalign, [HEAP_ALIGNED_ALLOC] = pass_aligned_alloc,
	};

	return (uint64_t)(uintptr_t)functions[which];
}

/* ---- beginning and ending ---- */

static __attribute__((noinline)) void *pass_allocation(void *block)
{
	return is_due(counter_of_thread(), 0) ? note_due(block, 0) : block;
}

static __attribute__((noinline)) void pass_release(void *block)
{
	if (sampled_may_hold(&the.heap.blocks, block))
		note_end(block);
}

/* What passing on a pair of calls costs here, in picoseconds: the best of a few rounds. */
static uint64_t calibrate(void)
{
	uint64_t best = UINT64_MAX;

	for (int round = 0; round < 5; round++) {
		uint64_t begin = ticks_now(), passed;

		for (uintptr_t i = 1; i <= CALIBRATION_CALLS; i++)
			pass_release(pass_allocation((void *)(i << 4)));
		passed = ticks_now() - begin;
		best = passed < best ? passed : best;
	}
	return ticks_to_ns(best) * 1000 / CALIBRATION_CALLS;
}

/* Real functions, once and for ever: who holds one of ours may call it at any time. */
static bool know_functions(void)
{
	uint64_t *real = (uint64_t *)&the.heap.real;

	_Static_assert(sizeof the.heap.real == HEAP_FUNCTIONS * sizeof(uint64_t), "in the order of enum heap_function");
	for (int i = 0; i < HEAP_FUNCTIONS; i++)
		if (real[i] && real[i] != the.settings.heap_functions[i])
			return false;
	for (int i = 0; i < HEAP_FUNCTIONS; i++)
		real[i] = the.settings.heap_functions[i];
	return true;
}

static void sample(uint64_t off)
{
	spending_begin(&the.heap.spending);
	for (int i = 0; i < HEAP_COUNTERS; i++) {
		the.heap.counters[i].calls = 0;
		__atomic_store_n(&the.heap.counters[i].left, sampled_gap(&the.heap.blocks, the.heap.spending.interval), __ATOMIC_RELAXED);
	}
	the.heap.on = true;
	memory_tell_sampling(the.heap.lane, ticks_now(), true, true, off);
}

void heap_begin(void)
{
	bool room;

	if (!the.settings.heap_slot_count || !the.settings.memory_interval || !the.heap.lane)
		return;
	if (!know_functions() || !lock_try(TRIES_TO_END)) {
		the.page->heap_state = HEAP_OTHER;
		return;
	}
	the.heap.late = the.heap.ends_missed = the.heap.unpaid_ns = 0;
	the.heap.dear = the.heap.paused = the.heap.any_pending = false;
	memset(the.heap.pending, 0, sizeof the.heap.pending);
	the.heap.spending = (struct spending){.interval = the.settings.memory_interval};
	the.page->heap_interval_now = the.settings.memory_interval;
	room = sampled_begin(&the.heap.blocks, ticks_now());
	if (room) {
		stop();
		the.heap.call_ps = calibrate();
		sample(0);
	}
	unlock();
	the.page->heap_state = room ? HEAP_SAMPLED : HEAP_NO_ROOM;
	if (!room)
		return;
	slots_put_in();
	the.page->heap_slots_used = the.heap.slot_count;
	__atomic_store_n(&the.heap.ready, true, __ATOMIC_RELEASE);
}

/* Of threads that ended, or allocated nothing more, since the lock was not to be had: by nobody, as all that is known is how many bytes. */
static void tell_late(uint64_t now)
{
	for (int i = 0; i < HEAP_COUNTERS; i++) {
		int64_t left = __atomic_load_n(&the.heap.counters[i].left, __ATOMIC_RELAXED);
		uint64_t bytes = left < 0 ? (uint64_t)-left + the.heap.spending.interval : 0;
		struct { uint64_t address, bytes, weight; uint32_t domain, padding; } payload = {0, bytes, bytes, MEMORY_NATIVE, 0};

		if (bytes)
			tell(EVENT_MEMORY_ALLOC, &payload, sizeof payload, now);
	}
}

/* Nobody is inside afterwards, and nobody writes to the page. A thread that a debugger has stopped in there is waited for, as one that holds the GIL is. */
static void leave(bool for_a_while)
{
	const struct timespec pause = {0, 50000};

	while (!lock_try(0))
		nanosleep(&pause, NULL);
	if (is_on(ticks_now())) {
		tell_pending(ticks_now());
		tell_late(ticks_now());
		if (for_a_while)
			memory_tell_sampling(the.heap.lane, ticks_now(), false, true, 0);
	}
	stop();
	unlock();
	sampled_end(&the.heap.blocks);
}

void heap_pause(void)
{
	if (!the.heap.ready || !the.heap.on)
		return;
	slots_take_out();
	leave(true);
	the.heap.off_since = ticks_now();
	the.heap.paused = true;
}

void heap_resume(void)
{
	if (!the.heap.ready || !the.heap.paused || !lock_try(TRIES_TO_END))
		return;
	the.heap.paused = false;
	sample(ticks_now() - the.heap.off_since);
	unlock();
	slots_put_in();
}

void heap_tend(void)
{
	bool over = ticks_now() > __atomic_load_n(&the.page->deadline_ticks, __ATOMIC_ACQUIRE) || __atomic_load_n(&the.heap.dear, __ATOMIC_RELAXED);

	if (!the.heap.ready || !over || !the.heap.slot_count)
		return;
	slots_take_out();
	leave(false);
}

void heap_end(void)
{
	if (!the.heap.ready)
		return;
	the.heap.ready = the.heap.paused = false;
	slots_take_out();
	leave(false);
	for (int i = 0; i < HEAP_COUNTERS; i++)
		the.page->heap_calls += __atomic_exchange_n(&the.heap.counters[i].calls, 0, __ATOMIC_RELAXED);
	the.page->heap_late = the.heap.late;
	the.page->heap_ends_missed = the.heap.ends_missed;
	the.page->heap_left = the.heap.left;
	if (!the.heap.dear)
		the.page->heap_state = HEAP_TAKEN_OUT;
}

void heap_forked(void)
{
	the.heap.busy = the.heap.ready = the.heap.paused = false;
	if (!the.heap.on && !the.heap.slot_count)
		return;
	slots_forked();
	stop();
	sampled_forget(&the.heap.blocks);
	memset(the.heap.pending, 0, sizeof the.heap.pending);
	the.heap.any_pending = false;
	the.heap.lane = NULL;
}
