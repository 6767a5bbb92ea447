/*
 * Bytes are sampled, not calls: points lie on the stream of allocated bytes, at exponential distances, and a block that one falls into is
 * remembered until it is released. One thread at a time may be in here; the filter alone may be read by all.
 */
#ifndef INFERSCOPE_COLLECTOR_SAMPLED_H
#define INFERSCOPE_COLLECTOR_SAMPLED_H

#include <stdbool.h>
#include <stdint.h>

enum { SAMPLED_MAX = 32768, SAMPLED_FILTER = 16384, SAMPLED_SLOTS = SAMPLED_MAX * 2 };
#define SAMPLED_NEVER (INT64_MAX / 2) /* so many bytes to the next point: nothing is sampled */

struct sampled {
	uint64_t random;
	uint32_t live;
	uint64_t *table; /* addresses of blocks that live, by hash; mapped once and never unmapped */
	uint64_t filter[SAMPLED_FILTER / 64]; /* a bit: some of them have this hash. Every release looks here: small, so that little of the program is pushed out of the nearest cache */
	uint8_t held[SAMPLED_FILTER]; /* … and how many; 255: many */
};

/* Makes room, the first time, and forgets all blocks. False: there is no memory. */
bool sampled_begin(struct sampled *sampled, uint64_t random);
/* Gives back what memory it can. */
void sampled_end(struct sampled *sampled);
/* Bytes to the next point, INTERVAL bytes away on average. */
int64_t sampled_gap(struct sampled *sampled, uint64_t interval);
/* For how many bytes a sampled block of SIZE stands. */
uint64_t sampled_weight(uint64_t size, uint64_t interval);
/* False: there are too many. One that is there already is there once. */
bool sampled_add(struct sampled *sampled, uint64_t address);
/* False: it is not there. */
bool sampled_remove(struct sampled *sampled, uint64_t address);

/* Nothing may be held from here on; as sampled_end(), without a system call. */
void sampled_forget(struct sampled *sampled);

static inline uint32_t sampled_slot(uint64_t address)
{
	return (uint32_t)((address >> 4) * 0x9e3779b97f4a7c15ull >> 40) & (SAMPLED_SLOTS - 1);
}

/* False: BLOCK was surely not sampled. */
static inline bool sampled_may_hold(const struct sampled *sampled, const void *block)
{
	uint32_t bit = sampled_slot((uint64_t)(uintptr_t)block) & (SAMPLED_FILTER - 1);

	return __builtin_expect(__atomic_load_n(&sampled->filter[bit / 64], __ATOMIC_RELAXED) >> bit % 64 & 1, 0);
}

#endif
