/* Any bytes as what a target wrote into the lanes: slots and sub-buffers, with rounds in between, then what the page says, then the last round. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "session/drain.h"

enum { SUBBUFS = 4, SLOTS = 8 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void chunk_touch(void *context, const struct chunk *chunk, uint64_t events)
{
	volatile unsigned *sum = context;

	for (size_t i = 0; i < chunk->size; i++)
		*sum += ((const unsigned char *)chunk->events)[i];
	if (chunk->ref_count > LANE_DEPTH_REFS || chunk->ref_count > chunk->depth)
		abort();
	for (struct event_cursor cursor = event_cursor(chunk->events, chunk->size); event_next(&cursor);)
		events--;
	if (events)
		abort();
}

static uint32_t tid_same(void *context, uint32_t inner)
{
	return inner;
}

static bool odd_ones_live(void *context, uint32_t inner)
{
	return inner & 1;
}

/* Takes the next COUNT bytes, or what is left. */
static void fill(void *out, size_t count, const uint8_t **data, size_t *size)
{
	size_t take = count < *size ? count : *size;

	memcpy(out, *data, take);
	*data += take;
	*size -= take;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	volatile unsigned sum = 0;
	const struct drain_sink sink = { chunk_touch, tid_same, (void *)&sum };
	struct clock_map clock = clock_map_monotonic();
	struct pool pool = { 0 };
	struct drain *drain;
	size_t part = size / SUBBUFS + 1;

	if (pool_open_anonymous(PAGE_BYTES + SUBBUFS * SUBBUF_BYTES, &pool, NULL) < 0)
		return 0;
	pool_grow(&pool, SUBBUFS);
	if (drain_open(&pool, &clock, 1, &sink, &drain, NULL) < 0)
		abort();
	fill(pool.page->lanes, SLOTS * sizeof *pool.page->lanes, &data, &size);
	for (uint32_t i = 0; i < SUBBUFS; i++) {
		fill(pool_subbuf(&pool, i), sizeof(struct subbuf), &data, &size);
		fill((char *)pool_subbuf(&pool, i) + SUBBUF_HEAD, part < SUBBUF_BYTES - SUBBUF_HEAD ? part : SUBBUF_BYTES - SUBBUF_HEAD, &data, &size);
		drain_round(drain, i & 1);
	}
	fill(&pool.page->arm, offsetof(struct page, lanes) - offsetof(struct page, arm), &data, &size);
	drain_round(drain, true);
	sum += (unsigned)drain_totals(drain).events;
	drain_reclaim(drain, odd_ones_live, NULL);
	drain_last(drain);
	drain_close(drain);
	pool_close(&pool);
	return 0;
}
