/*
 * Binary search in what is sorted: search_first(COUNT, AT, BEFORE) is the first index for which the expression BEFORE, of the index called AT, does not
 * hold; COUNT when it holds for all. It holds for indices below that one and for no others. BEFORE is evaluated about log2(COUNT) times.
 */
#ifndef INFERSCOPE_BASE_SEARCH_H
#define INFERSCOPE_BASE_SEARCH_H

#include <stddef.h>

#define search_first(count, at, before) \
	__extension__({ \
		size_t search_low = 0, search_high = (count); \
		while (search_low < search_high) { \
			size_t at = search_low + (search_high - search_low) / 2; \
			if (before) \
				search_low = at + 1; \
			else \
				search_high = at; \
		} \
		search_low; \
	})

#endif
