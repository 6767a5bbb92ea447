/* How often the sampler looks. */
#include <criterion/criterion.h>

#include "session/pace.h"

enum { MS = 1000000 };

Test(pace, is_what_was_asked_for_while_looks_cost_little)
{
	struct pace pace;

	pace_init(&pace, 100, 50000, 7);
	for (int look = 0; look < 100; look++)
		pace_looked(&pace, 100000, 1, 30000);
	cr_assert_eq(pace_every_ns(&pace), 10 * MS);
}

Test(pace, leaves_twenty_times_what_a_look_costs_and_at_high_rates_four_times)
{
	struct pace slow, fast;

	pace_init(&slow, 100, 0, 7);
	pace_init(&fast, 1000, 0, 7);
	for (int look = 0; look < 1000; look++) {
		pace_looked(&slow, 2 * MS, 0, 0);
		pace_looked(&fast, 2 * MS, 0, 0);
	}
	cr_assert(pace_every_ns(&slow) > 39 * MS && pace_every_ns(&slow) <= 40 * MS);
	cr_assert(pace_every_ns(&fast) > 7 * MS && pace_every_ns(&fast) <= 8 * MS);
}

Test(pace, shares_what_looks_may_take_with_others)
{
	struct pace pace;

	pace_init(&pace, 100, 0, 7);
	pace_share(&pace, 8);
	for (int look = 0; look < 1000; look++)
		pace_looked(&pace, MS / 4, 0, 0);
	cr_assert(pace_every_ns(&pace) > 39 * MS && pace_every_ns(&pace) <= 40 * MS, "%llu ns", (unsigned long long)pace_every_ns(&pace));
}

Test(pace, is_never_slower_than_once_a_second)
{
	struct pace pace;

	pace_init(&pace, 100, 1000, 7);
	for (int look = 0; look < 1000; look++)
		pace_looked(&pace, 1000ull * MS, 1, 1000ull * MS);
	cr_assert_eq(pace_every_ns(&pace), 1000ull * MS);
}

Test(pace, gives_way_where_held_threads_would_stand_still_for_more_than_the_budget)
{
	struct pace pace;

	pace_init(&pace, 1000, 10000, 7);
	pace_cpus(&pace, 4);
	for (int look = 0; look < 1000; look++)
		pace_looked(&pace, 1000, 4, 4 * 30000);
	cr_assert(pace_every_ns(&pace) > 2900000 && pace_every_ns(&pace) <= 3 * MS, "30 us are 1 %% of 3 ms: %llu ns", (unsigned long long)pace_every_ns(&pace));
	pace.max_overhead_ppm = 0;
	cr_assert_eq(pace_every_ns(&pace), MS, "without a budget it does not");
}

Test(pace, counts_all_threads_that_a_look_holds_together)
{
	struct pace pace;

	pace_init(&pace, 100, 50000, 7);
	pace_cpus(&pace, 2);
	cr_assert_eq(pace_stand_most_ns(&pace), 100ull * MS, "5 %% of two CPUs for the longest interval");
	for (int look = 0; look < 1000; look++)
		pace_looked(&pace, 1000, 400, 400 * 30000);
	cr_assert(pace_every_ns(&pace) > 119 * MS && pace_every_ns(&pace) <= 120 * MS, "12 ms are 5 %% of 240, on two CPUs of 120 ms: %llu ns", (unsigned long long)pace_every_ns(&pace));
	pace.max_overhead_ppm = 0;
	cr_assert_eq(pace_stand_most_ns(&pace), UINT64_MAX);
}

Test(pace, remembers_what_a_hold_costs_over_looks_without_one)
{
	struct pace pace;

	pace_init(&pace, 1000, 10000, 7);
	pace.hold_ns = 30000;
	for (int look = 0; look < 1000; look++)
		pace_looked(&pace, 1000, 0, 0);
	cr_assert_eq(pace_every_ns(&pace), 3 * MS);
}

Test(pace, is_jittered_by_half_around_its_mean)
{
	uint64_t least_ns = UINT64_MAX, most_ns = 0, sum_ns = 0;
	struct pace pace;

	pace_init(&pace, 100, 0, 7);
	for (int look = 0; look < 10000; look++) {
		uint64_t next_ns = pace_next_ns(&pace);

		least_ns = next_ns < least_ns ? next_ns : least_ns;
		most_ns = next_ns > most_ns ? next_ns : most_ns;
		sum_ns += next_ns;
	}
	cr_assert(least_ns >= 5 * MS && least_ns < 6 * MS && most_ns > 14 * MS && most_ns <= 15 * MS);
	cr_assert(sum_ns / 10000 > 9800000 && sum_ns / 10000 < 10200000);
}

Test(pace, of_perf_samples_is_what_the_budget_pays_for)
{
	struct pace pace;

	pace_init(&pace, 1000, 1000, 7);
	cr_assert(pace_perf_costs(&pace, 10000));
	cr_assert_eq(pace.perf_rate_hz, 100, "10 us are 0.1 %% of 10 ms");
	cr_assert_not(pace_perf_costs(&pace, 5000), "never higher again");
	pace_init(&pace, 1000, 0, 7);
	cr_assert_not(pace_perf_costs(&pace, 10000), "without a budget all are");
}

Test(pace, parts_of_a_period_stand_for_all_of_it)
{
	double sum_ns = 0, before_ns = 0;
	struct pace pace;

	pace_init(&pace, 100, 0, 7);
	for (uint32_t part = 0; part < PACE_PARTS; part++) {
		double period_ns = 1e9 / pace_part_hz(&pace, part);

		cr_expect(period_ns > before_ns + 1.0 * MS && period_ns < 9.0 * MS, "%f", period_ns);
		sum_ns += before_ns = period_ns;
	}
	cr_expect_float_eq(sum_ns / PACE_PARTS, 5.0 * MS, 0.1 * MS, "half a period is left on average");
}

Test(pace, of_perf_samples_halves_when_they_cannot_be_told_and_has_an_end)
{
	struct pace pace;

	pace_init(&pace, 50, 0, 7);
	cr_assert(pace_perf_overrun(&pace));
	cr_assert_eq(pace.perf_rate_hz, 25);
	cr_assert(pace_perf_overrun(&pace));
	cr_assert(pace_perf_overrun(&pace));
	cr_assert_eq(pace.perf_rate_hz, PACE_PERF_HZ_LEAST);
	cr_assert_not(pace_perf_overrun(&pace));
}
