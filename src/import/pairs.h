/*
 * Scopes whose begins and ends come apart, without an id: an end belongs to the oldest open scope of its thread with its name and metadata, else to the oldest with its name. Those of concurrent
 * tasks overlap and end in any order. For this layer alone.
 */
#ifndef INFERSCOPE_IMPORT_PAIRS_H
#define INFERSCOPE_IMPORT_PAIRS_H

#include "base/list.h"
#include "base/map.h"

/* By whom an end is found: [0] thread, name and metadata, [1] thread and name. Both begin with the oldest; numbers of items, + 1. */
enum { PAIR_WAYS = 2 };
struct pair { uint32_t row, next[PAIR_WAYS]; bool ended; };
struct pair_queue { uint32_t first, last; };
/* Zeroed: none. */
struct pairs { LIST(struct pair) items; LIST(struct pair_queue) queues; struct map by_key; };

/* ROW begins. *FAILED is set when out of memory. */
void pairs_begin(struct pairs *pairs, uint32_t thread, uint32_t name, uint32_t metadata, uint32_t row, bool *failed);
/* The oldest open one, or NULL; whose row ends sets ENDED. Valid until the next begins. */
struct pair *pairs_find(struct pairs *pairs, uint32_t thread, uint32_t name, uint32_t metadata);
void pairs_done(struct pairs *pairs);

#endif
