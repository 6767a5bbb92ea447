/* The element in the middle, and other quantiles. */
#include <math.h>

#include "timeline/private.h"

/* Byte after byte from the highest one that is not 0 everywhere: keeps those that share it with the element wanted. Linear, whatever the numbers are. */
uint64_t middle_of(uint64_t *items, size_t count)
{
	size_t wanted = count / 2;
	uint64_t all = 0;

	for (size_t i = 0; i < count; i++)
		all |= items[i];
	for (int shift = all ? 56 - __builtin_clzll(all) / 8 * 8 : -8; shift >= 0 && count > 1; shift -= 8) {
		size_t bins[256] = { 0 }, kept = 0;
		unsigned bin = 0;

		for (size_t i = 0; i < count; i++)
			bins[items[i] >> shift & 255]++;
		for (; wanted >= bins[bin]; bin++)
			wanted -= bins[bin];
		for (size_t i = 0; i < count; i++)
			if ((items[i] >> shift & 255) == bin)
				items[kept++] = items[i];
		count = kept;
	}
	return count ? items[0] : 0;
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
