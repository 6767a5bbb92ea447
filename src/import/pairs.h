/*
 * Scopes whose begins and ends come apart: by their id; without one an end belongs to the oldest open scope of its thread with its name and metadata, else to the oldest with its name. Those of
 * concurrent tasks overlap and end in any order. For this layer alone.
 */
#ifndef INFERSCOPE_IMPORT_PAIRS_H
#define INFERSCOPE_IMPORT_PAIRS_H

#include "base/list.h"
#include "base/map.h"

/* What an end is found by: [0] thread and id, or without an id thread, name and metadata; [1] thread and name, of those without. All begin with the oldest; numbers of items, + 1. */
enum { PAIR_WAYS = 2 };
struct pair_names { uint32_t thread, name, metadata; int64_t id; /* 0: none */ };
struct pair { uint32_t row, next[PAIR_WAYS]; bool ended; };
struct pair_queue { uint32_t first, last; };
/* Zeroed: none. */
struct pairs { LIST(struct pair) items; LIST(struct pair_queue) queues; struct map by_key; };

/* ROW begins. *FAILED is set when out of memory. */
void pairs_begin(struct pairs *pairs, const struct pair_names *names, uint32_t row, bool *failed);
/* The oldest open one, or NULL; whose row ends sets ENDED. Valid until the next begins. */
struct pair *pairs_find(struct pairs *pairs, const struct pair_names *names);
void pairs_done(struct pairs *pairs);

#endif
