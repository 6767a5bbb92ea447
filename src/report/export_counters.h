/* The same counters in every export that has such. */
#ifndef INFERSCOPE_REPORT_EXPORT_COUNTERS_H
#define INFERSCOPE_REPORT_EXPORT_COUNTERS_H

#include "timeline/timeline.h"

struct counter_sink {
	void *context;
	void (*begin)(void *context, const char *name);                  /* a counter; what follows is its values */
	void (*point)(void *context, uint64_t at_ns, double value);      /* from there on */
};
/* What grew stands at the beginning of the time in which it did; what never changed of it is left out. */
void export_counters(const struct timeline *timeline, const struct counter_sink *sink);

#endif
