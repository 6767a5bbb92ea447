/* The element in the middle, and other quantiles. */
#include "timeline/private.h"

static int compare_numbers(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return a < b ? -1 : a > b;
}

uint64_t middle_of(uint64_t *items, size_t count)
{
	if (!count)
		return 0;
	qsort(items, count, sizeof *items, compare_numbers);
	return items[count / 2];
}

uint64_t percentile_of(const uint64_t *sorted, size_t count, unsigned percent)
{
	/* The nearest rank: at least PERCENT of all are no larger. */
	return count ? sorted[(count * percent + 99) / 100 - 1] : 0;
}
