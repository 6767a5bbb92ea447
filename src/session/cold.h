/*
 * How long something takes a program that does other things between: their code and data have pushed it out of the processor's caches. Calibration in a tight loop
 * finds a half or a third of that (docs/performance.md).
 */
#ifndef INFERSCOPE_SESSION_COLD_H
#define INFERSCOPE_SESSION_COLD_H

#include <stdbool.h>
#include <stdint.h>

/* The middle of a hundred times of ACT by NOW_NS, in ns, or of as many as 30 ms hold, five at least. 0: ACT gave back false, or there is no memory. */
uint64_t cold_ns(bool (*act)(const void *context), uint64_t (*now_ns)(const void *context), const void *context);
/* Time as it passes, for NOW_NS. */
uint64_t cold_clock_ns(const void *context);

#endif
