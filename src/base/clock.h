/* Clocks of this machine. */
#ifndef INFERSCOPE_BASE_CLOCK_H
#define INFERSCOPE_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

uint64_t clock_monotonic_ns(void);
uint64_t clock_realtime_ns(void);
/* Seconds since 1970 by that clock: time() lags it by up to a tick (10 ms), and calls a round of 12:00:00 one of 11:59:59. */
time_t clock_wall_seconds(void);
uint64_t clock_thread_ns(void); /* CPU time of the calling thread */
/* CPU time of all threads of PID so far, exact where stat counts in clock ticks (linux/posix-timers.h: the clock's number holds the pid). False where the kernel has no such clock. */
bool clock_process_ns(pid_t pid, uint64_t *ns);
/* The CPU's time stamp counter, 0 where there is none that can be used. */
uint64_t clock_tsc(void);
/* True when the TSC is invariant and the kernel itself uses it as clock source. */
bool clock_tsc_usable(void);

/* ns = base_ns + (ticks - base_ticks) * 10^9 / ticks_per_second, in 128 bits, rounded down. For CLOCK_MONOTONIC ticks are ns. */
struct clock_map {
	uint64_t base_ticks;
	uint64_t base_ns; /* CLOCK_MONOTONIC */
	uint64_t ticks_per_second;
};

/* Measures the TSC against CLOCK_MONOTONIC over at least WAIT_NS (best of several brackets at each end). */
struct clock_map clock_calibrate(uint64_t wait_ns);
struct clock_map clock_map_monotonic(void); /* ticks are ns */
uint64_t clock_to_ns(const struct clock_map *map, uint64_t ticks);
uint64_t clock_to_ticks(const struct clock_map *map, uint64_t ns);

#endif
