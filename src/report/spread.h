/* How the values of one name spread: how many, their sum, extremes, mean, deviation and median. All exact, but the median of more than SPREAD_VALUES of them: that of an even sample. */
#ifndef INFERSCOPE_REPORT_SPREAD_H
#define INFERSCOPE_REPORT_SPREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"

enum { SPREAD_VALUES = 1 << 16 };

/* All zero is an empty one. */
struct spread {
	uint64_t count, total, min, max;
	double mean, squares; /* Welford's sums */
	LIST(uint64_t) kept;
};

/* False when out of memory. */
bool spread_add(struct spread *spread, uint64_t value);
/* Of a sample: the sum of squares over one less than the count. 0 of fewer than two. */
double spread_deviation(const struct spread *spread);
/* Between the two in the middle where the count is even. Sorts what is kept, so that nothing may be added afterwards. 0 of none. */
double spread_median(struct spread *spread);
bool spread_median_is_exact(const struct spread *spread);
void spread_done(struct spread *spread);

#endif
