/* Clocks and their conversion. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

Test(clock, monotonic_ticks_are_ns)
{
	struct clock_map map = clock_map_monotonic();

	cr_assert_eq(clock_to_ns(&map, 123456789), 123456789u);
	cr_assert_eq(clock_to_ticks(&map, 123456789), 123456789u);
}

Test(clock, converts_in_128_bits_and_rounds_down)
{
	struct clock_map map = { .base_ticks = 1000, .base_ns = 5000, .ticks_per_second = 3000000000ull };

	cr_assert_eq(clock_to_ns(&map, 1000), 5000u);
	cr_assert_eq(clock_to_ns(&map, 1001), 5000u);
	cr_assert_eq(clock_to_ns(&map, 1003), 5001u);
	cr_assert_eq(clock_to_ns(&map, 999), 4999u);
	cr_assert_eq(clock_to_ns(&map, 1000 + 3000000000ull * 1000000), 5000 + 1000000000ull * 1000000);
}

/* A day at 5 GHz is 2^48 ticks, and times 10^9 far beyond 64 bits. */
Test(clock, loses_nothing_in_a_day_nor_in_a_year)
{
	const uint64_t rates[] = { 1000000, 999999937, 1000000000, 2100000000, 2893202019, 5000000000ull }, days[] = { 1, 30, 365 };

	for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
		for (size_t j = 0; j < sizeof days / sizeof *days; j++) {
			struct clock_map map = { .base_ticks = 1ull << 52, .base_ns = 1ull << 50, .ticks_per_second = rates[i] };
			uint64_t seconds = days[j] * 86400, later = map.base_ticks + seconds * rates[i];

			cr_assert_eq(clock_to_ns(&map, later), map.base_ns + seconds * 1000000000);
			cr_assert_eq(clock_to_ticks(&map, map.base_ns + seconds * 1000000000), later);
			cr_assert_leq(clock_to_ns(&map, later), clock_to_ns(&map, later + 1), "time does not run backwards");
			cr_assert_leq(clock_to_ns(&map, later - 1), clock_to_ns(&map, later));
		}
}

Test(clock, stays_inside_64_bits)
{
	struct clock_map map = { .base_ticks = 1ull << 40, .base_ns = 10, .ticks_per_second = 1 };
	struct clock_map broken = { .base_ticks = 5, .base_ns = 77, .ticks_per_second = 0 };

	cr_assert_eq(clock_to_ns(&map, 0), 0u);
	cr_assert_eq(clock_to_ns(&map, UINT64_MAX), UINT64_MAX);
	cr_assert_eq(clock_to_ns(&broken, 99), 77u);
}

Test(clock, calibration_agrees_with_the_kernel)
{
	struct clock_map map;
	int64_t difference;
	int attempt;

	if (!clock_tsc_usable())
		cr_skip_test("no usable time stamp counter here");
	for (attempt = 0; attempt < 5; attempt++) { /* a busy machine may preempt between the two readings */
		map = clock_calibrate(20000000);
		difference = (int64_t)(clock_to_ns(&map, clock_tsc()) - clock_monotonic_ns());
		if (llabs(difference) < 20000)
			return;
	}
	cr_assert_fail("20 ms after calibration the clocks differ by %lld ns", (long long)difference);
}

Test(clock, of_a_process_counts_its_cpu_time)
{
	uint64_t before, after;
	struct timespec own;

	cr_assert(clock_process_ns(getpid(), &before));
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &own);
	cr_assert(clock_process_ns(getpid(), &after));
	cr_assert_leq(before, (uint64_t)own.tv_sec * 1000000000 + (uint64_t)own.tv_nsec);
	cr_assert_geq(after, (uint64_t)own.tv_sec * 1000000000 + (uint64_t)own.tv_nsec);
	cr_assert_not(clock_process_ns(1 << 22, &after), "PID_MAX_LIMIT: no process has it");
}
