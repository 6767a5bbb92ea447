/* The drain over a page that the test fills, honest and lying. */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <string.h>

#include "abi/event.h"
#include "session/drain.h"
#include "trace/writer.h"

enum { SUBBUFS = 8 };

struct seen {
	uint32_t chunks, lane[64], tid[64], depth[64], kind[64];
	uint64_t sequence[64], lost[64], events;
	uint32_t first_ref[64];
	size_t size[64];
};

struct fixture {
	struct pool pool;
	struct drain *drain;
	struct seen seen;
};

static void chunk_note(void *context, const struct chunk *chunk, uint64_t events)
{
	struct seen *seen = context;
	struct event_cursor cursor = event_cursor(chunk->events, chunk->size);
	uint32_t at = seen->chunks++ % 64;

	seen->lane[at] = chunk->lane;
	seen->tid[at] = chunk->tid;
	seen->kind[at] = chunk->lane_kind;
	seen->depth[at] = chunk->depth;
	seen->sequence[at] = chunk->sequence;
	seen->lost[at] = chunk->lost_before;
	seen->size[at] = chunk->size;
	seen->first_ref[at] = event_next(&cursor) ? cursor.event.ref : 0;
	seen->events += events;
}

static uint32_t tid_plus_1000(void *context, uint32_t inner)
{
	return inner + 1000;
}

static void begin(struct fixture *fixture)
{
	const struct drain_sink sink = { chunk_note, tid_plus_1000, &fixture->seen };
	struct clock_map clock = clock_map_monotonic();

	memset(fixture, 0, sizeof *fixture);
	cr_assert_eq(pool_open_anonymous(PAGE_BYTES + SUBBUFS * SUBBUF_BYTES, &fixture->pool, NULL), 0);
	cr_assert_eq(pool_grow(&fixture->pool, SUBBUFS), SUBBUFS);
	for (int i = 0; i < LANES_MAX; i++)
		fixture->pool.page->lanes[i].current = LANE_NONE;
	cr_assert_eq(drain_open(&fixture->pool, &clock, 1, &sink, &fixture->drain, NULL), 0);
}

static void end(struct fixture *fixture)
{
	drain_close(fixture->drain);
	pool_close(&fixture->pool);
}

/* As a writer of the target takes one. */
static struct subbuf *take(struct fixture *fixture, uint32_t index, uint32_t slot, uint32_t kind, uint32_t tid, uint64_t sequence)
{
	struct subbuf *subbuf = pool_subbuf(&fixture->pool, index);
	struct lane_slot *lane = &fixture->pool.page->lanes[slot];
	uint64_t generation = subbuf->generation;

	memset(subbuf, 0, SUBBUF_HEAD);
	subbuf->generation = generation + 1;
	subbuf->lane = slot;
	subbuf->kind = kind;
	subbuf->tid = tid;
	subbuf->sequence = sequence;
	subbuf->used = SUBBUF_HEAD;
	subbuf->state = SUBBUF_FILLING;
	lane->kind = kind;
	lane->tid = tid;
	lane->current = index;
	return subbuf;
}

static void put(struct subbuf *subbuf, uint8_t kind, uint32_t ref)
{
	struct event event = { .ticks = subbuf->used, .ref = ref, .size = sizeof event, .kind = kind };

	memcpy((char *)subbuf + subbuf->used, &event, sizeof event);
	subbuf->used += sizeof event;
	subbuf->event_count++;
}

static void full(struct fixture *fixture, struct subbuf *subbuf)
{
	subbuf->order = ++fixture->pool.page->order;
	subbuf->state = SUBBUF_FULL;
}

static uint32_t free_count(const struct fixture *fixture)
{
	uint32_t count = 0, at = (uint32_t)fixture->pool.page->free_head;

	for (; at && count <= SUBBUFS; count++)
		at = pool_subbuf(&fixture->pool, at - 1)->next_free;
	return count;
}

Test(drain, hands_full_ones_on_in_order_and_gives_them_back)
{
	struct fixture fixture;
	struct subbuf *subbuf;

	begin(&fixture);
	fixture.pool.page->free_head = 0;
	subbuf = take(&fixture, 5, 3, LANE_THREAD, 42, 1);
	put(subbuf, EVENT_PY_ENTER, 7);
	full(&fixture, subbuf);
	subbuf = take(&fixture, 2, 3, LANE_THREAD, 42, 2);
	put(subbuf, EVENT_PY_LEAVE, 7);
	full(&fixture, subbuf);
	fixture.pool.page->lanes[3].current = LANE_NONE;
	drain_round(fixture.drain, false);
	cr_assert_eq(fixture.seen.chunks, 2);
	cr_assert_eq(fixture.seen.sequence[0], 1);
	cr_assert_eq(fixture.seen.sequence[1], 2);
	cr_assert_eq(fixture.seen.lane[0], fixture.seen.lane[1]);
	cr_assert_eq(fixture.seen.tid[0], 1042);
	cr_assert_eq(fixture.seen.depth[1], 1, "the second chunk begins inside the call");
	cr_assert_eq(free_count(&fixture), 2);
	end(&fixture);
}

Test(drain, reads_a_filling_one_piece_by_piece_and_nothing_twice)
{
	struct fixture fixture;
	struct subbuf *subbuf;

	begin(&fixture);
	subbuf = take(&fixture, 0, 0, LANE_THREAD, 1, 1);
	put(subbuf, EVENT_PY_ENTER, 1);
	put(subbuf, EVENT_PY_ENTER, 2);
	drain_round(fixture.drain, true);
	drain_round(fixture.drain, true);
	put(subbuf, EVENT_PY_ENTER, 3);
	drain_round(fixture.drain, true);
	put(subbuf, EVENT_PY_LEAVE, 3);
	full(&fixture, subbuf);
	drain_round(fixture.drain, false);
	cr_assert_eq(fixture.seen.chunks, 3);
	cr_assert_eq(fixture.seen.events, 4);
	cr_assert_eq(fixture.seen.first_ref[1], 3);
	cr_assert_eq(fixture.seen.depth[1], 2);
	cr_assert_eq(fixture.seen.sequence[2], 3, "pieces of one sub-buffer are no gaps");
	end(&fixture);
}

Test(drain, tells_a_loss_by_a_gap_and_takes_the_stack_from_the_head)
{
	struct fixture fixture;
	struct subbuf *subbuf;

	begin(&fixture);
	subbuf = take(&fixture, 0, 0, LANE_THREAD, 1, 1);
	put(subbuf, EVENT_PY_ENTER, 1);
	full(&fixture, subbuf);
	drain_round(fixture.drain, false);
	fixture.pool.page->lanes[0].lost = 500;
	subbuf = take(&fixture, 1, 0, LANE_THREAD, 1, 3);
	subbuf->depth = 5;
	subbuf->ref_count = 2;
	subbuf->refs[0] = 8;
	subbuf->refs[1] = 9;
	put(subbuf, EVENT_PY_LEAVE, 9);
	full(&fixture, subbuf);
	drain_round(fixture.drain, false);
	cr_assert_eq(fixture.seen.sequence[1], 3);
	cr_assert_eq(fixture.seen.lost[1], 500);
	cr_assert_eq(fixture.seen.depth[1], 5);
	end(&fixture);
}

Test(drain, waits_for_the_predecessor_of_a_filling_one)
{
	struct fixture fixture;
	struct subbuf *first, *second;

	begin(&fixture);
	first = take(&fixture, 0, 0, LANE_THREAD, 1, 1);
	put(first, EVENT_PY_ENTER, 1);
	first->state = SUBBUF_DRAINING; /* as if it became full a moment after the look */
	second = take(&fixture, 1, 0, LANE_THREAD, 1, 2);
	put(second, EVENT_PY_ENTER, 2);
	drain_round(fixture.drain, true);
	cr_assert_eq(fixture.seen.chunks, 0);
	first->state = SUBBUF_FILLING;
	full(&fixture, first);
	drain_round(fixture.drain, true);
	cr_assert_eq(fixture.seen.chunks, 2);
	cr_assert_eq(fixture.seen.first_ref[0], 1);
	end(&fixture);
}

Test(drain, waits_for_the_rest_of_a_predecessor_that_was_read_in_part)
{
	struct fixture fixture;
	struct subbuf *first, *second;

	begin(&fixture);
	first = take(&fixture, 0, 0, LANE_THREAD, 1, 1);
	put(first, EVENT_PY_ENTER, 1);
	drain_round(fixture.drain, true);
	put(first, EVENT_PY_ENTER, 2);
	first->state = SUBBUF_DRAINING; /* as above */
	second = take(&fixture, 1, 0, LANE_THREAD, 1, 2);
	put(second, EVENT_PY_ENTER, 3);
	drain_round(fixture.drain, true);
	cr_assert_eq(fixture.seen.chunks, 1);
	first->state = SUBBUF_FILLING;
	full(&fixture, first);
	drain_round(fixture.drain, true);
	cr_assert_eq(fixture.seen.chunks, 3);
	cr_assert_eq(fixture.seen.first_ref[1], 2);
	cr_assert_eq(fixture.seen.first_ref[2], 3);
	cr_assert_eq(drain_totals(fixture.drain).damaged, 0);
	end(&fixture);
}

Test(drain, gives_names_before_the_events_that_need_them)
{
	struct fixture fixture;
	struct subbuf *events, *names;

	begin(&fixture);
	names = take(&fixture, 1, 1, LANE_META, 0, 1);
	events = take(&fixture, 0, 0, LANE_THREAD, 1, 1);
	put(names, EVENT_WINDOW_ON, 0);
	put(events, EVENT_PY_ENTER, 1);
	full(&fixture, events);
	drain_round(fixture.drain, false);
	cr_assert_eq(fixture.seen.chunks, 2);
	cr_assert_eq(fixture.seen.kind[0], LANE_META);
	cr_assert_eq(fixture.seen.kind[1], LANE_THREAD);
	end(&fixture);
}

Test(drain, gives_a_reused_slot_a_new_lane)
{
	struct fixture fixture;
	struct subbuf *subbuf;

	begin(&fixture);
	subbuf = take(&fixture, 0, 0, LANE_THREAD, 1, 1);
	put(subbuf, EVENT_PY_ENTER, 1);
	full(&fixture, subbuf);
	fixture.pool.page->lanes[0].current = LANE_NONE;
	fixture.pool.page->lanes[0].events = 1;
	fixture.pool.page->lanes[0].gone = 1;
	drain_round(fixture.drain, false);
	cr_assert_eq(fixture.pool.page->lanes[0].kind, LANE_FREE);
	fixture.pool.page->lanes[0].gone = 0;
	subbuf = take(&fixture, 1, 0, LANE_THREAD, 1, 1);
	put(subbuf, EVENT_PY_ENTER, 1);
	full(&fixture, subbuf);
	drain_round(fixture.drain, false);
	cr_assert_eq(fixture.seen.chunks, 2);
	cr_assert_neq(fixture.seen.lane[0], fixture.seen.lane[1]);
	cr_assert_eq(fixture.seen.depth[1], 0);
	cr_assert_eq(drain_totals(fixture.drain).events, 1, "an ended lane stays in the sum");
	end(&fixture);
}

static bool nobody_lives(void *context, uint32_t tid)
{
	return false;
}

Test(drain, empties_the_lane_of_a_thread_that_ended_silently)
{
	struct fixture fixture;
	struct subbuf *subbuf;

	begin(&fixture);
	subbuf = take(&fixture, 0, 0, LANE_THREAD, 1, 1);
	put(subbuf, EVENT_PY_ENTER, 1);
	drain_reclaim(fixture.drain, nobody_lives, NULL);
	cr_assert_eq(fixture.seen.events, 1);
	cr_assert_eq(fixture.pool.page->lanes[0].kind, LANE_FREE);
	cr_assert_eq(subbuf->state, SUBBUF_FREE);
	end(&fixture);
}

Test(drain, the_last_round_takes_what_is_being_filled_gaps_or_not)
{
	struct fixture fixture;
	struct subbuf *subbuf;

	begin(&fixture);
	subbuf = take(&fixture, 0, 0, LANE_THREAD, 1, 9);
	put(subbuf, EVENT_PY_ENTER, 1);
	drain_round(fixture.drain, true);
	cr_assert_eq(fixture.seen.chunks, 0);
	drain_last(fixture.drain);
	cr_assert_eq(fixture.seen.chunks, 1);
	cr_assert_eq(fixture.seen.sequence[0], 2, "a gap");
	end(&fixture);
}

Test(drain, drops_what_is_older_than_what_it_has_read)
{
	struct fixture fixture;
	struct subbuf *subbuf;

	begin(&fixture);
	subbuf = take(&fixture, 0, 0, LANE_THREAD, 1, 5);
	put(subbuf, EVENT_PY_ENTER, 1);
	full(&fixture, subbuf);
	drain_round(fixture.drain, false);
	subbuf = take(&fixture, 1, 0, LANE_THREAD, 1, 4);
	put(subbuf, EVENT_PY_ENTER, 1);
	full(&fixture, subbuf);
	drain_round(fixture.drain, false);
	cr_assert_eq(fixture.seen.chunks, 1);
	cr_assert_eq(drain_totals(fixture.drain).damaged, 1);
	end(&fixture);
}

/* What a writer that steals does between the look at all sub-buffers and the taking of one: done here by the chunk before it. */
static void chunk_steal(void *context, const struct chunk *chunk, uint64_t events)
{
	struct fixture *fixture = context;

	chunk_note(&fixture->seen, chunk, events);
	if (fixture->seen.chunks == 1) {
		struct subbuf *stolen = take(fixture, 1, 0, LANE_THREAD, 1, 4);

		put(stolen, EVENT_PY_ENTER, 4);
		full(fixture, stolen);
	}
}

Test(drain, one_that_was_stolen_and_filled_again_waits_its_turn)
{
	struct fixture fixture;
	const struct drain_sink sink = { chunk_steal, tid_plus_1000, &fixture };
	struct clock_map clock = clock_map_monotonic();

	begin(&fixture);
	drain_close(fixture.drain);
	cr_assert_eq(drain_open(&fixture.pool, &clock, 1, &sink, &fixture.drain, NULL), 0);
	for (uint32_t i = 0; i < 3; i++) {
		struct subbuf *subbuf = take(&fixture, i, 0, LANE_THREAD, 1, i + 1);

		put(subbuf, EVENT_PY_ENTER, i + 1);
		full(&fixture, subbuf);
	}
	drain_round(fixture.drain, false);
	drain_round(fixture.drain, false);
	cr_assert_eq(fixture.seen.chunks, 3);
	cr_assert_eq(fixture.seen.first_ref[1], 3);
	cr_assert_eq(fixture.seen.first_ref[2], 4);
	cr_assert_eq(fixture.seen.lane[2], fixture.seen.lane[0]);
	end(&fixture);
}

struct lie { char name[24]; uint32_t used, lane, kind, depth, ref_count; uint64_t sequence; };

ParameterizedTestParameters(drain, survives_a_lying_head)
{
	static struct lie lies[] = {
		{ "used too small", 8, 0, LANE_THREAD, 0, 0, 1 },
		{ "used too large", 0xffffffff, 0, LANE_THREAD, 0, 0, 1 },
		{ "no such lane", SUBBUF_HEAD + 16, 0x7fffffff, LANE_THREAD, 0, 0, 1 },
		{ "no such kind", SUBBUF_HEAD + 16, 0, 77, 0, 0, 1 },
		{ "session's lane", SUBBUF_HEAD + 16, 0, LANE_SESSION, 0, 0, 1 },
		{ "too many refs", SUBBUF_HEAD + 16, 0, LANE_THREAD, 99, 99, 1 },
		{ "refs beyond depth", SUBBUF_HEAD + 16, 0, LANE_THREAD, 1, 3, 1 },
		{ "endless depth", SUBBUF_HEAD + 16, 0, LANE_THREAD, 0xffffffff, 0, 1 },
		{ "sequence 0", SUBBUF_HEAD + 16, 0, LANE_THREAD, 0, 0, 0 },
	};

	return cr_make_param_array(struct lie, lies, sizeof lies / sizeof *lies);
}

ParameterizedTest(struct lie *lie, drain, survives_a_lying_head)
{
	struct fixture fixture;
	struct subbuf *subbuf;

	begin(&fixture);
	subbuf = take(&fixture, 0, 0, LANE_THREAD, 1, 1);
	put(subbuf, EVENT_PY_ENTER, 1);
	subbuf->used = lie->used;
	subbuf->lane = lie->lane;
	subbuf->kind = lie->kind;
	subbuf->depth = lie->depth;
	subbuf->ref_count = lie->ref_count;
	subbuf->sequence = lie->sequence;
	full(&fixture, subbuf);
	drain_round(fixture.drain, true);
	cr_assert_eq(fixture.seen.chunks, 0, "%s", lie->name);
	cr_assert_geq(drain_totals(fixture.drain).damaged, 1, "%s", lie->name);
	end(&fixture);
}

Test(drain, cuts_at_an_event_of_impossible_size)
{
	struct fixture fixture;
	struct subbuf *subbuf;
	struct event bad = { .size = 60000, .kind = EVENT_PY_ENTER };

	begin(&fixture);
	subbuf = take(&fixture, 0, 0, LANE_THREAD, 1, 1);
	put(subbuf, EVENT_PY_ENTER, 1);
	memcpy((char *)subbuf + subbuf->used, &bad, sizeof bad);
	subbuf->used += sizeof bad;
	full(&fixture, subbuf);
	drain_round(fixture.drain, false);
	cr_assert_eq(fixture.seen.size[0], 16);
	cr_assert_eq(fixture.seen.events, 1);
	cr_assert_eq(drain_totals(fixture.drain).damaged, 1);
	end(&fixture);
}

Test(drain, survives_noise)
{
	struct fixture fixture;
	uint64_t random = 88172645463325252ull;

	begin(&fixture);
	for (int round = 0; round < 200; round++) {
		for (uint32_t i = 0; i < SUBBUFS; i++) {
			uint32_t *words = (uint32_t *)pool_subbuf(&fixture.pool, i);

			for (size_t j = 0; j < 256; j++) {
				random ^= random << 13;
				random ^= random >> 7;
				random ^= random << 17;
				words[j] = j < SUBBUF_HEAD / 4 && random & 1 ? (uint32_t)(random >> 60) : (uint32_t)(random >> 32);
			}
		}
		for (uint32_t i = 0; i < LANES_MAX; i++) {
			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			fixture.pool.page->lanes[i].kind = (uint32_t)(random >> 61);
			fixture.pool.page->lanes[i].current = random & 1 ? (uint32_t)(random >> 59) : (uint32_t)(random >> 32);
			fixture.pool.page->lanes[i].gone = (uint32_t)(random >> 20 & 1);
		}
		fixture.pool.page->free_head = random;
		drain_round(fixture.drain, true);
		drain_reclaim(fixture.drain, nobody_lives, NULL);
	}
	drain_last(fixture.drain);
	end(&fixture);
}

Test(pool, grows_to_its_limit_and_no_further)
{
	struct pool pool;

	cr_assert_eq(pool_open_anonymous(PAGE_BYTES + 3 * SUBBUF_BYTES, &pool, NULL), 0);
	cr_assert_eq(pool_grow(&pool, 2), 2);
	cr_assert_eq(pool_grow(&pool, 5), 1);
	cr_assert_eq(pool_grow(&pool, 5), 0);
	cr_assert_eq(pool.page->pool_count, 3);
	pool_close(&pool);
}
