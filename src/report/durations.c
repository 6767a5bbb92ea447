#include "report/durations.h"

#include <math.h>

#include "base/map.h"
#include "base/sort.h"

/* Of the n-th value, DURATIONS_KEPT in n are kept, each in the place of an older one; which, is decided by n alone, so that the same trace gives the same report. */
static bool keep(struct durations *durations, uint64_t value)
{
	uint64_t *slot;

	if (durations->kept.count == DURATIONS_KEPT) {
		uint64_t place = mix64(durations->count) % durations->count;

		if (place < DURATIONS_KEPT)
			durations->kept.items[place] = value;
		return true;
	}
	slot = list_add(&durations->kept, DURATIONS_KEPT);
	if (slot)
		*slot = value;
	return slot != NULL;
}

bool durations_add(struct durations *durations, uint64_t value)
{
	double before = durations->mean;

	if (!durations->count || value < durations->min)
		durations->min = value;
	if (value > durations->max)
		durations->max = value;
	durations->count++;
	durations->total += value;
	durations->mean += ((double)value - before) / (double)durations->count;
	durations->squares += ((double)value - before) * ((double)value - durations->mean);
	return keep(durations, value);
}

double durations_deviation(const struct durations *durations)
{
	return durations->count > 1 ? sqrt(durations->squares / (double)(durations->count - 1)) : 0;
}

double durations_median(struct durations *durations)
{
	size_t count = durations->kept.count;

	if (!count)
		return 0;
	qsort(durations->kept.items, count, sizeof *durations->kept.items, sort_compare_u64);
	return ((double)durations->kept.items[(count - 1) / 2] + (double)durations->kept.items[count / 2]) / 2;
}

bool durations_median_is_exact(const struct durations *durations)
{
	return durations->count <= DURATIONS_KEPT;
}

void durations_done(struct durations *durations)
{
	list_done(&durations->kept);
}
