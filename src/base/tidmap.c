/* Pairs of thread ids, sorted by the inner one. */
#include "base/tidmap.h"

#include <limits.h>
#include <stdlib.h>

#include "base/search.h"

void tidmap_clear(struct tidmap *map)
{
	map->pairs.count = 0;
	map->failed = false;
}

void tidmap_add(struct tidmap *map, pid_t inner, pid_t outer)
{
	struct tid_pair *pair = list_add(&map->pairs, INT_MAX);

	if (pair)
		*pair = (struct tid_pair){ inner, outer };
	else
		map->failed = true;
}

static int pair_compare(const void *a, const void *b)
{
	const struct tid_pair *x = a, *y = b;

	return x->inner < y->inner ? -1 : x->inner > y->inner;
}

void tidmap_sort(struct tidmap *map)
{
	if (map->pairs.count)
		qsort(map->pairs.items, map->pairs.count, sizeof *map->pairs.items, pair_compare);
}

pid_t tidmap_outer(const struct tidmap *map, pid_t inner)
{
	size_t at = search_first(map->pairs.count, i, map->pairs.items[i].inner < inner);

	return at < map->pairs.count && map->pairs.items[at].inner == inner ? map->pairs.items[at].outer : 0;
}

void tidmap_done(struct tidmap *map)
{
	list_done(&map->pairs);
}
