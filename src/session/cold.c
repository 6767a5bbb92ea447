/* Before each time, as much as the second cache of a core holds is walked over. */
#include "session/cold.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/sort.h"

enum { WALKED_BYTES = 1 << 19, LINE_BYTES = 64, TIMES = 101, TIMES_LEAST = 5 };
#define LONGEST_NS 30000000ull

uint64_t cold_ns(bool (*act)(const void *context), const void *context)
{
	volatile unsigned char *walked = calloc(1, WALKED_BYTES);
	uint64_t took_ns[TIMES], end_ns = clock_monotonic_ns() + LONGEST_NS, begin_ns = 0;
	bool acted = walked != NULL;
	size_t count = 0;

	for (; count < TIMES && acted && (count < TIMES_LEAST || begin_ns < end_ns); count++) {
		for (size_t at = 0; at < WALKED_BYTES; at += LINE_BYTES)
			walked[at]++;
		begin_ns = clock_monotonic_ns();
		acted = act(context);
		took_ns[count] = clock_monotonic_ns() - begin_ns;
	}
	free((void *)walked);
	if (!acted)
		return 0;
	qsort(took_ns, count, sizeof *took_ns, sort_compare_u64);
	return took_ns[count / 2];
}
