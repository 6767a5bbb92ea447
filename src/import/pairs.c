#include "import/pairs.h"

/* Different ones are told apart by chance alone; + 1, as 0 stays 0. */
static uint64_t key_of(int way, const struct pair_names *names)
{
	uint64_t named = mix64(((uint64_t)names->thread << 32 | names->name) + 1);

	if (names->id)
		return mix64(mix64((uint64_t)names->id) + names->thread);
	return way == 0 ? mix64(named + names->metadata) : named;
}

static int ways_of(const struct pair_names *names)
{
	return names->id ? 1 : PAIR_WAYS;
}

static struct pair_queue *queue_of(struct pairs *pairs, uint64_t key, bool *failed)
{
	uint32_t at = map_get(&pairs->by_key, key);
	struct pair_queue *queue;

	if (at != MAP_ABSENT)
		return &pairs->queues.items[at];
	queue = list_add_or_fail(&pairs->queues, MAP_ABSENT, failed);
	if (queue && !map_put(&pairs->by_key, key, (uint32_t)pairs->queues.count - 1))
		*failed = true;
	return queue;
}

void pairs_begin(struct pairs *pairs, const struct pair_names *names, uint32_t row, bool *failed)
{
	struct pair *pair = list_add_or_fail(&pairs->items, MAP_ABSENT, failed);
	uint32_t number = (uint32_t)pairs->items.count;

	if (!pair)
		return;
	pair->row = row;
	for (int way = 0; way < ways_of(names); way++) {
		struct pair_queue *queue = queue_of(pairs, key_of(way, names), failed);

		if (!queue)
			return;
		if (queue->first)
			pairs->items.items[queue->last - 1].next[way] = number;
		else
			queue->first = number;
		queue->last = number;
	}
}

/* Those that ended by the other way are left behind. */
static struct pair *oldest(struct pairs *pairs, int way, uint64_t key)
{
	uint32_t at = map_get(&pairs->by_key, key);
	struct pair_queue *queue = at == MAP_ABSENT ? NULL : &pairs->queues.items[at];

	while (queue && queue->first && pairs->items.items[queue->first - 1].ended)
		queue->first = pairs->items.items[queue->first - 1].next[way];
	return queue && queue->first ? &pairs->items.items[queue->first - 1] : NULL;
}

struct pair *pairs_find(struct pairs *pairs, const struct pair_names *names)
{
	struct pair *found = NULL;

	for (int way = 0; way < ways_of(names) && !found; way++)
		found = oldest(pairs, way, key_of(way, names));
	return found;
}

void pairs_done(struct pairs *pairs)
{
	list_done(&pairs->items);
	list_done(&pairs->queues);
	map_done(&pairs->by_key);
}
