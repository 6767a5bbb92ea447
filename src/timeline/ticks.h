/* Ticks to ns for many events of one chunk: the same numbers as clock_to_ns(), without a division for each. */
#ifndef INFERSCOPE_TIMELINE_TICKS_H
#define INFERSCOPE_TIMELINE_TICKS_H

#include "base/clock.h"

struct ticks {
	struct clock_map map;
	uint64_t reciprocal; /* floor(2^64 * 10^9 / ticks_per_second); 0 = do it slowly */
};

static inline struct ticks ticks_of(const struct clock_map *map)
{
	struct ticks ticks = { .map = *map };

	if (map->ticks_per_second > 1000000000ull)
		ticks.reciprocal = (uint64_t)(((unsigned __int128)1000000000u << 64) / map->ticks_per_second);
	return ticks;
}

static inline uint64_t ticks_to_ns(const struct ticks *ticks, uint64_t at)
{
	uint64_t passed = at - ticks->map.base_ticks;

	if (at < ticks->map.base_ticks || passed >= 1ull << 62)
		return clock_to_ns(&ticks->map, at);
	if (ticks->map.ticks_per_second == 1000000000ull)
		return ticks->map.base_ns + passed;
	if (!ticks->reciprocal)
		return clock_to_ns(&ticks->map, at);
	/* The reciprocal is rounded down, so the quotient is right or one too small: the remainder tells. */
	uint64_t ns = (uint64_t)((unsigned __int128)passed * ticks->reciprocal >> 64);
	uint64_t rest = (uint64_t)((unsigned __int128)passed * 1000000000u - (unsigned __int128)ns * ticks->map.ticks_per_second);

	return ticks->map.base_ns + ns + (rest >= ticks->map.ticks_per_second);
}

#endif
