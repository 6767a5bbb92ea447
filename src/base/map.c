/* Open addressing with linear probing, at most half full. */
#include "base/map.h"

#include <stdlib.h>
#include <string.h>

static size_t find_slot(const struct map *map, uint64_t key)
{
	size_t mask = map->capacity - 1, slot = mix64(key) & mask;

	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): grow has put the bigger ones in their place */
	while (map->values[slot] != MAP_ABSENT && map->keys[slot] != key)
		slot = (slot + 1) & mask;
	return slot;
}

static bool grow(struct map *map)
{
	struct map bigger = { .capacity = map->capacity ? map->capacity * 2 : 64, .count = map->count };

	bigger.keys = malloc(bigger.capacity * sizeof *bigger.keys);
	bigger.values = malloc(bigger.capacity * sizeof *bigger.values);
	if (!bigger.keys || !bigger.values) {
		map_done(&bigger);
		return false;
	}
	memset(bigger.values, 0xff, bigger.capacity * sizeof *bigger.values);
	for (size_t i = 0; i < map->capacity; i++) {
		if (map->values[i] == MAP_ABSENT)
			continue;
		size_t slot = find_slot(&bigger, map->keys[i]);

		bigger.keys[slot] = map->keys[i];
		bigger.values[slot] = map->values[i];
	}
	map_done(map);
	*map = bigger;
	return true;
}

uint32_t map_get(const struct map *map, uint64_t key)
{
	return map->capacity ? map->values[find_slot(map, key)] : MAP_ABSENT;
}

bool map_put(struct map *map, uint64_t key, uint32_t value)
{
	if (map->count * 2 >= map->capacity && !grow(map))
		return false;
	size_t slot = find_slot(map, key);

	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): grow has put the bigger ones in their place */
	map->count += map->values[slot] == MAP_ABSENT;
	map->keys[slot] = key;
	map->values[slot] = value;
	return true;
}

void map_done(struct map *map)
{
	free(map->keys);
	free(map->values);
	*map = (struct map){ 0 };
}
