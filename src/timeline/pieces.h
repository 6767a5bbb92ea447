/* Stretches of time, and arithmetic on sets of them. A melted set is sorted, its stretches neither overlap nor touch, and each knows how long those before it are. */
#ifndef INFERSCOPE_TIMELINE_PIECES_H
#define INFERSCOPE_TIMELINE_PIECES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"

struct piece { uint64_t start_ns, end_ns, before_ns; /* melted: of all before it */ };
struct pieces { struct piece *items; size_t count, capacity; };

/* Empty stretches are no stretches. False when there is no room. */
bool pieces_add(struct pieces *pieces, uint64_t start_ns, uint64_t end_ns, size_t limit);
void pieces_melt(struct pieces *pieces);
/* Of melted sets: how long all of it is, those that have a part in [start, end) are, and their parts in it are. */
uint64_t pieces_length(const struct pieces *pieces);
uint64_t pieces_touching(const struct pieces *pieces, uint64_t start_ns, uint64_t end_ns);
uint64_t pieces_within(const struct pieces *pieces, uint64_t start_ns, uint64_t end_ns);
/* The first one that ends after AT, or count. */
size_t pieces_after(const struct pieces *pieces, uint64_t at_ns);
/* What is in FROM and not in LESS, both melted, as a melted set that is the caller's. False when there is no room. */
bool pieces_subtract(const struct pieces *from, const struct pieces *less, struct pieces *out);
/* Adds to OUT what is in both, which are melted. False when there is no room. */
bool pieces_intersect(const struct pieces *a, const struct pieces *b, struct pieces *out);

#endif
