/* Lanes and sub-buffers, with and without somebody who drains them: nothing is lost without being counted. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "collector/collector.h"
#include "collector/stack.h"

enum { POOL_MAX = 64 };

static struct subbuf *subbuf_of(uint32_t index)
{
	return (struct subbuf *)((char *)the.page + PAGE_BYTES + (size_t)index * SUBBUF_BYTES);
}

static void give_back(uint32_t index)
{
	uint64_t head = __atomic_load_n(&the.page->free_head, __ATOMIC_ACQUIRE), next;

	__atomic_store_n(&subbuf_of(index)->state, SUBBUF_FREE, __ATOMIC_RELEASE);
	do {
		__atomic_store_n(&subbuf_of(index)->next_free, (uint32_t)head, __ATOMIC_RELEASE);
		next = (index + 1) | ((head >> 32) + 1) << 32;
	} while (!__atomic_compare_exchange_n(&the.page->free_head, &head, next, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
}

/* A page with COUNT free sub-buffers, armed as entry.c does it. */
static void begin(uint32_t count)
{
	size_t bytes = PAGE_BYTES + (size_t)count * SUBBUF_BYTES;

	the.page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq((void *)the.page, MAP_FAILED);
	the.mapping_bytes = bytes;
	the.page->subbuf_count = the.page->pool_count = count;
	the.page->ticks_per_second = 1000000000;
	the.settings.subbuf_count = count;
	the.settings.ticks_per_second = 1000000000;
	the.tsc = false;
	the.window = 1;
	for (uint32_t i = count; i-- > 0;)
		give_back(i);
	cr_assert_eq(lanes_open(), 0);
	lanes_begin();
	the.armed = true;
}

static void finish(void)
{
	the.armed = false;
	lanes_end();
}

Test(collector_lane, writes_what_it_was_told_in_order)
{
	struct lane *lane;
	const struct event *event;

	begin(8);
	lane = lane_attach();
	cr_assert(lane_is_mine(lane));
	cr_assert_eq(lane_attach(), lane);
	for (uint32_t i = 0; i < 100; i++)
		lane_push(lane, 1000 + i, 10 + i, EVENT_PY_ENTER);
	for (uint32_t i = 100; i-- > 0;)
		lane_pop(lane, 2000 - i, 10 + i, EVENT_PY_LEAVE, 0);
	cr_assert_eq(lane->depth, 0);
	cr_assert_eq(the.page->unmatched, 0);
	event = (const struct event *)((char *)lane->subbuf + SUBBUF_HEAD);
	cr_assert_eq(lane->subbuf->used, SUBBUF_HEAD + 200 * sizeof *event);
	for (uint32_t i = 0; i < 200; i++) {
		cr_assert_eq(event[i].kind, i < 100 ? EVENT_PY_ENTER : EVENT_PY_LEAVE);
		cr_assert_eq(event[i].ref, i < 100 ? 10 + i : 209 - i);
		cr_assert_eq(event[i].size, 16);
	}
	finish();
	cr_assert_eq(the.page->lanes[1].events, 200);
}

Test(collector_lane, is_not_searched_for_at_each_event_where_threads_are_more_than_lanes)
{
	uint64_t searched;

	begin(8);
	for (uint32_t thread = 1; lane_of_thread(thread, thread, true); thread++)
		;
	cr_assert_null(lane_attach());
	searched = the.page->lane_overflow;
	for (int event = 0; event < 1000; event++)
		cr_assert_null(lane_attach());
	cr_assert_eq(the.page->lane_overflow, searched);
	the.lanes.full_until = 0;
	cr_assert_null(lane_attach());
	cr_assert_eq(the.page->lane_overflow, searched + 1, "after a while it is tried again");
	the.lanes.full_until = 0;
	the.lanes.table[7].in_use = false; /* its thread has ended, and the drain is through with it */
	the.lanes.threads[7] = 0;
	the.page->lanes[7].kind = LANE_FREE;
	cr_assert_eq(lane_attach(), &the.lanes.table[7]);
	finish();
}

Test(collector_lane, begins_a_sub_buffer_with_the_stack)
{
	struct lane *lane;

	begin(8);
	lane = lane_attach();
	for (uint32_t i = 0; i < 50; i++)
		lane_push(lane, i, 100 + i, EVENT_PY_ENTER);
	cr_assert(lane_rotate(lane, 50));
	cr_assert_eq(lane->subbuf->depth, 50);
	cr_assert_eq(lane->subbuf->ref_count, LANE_DEPTH_REFS);
	for (uint32_t i = 0; i < LANE_DEPTH_REFS; i++)
		cr_assert_eq(lane->subbuf->refs[i], 100 + 50 - LANE_DEPTH_REFS + i);
	for (uint32_t i = 50; i < DEPTH_KNOWN + 10; i++)
		lane_push(lane, i, 100 + i, EVENT_PY_ENTER);
	cr_assert(lane_rotate(lane, 60));
	cr_assert_eq(lane->subbuf->depth, DEPTH_KNOWN + 10);
	cr_assert_eq(lane->subbuf->ref_count, 0);
	finish();
}

Test(collector_lane, counts_leaves_that_match_nothing)
{
	struct lane *lane;

	begin(8);
	lane = lane_attach();
	lane_pop(lane, 1, 5, EVENT_PY_LEAVE, 0);
	lane_push(lane, 2, 5, EVENT_PY_ENTER);
	lane_pop(lane, 3, 6, EVENT_PY_LEAVE, 0);
	cr_assert_eq(the.page->unmatched, 2);
	finish();
}

Test(collector_lane, never_splits_or_overruns_with_events_of_odd_size)
{
	struct lane *lane;

	begin(4);
	lane = lane_attach();
	for (uint32_t i = 0; i < 20000; i++) {
		if (i % 3)
			lane_put(lane, i, i, EVENT_PY_ENTER, 0);
		else
			lane_put_u32(lane, i, i, EVENT_LINE, i);
		cr_assert_leq(lane->subbuf->used, SUBBUF_BYTES);
	}
	finish();
	cr_assert_eq(the.page->lanes[1].events, 20000);
}

static uint64_t kept(void)
{
	uint64_t events = 0;

	for (uint32_t i = 0; i < the.page->pool_count; i++)
		if (subbuf_of(i)->state == SUBBUF_FULL && subbuf_of(i)->kind == LANE_THREAD)
			events += subbuf_of(i)->event_count;
	return events;
}

Test(collector_lane, gives_up_the_oldest_and_counts_it)
{
	const uint64_t total = 100000;
	struct lane *lane;

	begin(4);
	lane = lane_attach();
	for (uint64_t i = 0; i < total; i++)
		lane_put(lane, i, 1, EVENT_PY_ENTER, 0);
	finish();
	cr_assert_gt(the.page->lanes[1].lost, 0);
	cr_assert_eq(kept() + the.page->lanes[1].lost, total);
	cr_assert_eq(the.page->lanes[1].events, total);
}

Test(collector_lane, never_gives_up_names)
{
	struct lane *lane;

	begin(3);
	for (int i = 0; i < 3000; i++)
		lane_put_u32(lane_meta(), 1, 1, EVENT_WINDOW_ON, 0);
	lane = lane_attach();
	for (uint64_t i = 0; i < 50000; i++)
		lane_put(lane, i, 1, EVENT_PY_ENTER, 0);
	cr_assert_eq(the.page->lanes[LANE_META_SLOT].lost, 0);
	finish();
}

Test(collector_lane, counts_what_an_empty_pool_cannot_take)
{
	struct lane *lane;

	begin(1);
	lane_put(lane_meta(), 1, 1, EVENT_CODE, 0); /* takes the only one */
	lane = lane_attach();
	for (uint64_t i = 0; i < 1000; i++)
		lane_put(lane, i, 1, EVENT_PY_ENTER, 0);
	cr_assert_eq(the.page->lanes[1].lost, 1000);
	finish();
}

/* The reader checks what DESIGN promises: each sequence once, order in time, and that seen + lost is all there was. A scan is no
 * snapshot: it may come to a sub-buffer before an older one, filled behind its back. */
enum { SEQUENCES_MAX = 4096 };
struct reader {
	volatile bool done;
	uint64_t seen, wrong;
	bool had[SEQUENCES_MAX];
};

static bool drain_one(struct reader *reader)
{
	static char copy[SUBBUF_BYTES];
	uint64_t first = UINT64_MAX;
	uint32_t oldest = 0, full = SUBBUF_FULL;
	struct subbuf *subbuf;

	for (uint32_t i = 0; i < the.page->pool_count; i++) {
		subbuf = subbuf_of(i);
		if (__atomic_load_n(&subbuf->state, __ATOMIC_ACQUIRE) == SUBBUF_FULL && __atomic_load_n(&subbuf->order, __ATOMIC_RELAXED) < first) {
			first = __atomic_load_n(&subbuf->order, __ATOMIC_RELAXED);
			oldest = i;
		}
	}
	subbuf = subbuf_of(oldest);
	if (first == UINT64_MAX || !__atomic_compare_exchange_n(&subbuf->state, &full, SUBBUF_DRAINING, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return first != UINT64_MAX;
	memcpy(copy, subbuf, SUBBUF_BYTES);
	subbuf = (struct subbuf *)copy;
	if (subbuf->kind == LANE_THREAD) {
		const struct event *event = (const struct event *)(copy + SUBBUF_HEAD);
		uint64_t count = (subbuf->used - SUBBUF_HEAD) / sizeof *event;

		reader->wrong += subbuf->sequence >= SEQUENCES_MAX || reader->had[subbuf->sequence] || count != subbuf->event_count;
		reader->had[subbuf->sequence % SEQUENCES_MAX] = true;
		for (uint64_t i = 1; i < count; i++)
			reader->wrong += event[i].ticks != event[i - 1].ticks + 1;
		reader->seen += count;
	}
	give_back(oldest);
	return true;
}

static void *drain(void *argument)
{
	struct reader *reader = argument;

	for (;;) {
		bool done = __atomic_load_n(&reader->done, __ATOMIC_ACQUIRE);

		if (!drain_one(reader) && done)
			return NULL;
	}
}

Test(collector_lane, loses_nothing_uncounted_to_a_reader_that_runs_beside_it)
{
	const uint64_t total = 2000000;
	struct reader reader = {0};
	struct lane *lane;
	pthread_t thread;

	begin(6);
	lane = lane_attach();
	pthread_create(&thread, NULL, drain, &reader);
	for (uint64_t i = 1; i <= total; i++)
		lane_put(lane, i, 1, EVENT_PY_ENTER, 0);
	finish();
	__atomic_store_n(&reader.done, true, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	cr_assert_eq(reader.wrong, 0);
	cr_assert_eq(reader.seen + the.page->lanes[1].lost, total);
}

static void *write_and_end(void *argument)
{
	struct lane *lane = lane_attach();

	lane_put(lane, 1, 1, EVENT_PY_ENTER, 0);
	*(struct lane **)argument = lane;
	return NULL;
}

Test(collector_lane, is_handed_over_when_its_thread_ends)
{
	struct lane *lane;
	pthread_t thread;

	begin(8);
	pthread_create(&thread, NULL, write_and_end, &lane);
	pthread_join(thread, NULL);
	cr_assert_not(lane->in_use);
	cr_assert_eq(the.page->lanes[lane->slot].gone, 1);
	cr_assert_eq(kept(), 1);
	finish();
}

Test(collector_lane, of_an_earlier_session_is_nobodys)
{
	struct lane *old;

	begin(8);
	old = lane_attach();
	finish();
	begin(8);
	cr_assert_not(lane_is_mine(lane_mine));
	cr_assert(lane_is_mine(lane_attach()));
	cr_assert_neq((void *)old, NULL);
	finish();
}

static void *floor_here(void *argument)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);

	stack_learn();
	*(uintptr_t *)argument = here - stack_floor();
	return NULL;
}

Test(collector_stack, knows_a_sixteenth_of_a_threads_stack)
{
	const size_t sizes[] = {64 << 10, 256 << 10, 8 << 20};

	for (int i = 0; i < 3; i++) {
		pthread_attr_t attributes;
		uintptr_t below = 0;
		pthread_t thread;

		pthread_attr_init(&attributes);
		pthread_attr_setstacksize(&attributes, sizes[i]);
		cr_assert_eq(pthread_create(&thread, &attributes, floor_here, &below), 0);
		pthread_join(thread, NULL);
		/* What the thread has used before counts, too: its TCB is up there. */
		cr_assert_leq((intptr_t)below, (intptr_t)(sizes[i] / 16));
		cr_assert_geq((intptr_t)below, (intptr_t)(sizes[i] / 16) - 8192);
	}
}
