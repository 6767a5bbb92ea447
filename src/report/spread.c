#include "report/spread.h"

#include <math.h>

#include "base/map.h"

/* Of the n-th value, SPREAD_VALUES in n are kept, each in the place of an older one; which, is decided by n alone, so that the same trace gives the same report. */
static bool keep(struct spread *spread, uint64_t value)
{
	uint64_t *slot;

	if (spread->kept.count == SPREAD_VALUES) {
		uint64_t place = mix64(spread->count) % spread->count;

		if (place < SPREAD_VALUES)
			spread->kept.items[place] = value;
		return true;
	}
	slot = list_add(&spread->kept, SPREAD_VALUES);
	if (slot)
		*slot = value;
	return slot != NULL;
}

bool spread_add(struct spread *spread, uint64_t value)
{
	double before = spread->mean;

	if (!spread->count || value < spread->min)
		spread->min = value;
	if (value > spread->max)
		spread->max = value;
	spread->count++;
	spread->total += value;
	spread->mean += ((double)value - before) / (double)spread->count;
	spread->squares += ((double)value - before) * ((double)value - spread->mean);
	return keep(spread, value);
}

double spread_deviation(const struct spread *spread)
{
	return spread->count > 1 ? sqrt(spread->squares / (double)(spread->count - 1)) : 0;
}

static int compare(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return a < b ? -1 : a > b;
}

double spread_median(struct spread *spread)
{
	size_t count = spread->kept.count;

	if (!count)
		return 0;
	qsort(spread->kept.items, count, sizeof *spread->kept.items, compare);
	return ((double)spread->kept.items[(count - 1) / 2] + (double)spread->kept.items[count / 2]) / 2;
}

bool spread_median_is_exact(const struct spread *spread)
{
	return spread->count <= SPREAD_VALUES;
}

void spread_done(struct spread *spread)
{
	list_done(&spread->kept);
}
