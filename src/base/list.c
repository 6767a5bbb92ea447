/* How a list grows: rare, and so apart from what list_add puts in line. */
#include "base/list.h"

bool list_widen(void **items, size_t *capacity, size_t size, bool *failed)
{
	size_t bigger = *capacity ? *capacity * 2 : 16;
	void *moved = realloc(*items, bigger * size);

	if (!moved) {
		if (failed)
			*failed = true;
		return false;
	}
	*items = moved;
	*capacity = bigger;
	return true;
}
