/* Sub-buffers into chunks. */
#include "session/drain.h"

#include <stdlib.h>
#include <string.h>

#include "abi/event.h"
#include "session/shadow.h"

/* What is known of one lane slot's present owner. */
struct lane {
	bool open;
	uint32_t number, kind, tid, outer_tid;
	uint64_t sequence;       /* of the sub-buffer read last */
	uint64_t ended;          /* of the last one that was read when nobody wrote it any more */
	uint32_t offset;         /* read so far of it */
	uint64_t chunk_sequence; /* of the chunk handed on last */
	uint64_t lost;
	struct shadow shadow;    /* its stack */
};

struct candidate { uint32_t index; uint64_t order; };

/* How far a sub-buffer that is being filled may be read. */
struct view { uint32_t index, used; uint64_t generation; };

struct drain {
	struct pool *pool;
	struct clock_map clock;
	struct drain_sink sink;
	uint32_t next_lane;
	struct drain_totals retired; /* of slots that were freed, and what only we count */
	struct lane lanes[LANES_MAX];
	struct candidate *candidates; /* pool.limit */
	struct view views[LANES_MAX];
	unsigned char *events;        /* a private copy: what is checked cannot change any more */
};

int drain_open(struct pool *pool, const struct clock_map *clock, uint32_t first_lane, const struct drain_sink *sink, struct drain **out, struct error *err)
{
	struct drain *drain = calloc(1, sizeof *drain);

	if (drain) {
		drain->pool = pool;
		drain->clock = *clock;
		drain->sink = *sink;
		drain->next_lane = first_lane;
		drain->candidates = calloc(pool->limit, sizeof *drain->candidates);
		drain->events = malloc(SUBBUF_BYTES);
		for (int i = 0; i < LANES_MAX; i++)
			drain->views[i].index = LANE_NONE;
	}
	if (!drain || !drain->candidates || !drain->events) {
		drain_close(drain);
		return fail(err, ERR_MEMORY, "draining the lanes");
	}
	*out = drain;
	return 0;
}

void drain_close(struct drain *drain)
{
	if (!drain)
		return;
	for (int i = 0; i < LANES_MAX; i++)
		shadow_done(&drain->lanes[i].shadow);
	free(drain->candidates);
	free(drain->events);
	free(drain);
}

/* Bytes of whole, well-formed events at the start of SIZE; follows the stack through them. */
static size_t events_check(struct lane *lane, const unsigned char *bytes, size_t size, uint64_t *count)
{
	struct event_cursor cursor = event_cursor(bytes, size);
	size_t good = 0;

	while (event_next(&cursor)) {
		good += cursor.event.size;
		++*count;
		shadow_follow(&lane->shadow, &cursor);
	}
	return good;
}

static bool head_sane(const struct subbuf *head)
{
	return head->used >= SUBBUF_HEAD && head->used <= SUBBUF_BYTES && head->lane < LANES_MAX &&
	       (head->kind == LANE_META || head->kind == LANE_THREAD || head->kind == LANE_GPU || head->kind == LANE_MEMORY) &&
	       head->ref_count <= LANE_DEPTH_REFS && head->depth >= head->ref_count && head->depth <= SHADOW_DEPTH_MAX && head->sequence > 0;
}

/* NULL for a sub-buffer that is older than what was read. */
static struct lane *lane_of(struct drain *drain, const struct subbuf *head)
{
	struct lane *lane = &drain->lanes[head->lane];

	if (lane->open && lane->kind == head->kind && lane->tid == head->tid)
		return head->sequence >= lane->sequence ? lane : NULL;
	lane->open = true;
	lane->number = drain->next_lane++;
	lane->kind = head->kind;
	lane->tid = head->tid;
	lane->outer_tid = head->kind == LANE_META || head->kind == LANE_MEMORY ? 0 : drain->sink.outer_tid(drain->sink.context, head->tid);
	lane->sequence = lane->ended = lane->chunk_sequence = lane->lost = 0;
	lane->offset = lane->shadow.depth = 0;
	return lane;
}

/* Hands on SIZE bytes of events from the private copy; HEAD is a copy too. WHOLE: nothing will follow in this sub-buffer. */
static void chunk_emit(struct drain *drain, const struct subbuf *head, size_t size, bool whole)
{
	struct lane *lane = lane_of(drain, head);
	struct chunk chunk = { .clock = drain->clock, .events = drain->events };
	uint64_t count = 0, lost = head->lost_before;
	bool begins, gap;

	if (!lane) {
		drain->retired.damaged++;
		return;
	}
	if (whole)
		lane->ended = head->sequence;
	begins = head->sequence != lane->sequence || lane->offset < SUBBUF_HEAD;
	gap = begins && head->sequence != lane->sequence + 1;
	chunk.lane = lane->number;
	chunk.tid = lane->outer_tid;
	chunk.lane_kind = lane->kind;
	if (gap) {
		uint64_t now = __atomic_load_n(&drain->pool->page->lanes[head->lane].lost, __ATOMIC_RELAXED);

		lost = now > lost ? now : lost; /* the head was written before its predecessor was taken away */
	}
	if (begins && (gap || lost > lane->lost || lane->chunk_sequence == 0))
		shadow_set(&lane->shadow, head);
	gap = gap || lost > lane->lost;
	lane->lost = lost > lane->lost ? lost : lane->lost;
	chunk.lost_before = lane->lost;
	chunk.sequence = lane->chunk_sequence + (gap && begins ? 2 : 1);
	shadow_tell(&lane->shadow, &chunk);
	chunk.size = events_check(lane, drain->events, size, &count);
	if (chunk.size != size)
		drain->retired.damaged++;
	lane->sequence = head->sequence;
	lane->offset = head->used;
	if (!chunk.size)
		return;
	lane->chunk_sequence = chunk.sequence;
	drain->retired.drained += count;
	drain->sink.chunk(drain->sink.context, &chunk, count);
}

/* Where reading goes on in this sub-buffer. */
static uint32_t read_from(const struct drain *drain, const struct subbuf *head)
{
	const struct lane *lane = &drain->lanes[head->lane];

	if (lane->open && lane->kind == head->kind && lane->tid == head->tid && lane->sequence == head->sequence && lane->offset >= SUBBUF_HEAD && lane->offset <= head->used)
		return lane->offset;
	return SUBBUF_HEAD;
}

typedef uint64_t __attribute__((may_alias)) word;

/* Word by word, as its writer may be at work: each field is whole, whatever becomes of the rest. */
static void head_copy(struct subbuf *out, const struct subbuf *subbuf)
{
	for (size_t i = 0; i < sizeof *out / sizeof(word); i++)
		((word *)out)[i] = __atomic_load_n((const word *)subbuf + i, __ATOMIC_RELAXED);
}
_Static_assert(sizeof(struct subbuf) % sizeof(word) == 0, "whole words");

/* Copies head and new events of sub-buffer INDEX, of which LIMIT bytes may be read. False when there is nothing sane. */
static bool subbuf_copy(struct drain *drain, uint32_t index, uint32_t limit, struct subbuf *head, size_t *size)
{
	const struct subbuf *subbuf = pool_subbuf(drain->pool, index);
	uint32_t from;

	head_copy(head, subbuf);
	head->used = limit;
	if (!head_sane(head)) {
		drain->retired.damaged++;
		return false;
	}
	from = read_from(drain, head);
	*size = limit - from;
	memcpy(drain->events, (const char *)subbuf + from, *size);
	return true;
}

static uint32_t subbuf_used(const struct subbuf *subbuf)
{
	return __atomic_load_n(&subbuf->used, __ATOMIC_ACQUIRE);
}

/* A sub-buffer that nobody writes any more: taken, read, given back. ORDER is that of the look that found it. */
static void subbuf_take(struct drain *drain, uint32_t index, uint32_t expected, uint64_t order)
{
	struct subbuf *subbuf = pool_subbuf(drain->pool, index), head;
	size_t size;

	if (!__atomic_compare_exchange_n(&subbuf->state, &expected, SUBBUF_DRAINING, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return; /* a writer stole it; it is counted as lost there */
	/* Stolen, and full again already: it is younger than those that follow now, and has its turn in the next round. */
	if (expected == SUBBUF_FULL && __atomic_load_n(&subbuf->order, __ATOMIC_RELAXED) != order) {
		__atomic_store_n(&subbuf->state, SUBBUF_FULL, __ATOMIC_RELEASE);
		return;
	}
	if (subbuf_copy(drain, index, subbuf_used(subbuf), &head, &size))
		chunk_emit(drain, &head, size, true);
	pool_push(drain->pool, index);
}

/* One that is being filled, as far as VIEW goes. Dropped when it changed hands meanwhile. */
static void subbuf_peek(struct drain *drain, const struct view *view, bool gaps)
{
	struct subbuf *subbuf = pool_subbuf(drain->pool, view->index), head;
	size_t size;

	if (__atomic_load_n(&subbuf->state, __ATOMIC_ACQUIRE) != SUBBUF_FILLING || !subbuf_copy(drain, view->index, view->used, &head, &size) || !size)
		return;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (head.generation != view->generation || __atomic_load_n(&subbuf->generation, __ATOMIC_ACQUIRE) != head.generation)
		return;
	/* Its predecessor may have become full a moment ago: the rest of that one must come first. */
	if (!gaps) {
		const struct lane *lane = &drain->lanes[head.lane];
		bool known = lane->open && lane->kind == head.kind && lane->tid == head.tid;

		if (head.sequence != (known ? lane->sequence : 0) && head.sequence != (known ? lane->ended : 0) + 1)
			return;
	}
	chunk_emit(drain, &head, size, false);
}

static int candidate_compare(const void *a, const void *b)
{
	uint64_t left = ((const struct candidate *)a)->order, right = ((const struct candidate *)b)->order;

	return left < right ? -1 : left > right;
}

/* Visits every sub-buffer: how many full ones no younger than LIMIT there are, noted as candidates, and the youngest's order. */
static uint32_t full_scan(struct drain *drain, uint64_t limit, uint64_t *youngest)
{
	uint32_t count = 0, used = 0;

	*youngest = 0;
	for (uint32_t i = 0; i < drain->pool->count; i++) {
		struct subbuf *subbuf = pool_subbuf(drain->pool, i);
		uint32_t state = __atomic_load_n(&subbuf->state, __ATOMIC_ACQUIRE);
		uint64_t order = __atomic_load_n(&subbuf->order, __ATOMIC_RELAXED);

		used += state != SUBBUF_FREE;
		if (state != SUBBUF_FULL || order > limit)
			continue;
		drain->candidates[count++] = (struct candidate){ i, order };
		*youngest = order > *youngest ? order : *youngest;
	}
	drain->retired.used = used;
	return count;
}

/*
 * The full ones, by age. One scan is no snapshot: it may find a lane's newest full one and have passed its predecessor while that
 * was still being filled. So a first scan only says how far to go; whatever is older than that is full when the second begins.
 */
static uint32_t full_collect(struct drain *drain)
{
	uint64_t limit, youngest;
	uint32_t count = full_scan(drain, UINT64_MAX, &limit);

	if (!count)
		return 0;
	count = full_scan(drain, limit, &youngest);
	qsort(drain->candidates, count, sizeof *drain->candidates, candidate_compare);
	return count;
}

/* Notes what the lanes of KIND (META, or all others) are filling at this moment. */
static void filling_view(struct drain *drain, uint32_t kind)
{
	struct page *page = drain->pool->page;

	for (uint32_t i = 0; i < LANES_MAX; i++) {
		uint32_t current, slot_kind = __atomic_load_n(&page->lanes[i].kind, __ATOMIC_ACQUIRE);
		struct view *view = &drain->views[i];
		struct subbuf *subbuf;

		if ((slot_kind == LANE_META) != (kind == LANE_META))
			continue;
		view->index = LANE_NONE;
		current = __atomic_load_n(&page->lanes[i].current, __ATOMIC_ACQUIRE);
		if (slot_kind == LANE_FREE || current >= drain->pool->count)
			continue;
		subbuf = pool_subbuf(drain->pool, current);
		view->generation = __atomic_load_n(&subbuf->generation, __ATOMIC_ACQUIRE);
		view->used = subbuf_used(subbuf);
		view->index = current;
	}
}

static void filling_peek(struct drain *drain, uint32_t kind, bool gaps)
{
	for (uint32_t i = 0; i < LANES_MAX; i++) {
		uint32_t slot_kind = __atomic_load_n(&drain->pool->page->lanes[i].kind, __ATOMIC_ACQUIRE);

		if ((slot_kind == LANE_META) == (kind == LANE_META) && drain->views[i].index < drain->pool->count) {
			subbuf_peek(drain, &drain->views[i], gaps);
			drain->views[i].index = LANE_NONE;
		}
	}
}

static bool subbuf_is_meta(const struct drain *drain, uint32_t index)
{
	return __atomic_load_n(&pool_subbuf(drain->pool, index)->kind, __ATOMIC_RELAXED) == LANE_META;
}

static void slot_retire(struct drain *drain, uint32_t slot)
{
	struct lane_slot *lane = &drain->pool->page->lanes[slot];

	drain->retired.events += __atomic_exchange_n(&lane->events, 0, __ATOMIC_RELAXED);
	drain->retired.lost += __atomic_exchange_n(&lane->lost, 0, __ATOMIC_RELAXED);
	drain->retired.skipped += __atomic_exchange_n(&lane->skipped, 0, __ATOMIC_RELAXED);
	drain->retired.cost_ticks += __atomic_exchange_n(&lane->cost_ticks, 0, __ATOMIC_RELAXED);
	drain->lanes[slot].open = false;
	/* Before the slot is anybody's again: its next owner must not look as if it had ended. */
	__atomic_store_n(&lane->gone, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&lane->kind, LANE_FREE, __ATOMIC_RELEASE);
}

static bool slot_ended(const struct lane_slot *slot)
{
	return __atomic_load_n(&slot->kind, __ATOMIC_ACQUIRE) != LANE_FREE && __atomic_load_n(&slot->gone, __ATOMIC_ACQUIRE) == 1;
}

void drain_round(struct drain *drain, bool partial)
{
	uint64_t ended[LANES_MAX / 64] = { 0 };
	uint32_t count;

	/* Seen as ended before the look for full ones: then the last of them is among those. */
	for (uint32_t i = 0; i < LANES_MAX; i++)
		if (slot_ended(&drain->pool->page->lanes[i]))
			ended[i / 64] |= 1ull << i % 64;
	count = full_collect(drain);
	/* Names first: an event's name was written before the event. */
	for (uint32_t i = 0; i < count; i++)
		if (subbuf_is_meta(drain, drain->candidates[i].index))
			subbuf_take(drain, drain->candidates[i].index, SUBBUF_FULL, drain->candidates[i].order);
	if (partial)
		filling_view(drain, LANE_THREAD);
	if (count || partial) {
		filling_view(drain, LANE_META);
		filling_peek(drain, LANE_META, false);
	}
	for (uint32_t i = 0; i < count; i++)
		subbuf_take(drain, drain->candidates[i].index, SUBBUF_FULL, drain->candidates[i].order);
	if (partial)
		filling_peek(drain, LANE_THREAD, false);
	for (uint32_t i = 0; i < LANES_MAX; i++)
		if (ended[i / 64] >> i % 64 & 1)
			slot_retire(drain, i);
}

/* Empties a lane whose writer is gone. */
static void slot_empty(struct drain *drain, uint32_t slot)
{
	uint32_t current = __atomic_load_n(&drain->pool->page->lanes[slot].current, __ATOMIC_ACQUIRE);

	if (current < drain->pool->count && __atomic_load_n(&pool_subbuf(drain->pool, current)->lane, __ATOMIC_RELAXED) == slot)
		subbuf_take(drain, current, SUBBUF_FILLING, 0);
}

void drain_last(struct drain *drain)
{
	uint32_t count = full_collect(drain);

	filling_view(drain, LANE_THREAD);
	filling_view(drain, LANE_META);
	for (int meta = 1; meta >= 0; meta--) {
		for (uint32_t i = 0; i < count; i++)
			if (subbuf_is_meta(drain, drain->candidates[i].index) == meta)
				subbuf_take(drain, drain->candidates[i].index, SUBBUF_FULL, drain->candidates[i].order);
		filling_peek(drain, meta ? LANE_META : LANE_THREAD, true);
	}
}

void drain_reclaim(struct drain *drain, bool (*alive)(void *context, uint32_t inner_tid), void *context)
{
	struct page *page = drain->pool->page;
	bool looked = false;

	for (uint32_t i = 0; i < LANES_MAX; i++) {
		struct lane_slot *slot = &page->lanes[i];

		if (__atomic_load_n(&slot->kind, __ATOMIC_ACQUIRE) != LANE_THREAD || slot_ended(slot) || alive(context, __atomic_load_n(&slot->tid, __ATOMIC_RELAXED)))
			continue;
		if (!looked)
			drain_round(drain, false); /* what it had filled comes first */
		looked = true;
		slot_empty(drain, i);
		slot_retire(drain, i);
	}
}

uint32_t drain_lane_number(struct drain *drain)
{
	return drain->next_lane++;
}

struct drain_totals drain_totals(const struct drain *drain)
{
	const struct page *page = drain->pool->page;
	struct drain_totals totals = drain->retired;

	totals.counted = __atomic_load_n(&page->counted_calls, __ATOMIC_RELAXED);
	totals.cost_ticks += (uint64_t)((unsigned __int128)totals.counted * page->cost_ps_py * drain->clock.ticks_per_second / 1000000000000ull);

	for (uint32_t i = 0; i < LANES_MAX; i++) {
		const struct lane_slot *slot = &drain->pool->page->lanes[i];

		totals.lost += __atomic_load_n(&slot->lost, __ATOMIC_RELAXED); /* a writer may steal from a thread that has ended, and count that when its slot is free */
		if (__atomic_load_n(&slot->kind, __ATOMIC_RELAXED) == LANE_FREE)
			continue;
		totals.lanes++;
		totals.events += __atomic_load_n(&slot->events, __ATOMIC_RELAXED);
		totals.skipped += __atomic_load_n(&slot->skipped, __ATOMIC_RELAXED);
		totals.cost_ticks += __atomic_load_n(&slot->cost_ticks, __ATOMIC_RELAXED);
	}
	return totals;
}
