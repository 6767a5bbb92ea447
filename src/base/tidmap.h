/*
 * The threads of a process that lives in a pid namespace, by the numbers that it has for them itself: filled, sorted, then asked. Holds as many as there are, and where
 * one found no room it says so, so that nobody takes a thread that is not in it for one that has ended.
 */
#ifndef INFERSCOPE_BASE_TIDMAP_H
#define INFERSCOPE_BASE_TIDMAP_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/list.h"

struct tid_pair { pid_t inner, outer; };
struct tidmap { LIST(struct tid_pair) pairs; bool failed; /* out of memory since it was empty */ };

/* Empties it; it keeps its room. */
void tidmap_clear(struct tidmap *map);
void tidmap_add(struct tidmap *map, pid_t inner, pid_t outer);
/* After the last one was added. */
void tidmap_sort(struct tidmap *map);
/* 0: it is not there. */
pid_t tidmap_outer(const struct tidmap *map, pid_t inner);
void tidmap_done(struct tidmap *map);

#endif
