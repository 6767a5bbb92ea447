/* Before each time, as much as the second cache of a core holds is walked over. */
#include "session/cold.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/sort.h"

enum { WALKED_BYTES = 1 << 19, LINE_BYTES = 64, TIMES = 101, TIMES_LEAST = 5 };
#define LONGEST_NS 30000000ull

uint64_t cold_clock_ns(const void *context)
{
	(void)context;
	return clock_monotonic_ns();
}

uint64_t cold_ns(bool (*act)(const void *context), uint64_t (*now_ns)(const void *context), const void *context)
{
	volatile unsigned char *walked = calloc(1, WALKED_BYTES);
	uint64_t took_ns[TIMES], end_ns = clock_monotonic_ns() + LONGEST_NS;
	bool acted = walked != NULL;
	size_t count = 0;

	for (uint64_t begin_ns; count < TIMES && acted && (count < TIMES_LEAST || clock_monotonic_ns() < end_ns); count++) {
		for (size_t at = 0; at < WALKED_BYTES; at += LINE_BYTES)
			walked[at]++;
		begin_ns = now_ns(context);
		acted = act(context);
		took_ns[count] = now_ns(context) - begin_ns;
	}
	free((void *)walked);
	if (!acted)
		return 0;
	qsort(took_ns, count, sizeof *took_ns, sort_compare_u64);
	return took_ns[count / 2];
}
