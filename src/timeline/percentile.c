/* The element in the middle, and other quantiles. */
#include <math.h>

#include "timeline/private.h"

/* Byte after byte from the highest one that is not 0 everywhere: each pass knows one more of the element wanted. Linear, whatever the numbers are. */
uint64_t nth_of(const uint64_t *items, size_t count, size_t wanted)
{
	uint64_t all = 0, known = 0, mask = 0;

	for (size_t i = 0; i < count; i++)
		all |= items[i];
	for (int shift = all ? 56 - __builtin_clzll(all) / 8 * 8 : -8; shift >= 0; shift -= 8) {
		size_t bins[256] = { 0 };
		uint64_t bin = 0;

		for (size_t i = 0; i < count; i++)
			if ((items[i] & mask) == known)
				bins[items[i] >> shift & 255]++;
		for (; wanted >= bins[bin]; bin++)
			wanted -= bins[bin];
		known |= bin << shift;
		mask |= 255ull << shift;
	}
	return known;
}

uint64_t middle_of(const uint64_t *items, size_t count)
{
	return nth_of(items, count, count / 2);
}

uint64_t percentile_rank(uint64_t count, double percent)
{
	double rank = ceil(percent * (double)count / 100);

	return rank < 1 ? 1 : rank < 9e18 ? (uint64_t)rank : UINT64_MAX;
}

uint64_t percentile_of(const uint64_t *sorted, size_t count, unsigned percent)
{
	return count ? sorted[percentile_rank(count, percent) - 1] : 0;
}
