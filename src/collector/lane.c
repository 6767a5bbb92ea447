/* Lanes and sub-buffers: taking, filling, handing over. What an event means is not its business. */
#include "collector/collector.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collector/libc.h"
#include "collector/mapping.h"

enum { DRY_MS = 5, FULL_MS = 100 };

__thread struct lane *lane_mine;

static struct subbuf *subbuf_at(uint32_t index)
{
	return (struct subbuf *)((char *)the.page + PAGE_BYTES + (size_t)index * SUBBUF_BYTES);
}

static uint32_t pool_count(void)
{
	uint32_t count = __atomic_load_n(&the.page->pool_count, __ATOMIC_ACQUIRE);

	return count < the.settings.subbuf_count ? count : the.settings.subbuf_count;
}

static bool state_change(struct subbuf *subbuf, uint32_t from, uint32_t to)
{
	return __atomic_compare_exchange_n(&subbuf->state, &from, to, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* The drain pushes, we pop; the tag in the high half keeps a pop from succeeding on a list that changed and changed back. */
static struct subbuf *pool_pop(uint32_t *index)
{
	uint64_t head = __atomic_load_n(&the.page->free_head, __ATOMIC_ACQUIRE);

	while ((uint32_t)head) {
		uint32_t first = (uint32_t)head - 1;
		struct subbuf *subbuf;
		uint64_t next;

		if (first >= the.settings.subbuf_count)
			return NULL;
		subbuf = subbuf_at(first);
		next = __atomic_load_n(&subbuf->next_free, __ATOMIC_ACQUIRE) | ((head >> 32) + 1) << 32;
		if (__atomic_compare_exchange_n(&the.page->free_head, &head, next, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
			*index = first;
			return state_change(subbuf, SUBBUF_FREE, SUBBUF_FILLING) ? subbuf : NULL;
		}
	}
	return NULL;
}

/* Nothing is free: the oldest full one goes, and what was in it is counted. Names (META) are never given up. */
static struct subbuf *pool_steal(uint32_t *index)
{
	for (int tries = 0; tries < 4; tries++) {
		uint32_t count = pool_count(), oldest = 0;
		uint64_t order = UINT64_MAX;

		for (uint32_t i = 0; i < count; i++) {
			struct subbuf *subbuf = subbuf_at(i);

			uint64_t age;

			if (__atomic_load_n(&subbuf->state, __ATOMIC_ACQUIRE) != SUBBUF_FULL || __atomic_load_n(&subbuf->kind, __ATOMIC_RELAXED) == LANE_META)
				continue;
			age = __atomic_load_n(&subbuf->order, __ATOMIC_RELAXED);
			if (age < order) {
				order = age;
				oldest = i;
			}
		}
		if (order == UINT64_MAX)
			return NULL;
		*index = oldest;
		if (state_change(subbuf_at(oldest), SUBBUF_FULL, SUBBUF_FILLING)) {
			struct subbuf *subbuf = subbuf_at(oldest);
			uint32_t slot = __atomic_load_n(&subbuf->lane, __ATOMIC_RELAXED);

			if (slot < LANES_MAX)
				__atomic_fetch_add(&the.page->lanes[slot].lost, __atomic_load_n(&subbuf->event_count, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
			return subbuf;
		}
	}
	return NULL;
}

static void lane_empty(struct lane *lane)
{
	lane->cursor = (struct event *)16;
	lane->last = NULL;
}

static void charge(struct lane *lane)
{
	struct lane_slot *slot = &the.page->lanes[lane->slot];
	uint64_t cost = slot->kind != LANE_THREAD ? 0 : (uint64_t)((__uint128_t)lane->written * the.cost_ps * the.settings.ticks_per_second / 1000000000000ull);

	__atomic_fetch_add(&slot->events, lane->written, __ATOMIC_RELAXED);
	__atomic_fetch_add(&slot->cost_ticks, cost, __ATOMIC_RELAXED);
	__atomic_fetch_add(&the.page->events, lane->written, __ATOMIC_RELAXED);
	__atomic_fetch_add(&the.page->cost_ticks, cost, __ATOMIC_RELAXED);
}

void lane_charge(struct lane *lane, uint64_t ns)
{
	uint64_t ticks = (uint64_t)((__uint128_t)ns * the.settings.ticks_per_second / 1000000000u);

	__atomic_fetch_add(&the.page->lanes[lane->slot].cost_ticks, ticks, __ATOMIC_RELAXED);
	__atomic_fetch_add(&the.page->cost_ticks, ticks, __ATOMIC_RELAXED);
}

/* Also called without the GIL, by a thread that ends: only atomics beyond this lane. */
static void hand_over(struct lane *lane)
{
	struct subbuf *subbuf = lane->subbuf;

	if (!subbuf)
		return;
	charge(lane);
	__atomic_store_n(&subbuf->event_count, lane->written, __ATOMIC_RELAXED);
	lane->written = 0;
	lane->subbuf = NULL;
	lane_empty(lane);
	__atomic_store_n(&the.page->lanes[lane->slot].current, LANE_NONE, __ATOMIC_RELEASE);
	__atomic_store_n(&subbuf->state, SUBBUF_FULL, __ATOMIC_RELEASE);
	__atomic_fetch_sub(&the.lanes.busy, 1, __ATOMIC_RELAXED);
}

/* Of a head every field is written so: the drain may read the sub-buffer at this moment, and others look whether they can steal it. */
static void set32(uint32_t *field, uint32_t value)
{
	__atomic_store_n(field, value, __ATOMIC_RELAXED);
}

static void set64(uint64_t *field, uint64_t value)
{
	__atomic_store_n(field, value, __ATOMIC_RELAXED);
}

static void begin(struct lane *lane, struct subbuf *subbuf, uint32_t index)
{
	struct lane_slot *slot = &the.page->lanes[lane->slot];
	uint32_t known = lane->depth > DEPTH_KNOWN ? 0 : lane->depth > LANE_DEPTH_REFS ? LANE_DEPTH_REFS : lane->depth;

	__atomic_store_n(&subbuf->used, SUBBUF_HEAD, __ATOMIC_RELEASE);
	set64(&subbuf->generation, subbuf->generation + 1);
	set32(&subbuf->lane, lane->slot);
	set32(&subbuf->tid, lane->tid);
	set32(&subbuf->kind, slot->kind);
	set64(&subbuf->order, __atomic_add_fetch(&the.page->order, 1, __ATOMIC_RELAXED));
	set64(&subbuf->lost_before, __atomic_load_n(&slot->lost, __ATOMIC_RELAXED));
	set64(&subbuf->event_count, 0);
	set32(&subbuf->depth, lane->depth);
	set32(&subbuf->ref_count, known);
	for (uint32_t i = 0; i < known; i++)
		set32(&subbuf->refs[i], lane->refs[lane->depth - known + i]);
	__atomic_store_n(&subbuf->sequence, ++slot->sequence, __ATOMIC_RELEASE);
	__atomic_store_n(&slot->current, index, __ATOMIC_RELEASE);
	lane->subbuf = subbuf;
	lane->cursor = (struct event *)((char *)subbuf + SUBBUF_HEAD);
	lane->last = (struct event *)((char *)subbuf + SUBBUF_BYTES) - 1;
	lane->written = 0;
	__atomic_fetch_add(&the.lanes.busy, 1, __ATOMIC_RELAXED);
}

bool lane_rotate(struct lane *lane, uint64_t now)
{
	struct subbuf *subbuf;
	uint32_t index;

	hand_over(lane);
	subbuf = pool_pop(&index);
	/* For all threads together: each look goes through the whole pool, which takes some 200 us, with the GIL. */
	if (!subbuf && now >= __atomic_load_n(&the.lanes.dry_until, __ATOMIC_RELAXED)) {
		subbuf = pool_steal(&index);
		if (!subbuf)
			__atomic_store_n(&the.lanes.dry_until, now + the.settings.ticks_per_second * DRY_MS / 1000, __ATOMIC_RELAXED);
	}
	if (!subbuf) {
		__atomic_fetch_add(&the.page->lanes[lane->slot].lost, 1, __ATOMIC_RELAXED);
		return false;
	}
	begin(lane, subbuf, index);
	return true;
}

struct event *lane_reserve(struct lane *lane, size_t size, uint64_t now)
{
	if ((char *)(lane->last + 1) - (char *)lane->cursor < (ptrdiff_t)size && !lane_rotate(lane, now))
		return NULL;
	return lane->cursor;
}

void lane_commit(struct lane *lane, size_t size)
{
	lane->cursor = (struct event *)((char *)lane->cursor + size);
	lane->written++;
	__atomic_store_n(&lane->subbuf->used, (uint32_t)((char *)lane->cursor - (char *)lane->subbuf), __ATOMIC_RELEASE);
}

bool lane_put_with(struct lane *lane, uint64_t now, uint32_t ref, uint8_t kind, const void *payload, size_t size)
{
	const size_t whole = sizeof(struct event) + size;
	struct event *event = lane_reserve(lane, whole, now);

	if (!event)
		return false;
	*event = (struct event){now, ref, (uint16_t)whole, kind, 0};
	memcpy(event + 1, payload, size);
	lane_commit(lane, whole);
	return true;
}

void lane_put_u32(struct lane *lane, uint64_t now, uint32_t ref, uint8_t kind, uint32_t value)
{
	const uint32_t payload[2] = {value, 0};

	lane_put_with(lane, now, ref, kind, payload, sizeof payload);
}

struct lane *lane_meta(void)
{
	return &the.lanes.table[LANE_META_SLOT];
}

void lane_unmatched(void)
{
	the.page->unmatched++;
}

static bool lanes_full(void)
{
	return ticks_now() < __atomic_load_n(&the.lanes.full_until, __ATOMIC_RELAXED);
}

static struct lane *take_slot(uint32_t first, enum lane_kind kind, uint64_t pthread, uint32_t tid)
{
	if (kind == LANE_THREAD && lanes_full())
		return NULL;
	for (uint32_t i = first; i < LANES_MAX; i++) {
		struct lane_slot *slot = &the.page->lanes[i];
		struct lane *lane = &the.lanes.table[i];
		uint32_t nobody = LANE_FREE;

		if (__atomic_load_n(&the.lanes.threads[i], __ATOMIC_RELAXED) || __atomic_load_n(&lane->in_use, __ATOMIC_ACQUIRE) ||
		    !__atomic_compare_exchange_n(&slot->kind, &nobody, kind, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			continue;
		/* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): the table is there before the first lane */
		memset(lane, 0, offsetof(struct lane, seeds));
		__atomic_store_n(&slot->current, LANE_NONE, __ATOMIC_RELAXED);
		__atomic_store_n(&slot->tid, tid, __ATOMIC_RELAXED);
		slot->sequence = 0; /* the rest is zero: the drain left it so */
		lane_empty(lane);
		lane->slot = i;
		lane->tid = tid;
		__atomic_store_n(&lane->in_use, true, __ATOMIC_RELAXED);
		__atomic_store_n(&the.lanes.threads[i], pthread, __ATOMIC_RELAXED);
		if (i >= the.lanes.count)
			the.lanes.count = i + 1;
		if (i >= the.lanes.touched)
			the.lanes.touched = i + 1;
		return lane;
	}
	the.page->lane_overflow++;
	__atomic_store_n(&the.lanes.full_until, ticks_now() + the.settings.ticks_per_second * FULL_MS / 1000, __ATOMIC_RELAXED);
	return NULL;
}

static void retire(struct lane *lane)
{
	hand_over(lane);
	__atomic_store_n(&the.lanes.threads[lane->slot], 0, __ATOMIC_RELAXED);
	__atomic_store_n(&the.page->lanes[lane->slot].gone, 1, __ATOMIC_RELEASE);
	__atomic_store_n(&lane->in_use, false, __ATOMIC_RELEASE);
}

/* A thread ends, without the GIL. lanes_end() waits until nobody is in here before the mapping goes. */
static void lane_leave(void *argument)
{
	struct lane *lane = argument;

	__atomic_fetch_add(&the.lanes.leaving, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&the.armed, __ATOMIC_SEQ_CST) && !the.child && lane->in_use && lane_is_mine(lane))
		retire(lane);
	lane_mine = NULL;
	__atomic_fetch_sub(&the.lanes.leaving, 1, __ATOMIC_SEQ_CST);
}

int lanes_open(void)
{
	if (!the.lanes.table) {
		struct lane *table = mapping_make((LANES_MAX + 1) * sizeof *table, -1);

		if (!table)
			return errno;
		the.lanes.table = table;
	}
	if (!the.lanes.key_made) {
		int error = pthread_key_create(&the.lanes.key, lane_leave);

		if (error)
			return error;
		the.lanes.key_made = true;
	}
	return 0;
}

/* All zero, and no memory held: pointers that threads keep into the table find window 0, which no window is. */
static void table_clear(void)
{
	if (!mapping_empty(the.lanes.table, LANES_MAX * sizeof(struct lane)))
		for (uint32_t i = 0; i < the.lanes.touched; i++)
			memset(&the.lanes.table[i], 0, offsetof(struct lane, seeds)); /* NOLINT(clang-analyzer-core.NonNullParamChecker): as above */
	the.lanes.touched = 0;
}

void lanes_begin(void)
{
	table_clear(); /* a forked child has its parent's */
	the.lanes.count = 0;
	the.lanes.busy = 0;
	the.lanes.dry_until = the.lanes.full_until = 0;
	memset(the.lanes.threads, 0, sizeof the.lanes.threads);
	take_slot(LANE_META_SLOT, LANE_META, 0, 0);
}

bool lanes_take_gpu(struct lane **names, struct lane **work)
{
	*names = take_slot(LANE_META_SLOT + 1, LANE_META, 0, 0);
	*work = take_slot(LANE_META_SLOT + 1, LANE_GPU, 0, 0);
	return *names && *work;
}

struct lane *lanes_take_memory(void)
{
	return take_slot(LANE_META_SLOT + 1, LANE_MEMORY, 0, 0);
}

/* The caller holds the GIL and has cleared the.armed. */
void lanes_end(void)
{
	struct timespec pause = {0, 50000};

	while (__atomic_load_n(&the.lanes.leaving, __ATOMIC_SEQ_CST))
		nanosleep(&pause, NULL);
	for (uint32_t i = 0; i < the.lanes.count; i++)
		if (the.lanes.table[i].in_use)
			hand_over(&the.lanes.table[i]);
	table_clear();
}

static struct lane *find_thread(uint64_t pthread)
{
	for (uint32_t i = 1; i < the.lanes.count; i++)
		if (__atomic_load_n(&the.lanes.threads[i], __ATOMIC_RELAXED) == pthread)
			return &the.lanes.table[i];
	return NULL;
}

uint32_t thread_tid_own(void)
{
	uint32_t offset = the.settings.thread_tid_offset;

	if (offset && offset < 4096)
		return *(const uint32_t *)((const char *)pthread_self() + offset);
	return (uint32_t)syscall(SYS_gettid);
}

/* pthread_t is reused as soon as its thread has ended: the tid tells whether this is still the same one. */
struct lane *lane_of_thread(uint64_t pthread, uint32_t tid, bool make)
{
	struct lane *lane = find_thread(pthread);

	if (lane && tid && lane->tid != tid) {
		retire(lane);
		lane = NULL;
	}
	if (!lane && make && tid)
		lane = take_slot(LANE_META_SLOT + 1, LANE_THREAD, pthread, tid);
	return lane;
}

struct lane *lane_attach(void)
{
	struct lane *lane = lane_mine, *nobody = &the.lanes.table[LANES_MAX];

	if (lane_is_mine(lane))
		return lane;
	if (lane == nobody && lanes_full())
		return NULL;
	lane = lane_of_thread((uint64_t)pthread_self(), thread_tid_own(), true);
	if (!lane) {
		lane_mine = nobody; /* so that its next events need not look for a lane of its own */
		return NULL;
	}
	lane->owner = &lane_mine;
	lane_mine = lane;
	pthread_setspecific(the.lanes.key, lane);
	return lane;
}
