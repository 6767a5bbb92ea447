/* How long things of one name took: how many, sum, extremes, mean, deviation and median. All exact, but the median of more than DURATIONS_KEPT of them: that of an even sample. */
#ifndef INFERSCOPE_REPORT_DURATIONS_H
#define INFERSCOPE_REPORT_DURATIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"

enum { DURATIONS_KEPT = 1 << 16 };

/* All zero is an empty one. */
struct durations {
	uint64_t count, total, min, max;
	double mean, squares; /* Welford's sums */
	LIST(uint64_t) kept;
};

/* False when out of memory. */
bool durations_add(struct durations *durations, uint64_t value);
/* Of a sample: the sum of squares over one less than the count. 0 of fewer than two. */
double durations_deviation(const struct durations *durations);
/* Between the two in the middle where the count is even. Sorts what is kept, so that nothing may be added afterwards. 0 of none. */
double durations_median(struct durations *durations);
bool durations_median_is_exact(const struct durations *durations);
void durations_done(struct durations *durations);

#endif
