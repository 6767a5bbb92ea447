/* A merge sort that takes the runs which are in order already as they are: what profilers write is sorted, or few sorted parts. Stable. Inline, so that COMPARE is too. */
#ifndef INFERSCOPE_BASE_SORT_H
#define INFERSCOPE_BASE_SORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* For qsort() of numbers. */
static inline int sort_compare_u64(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return a < b ? -1 : a > b;
}

typedef int (*sort_compare)(const void *left, const void *right, const void *context);

static inline size_t sort_run_end(const char *items, size_t first, size_t count, size_t size, sort_compare compare, const void *context)
{
	size_t at = first + 1;

	while (at < count && compare(items + (at - 1) * size, items + at * size, context) <= 0)
		at++;
	return at < count ? at : count;
}

/* Merges each two neighbouring runs of FROM into TO. Returns how many runs are left. */
static inline size_t sort_merge_runs(const char *from, size_t count, size_t size, char *to, sort_compare compare, const void *context)
{
	size_t runs = 0;

	for (size_t first = 0, middle, end; first < count; first = end, runs++) {
		middle = sort_run_end(from, first, count, size, compare, context);
		end = middle < count ? sort_run_end(from, middle, count, size, compare, context) : count;
		for (size_t at = first, left = first, right = middle; at < end; at++) {
			bool take_left = right == end || (left < middle && compare(from + left * size, from + right * size, context) <= 0);

			memcpy(to + at * size, from + (take_left ? left++ : right++) * size, size);
		}
	}
	return runs;
}

/* False when out of memory: room for all items once more is needed, unless they are in order. */
static inline bool sort_runs(void *items, size_t count, size_t size, sort_compare compare, const void *context)
{
	char *from = items, *other, *to;

	if (!count || sort_run_end(items, 0, count, size, compare, context) == count)
		return true;
	other = to = malloc(count * size);
	if (!other)
		return false;
	for (size_t runs = count; runs > 1;) {
		char *sorted = to;

		runs = sort_merge_runs(from, count, size, to, compare, context);
		to = from;
		from = sorted;
	}
	if (from != items)
		memcpy(items, from, count * size);
	free(other);
	return true;
}

#endif
