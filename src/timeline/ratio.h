/* The ratio of two rates from pairs of turns, one with and one without something, and how sure it is. */
#ifndef INFERSCOPE_TIMELINE_RATIO_H
#define INFERSCOPE_TIMELINE_RATIO_H

#include <stdbool.h>
#include <stddef.h>

enum { RATIO_PAIRS_LEAST = 20 };

/* Work done and CPU time used in both turns, in any unit. */
struct ratio_pair { double work_on, cpu_on, work_off, cpu_off; };
struct ratio { double value, low, high; /* low to high: 95 % */ };

/* Work per CPU time with, to that without: of the sums, so that turns in which little ended weigh little. Its interval is that of a bootstrap over pairs.
 * The same pairs give the same result. False, and *out untouched: fewer than RATIO_PAIRS_LEAST, or nothing was done. */
bool ratio_of_pairs(const struct ratio_pair *pairs, size_t count, struct ratio *out);

#endif
