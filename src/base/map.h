/* A hash map from 64-bit keys to 32-bit values; UINT32_MAX is not a value. Never shrinks, nothing is removed. */
#ifndef INFERSCOPE_BASE_MAP_H
#define INFERSCOPE_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MAP_ABSENT = 0xffffffffu };

struct map {
	uint64_t *keys;
	uint32_t *values;
	size_t capacity; /* a power of two, or 0 */
	size_t count;
};

/* Spreads the bits of X: equal inputs give equal outputs, near inputs give far ones. */
static inline uint64_t mix64(uint64_t x)
{
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdull;
	x ^= x >> 33;
	x *= 0xc4ceb9fe1a85ec53ull;
	return x ^ x >> 33;
}

uint32_t map_get(const struct map *map, uint64_t key);
/* Adds or replaces. False when out of memory. */
bool map_put(struct map *map, uint64_t key, uint32_t value);
void map_done(struct map *map);

#endif
