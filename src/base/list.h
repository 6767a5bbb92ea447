/*
 * Growable arrays: LIST(type) declares one, list_add gives room for one more (zeroed), or NULL at LIMIT or when out of memory. list_add_or_fail tells the two
 * apart: when out of memory *FAILED is set.
 */
#ifndef INFERSCOPE_BASE_LIST_H
#define INFERSCOPE_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define LIST(type) struct { type *items; size_t count, capacity; }

/* Moves the items to where twice as many fit. When out of memory they stay, and *FAILED is set (it may be NULL). */
bool list_widen(void **items, size_t *capacity, size_t size, bool *failed);

static inline void *list_grow(void **items, size_t *count, size_t *capacity, size_t size, size_t limit, bool *failed)
{
	if (*count >= limit || (*count == *capacity && !list_widen(items, capacity, size, failed))) /* NOLINT(clang-analyzer-core.NullDereference): the caller's list */
		return NULL;
	void *item = (char *)*items + (*count)++ * size;

	/* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): there are items where the capacity says so */
	return memset(item, 0, size);
}

#define list_add_or_fail(list, limit, failed) \
	((__typeof__((list)->items))list_grow((void **)&(list)->items, &(list)->count, &(list)->capacity, sizeof *(list)->items, (limit), (failed)))
#define list_add(list, limit) list_add_or_fail(list, limit, NULL)
#define list_done(list) (free((list)->items), (list)->items = NULL, (list)->count = (list)->capacity = 0)

#endif
