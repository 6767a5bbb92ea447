/*
 * The device's clock in terms of CLOCK_MONOTONIC. Records are stamped by a clock of CUPTI's choice: CLOCK_REALTIME as a rule, which is
 * slewed and set by people, or whatever clock another tool registered. So it is compared with ours every 250 ms, and converted piece
 * by piece between comparisons; the bound is what the comparisons themselves leave open.
 */
#ifndef INFERSCOPE_SESSION_GPU_CLOCK_H
#define INFERSCOPE_SESSION_GPU_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/list.h"

struct gpu_point { uint64_t gpu, cpu_ns, width; bool step; /* CLOCK_REALTIME was set between it and the one before */ };

struct gpu_clock {
	LIST(struct gpu_point) points;
	uint64_t comparisons; /* that were taken; the last ones are in points */
	uint64_t outliers; /* comparisons left out, because something came between */
	uint64_t steps;    /* how often the clock was set */
	uint64_t bound_ns; /* of the conversion */
	uint32_t rejected; /* in a row */
	bool foreign;      /* not CLOCK_REALTIME: another tool's clock */
};

/* One comparison: the device's clock BEFORE and AFTER CPU_NS, when CLOCK_REALTIME was REAL_NS. */
void gpu_clock_add(struct gpu_clock *clock, uint64_t before, uint64_t cpu_ns, uint64_t real_ns, uint64_t after);
/* The conversion that is good at GPU; false when there was no comparison yet. Ticks are the device's. */
bool gpu_clock_at(const struct gpu_clock *clock, uint64_t gpu, struct clock_map *out);
/* Up to where conversions are final. */
uint64_t gpu_clock_reached(const struct gpu_clock *clock);
/* Does the conversion hold what it must? Two comparisons at least, and a foreign clock has to be even. */
bool gpu_clock_good(const struct gpu_clock *clock);
void gpu_clock_done(struct gpu_clock *clock);

#endif
