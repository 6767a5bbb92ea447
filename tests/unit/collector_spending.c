/* What samples of allocations may take of the budget: what everything else leaves. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "collector/collector.h"

#define MS 1000000ull

static const struct spending none;

/* 5 %, of which a fifth is never theirs: 10 ms in a cycle of 250. */
static void begin(uint32_t samples_ppm)
{
	the.page = calloc(1, PAGE_BYTES);
	cr_assert_not_null(the.page);
	the.settings.max_overhead_ppm = 50000;
	the.page->samples_ppm = samples_ppm;
}

static enum spent judge(struct spending *spending, uint64_t passing_ns, uint64_t telling_ns, const struct spending *other)
{
	spending->cpu_ns = process_cpu_ns();
	spending->passing_ns = passing_ns;
	spending->telling_ns = telling_ns;
	return spending_judge(spending, other, NULL);
}

Test(collector_spending, is_looked_at_when_a_cycles_share_is_spent)
{
	struct spending spending = { .interval = 1000 };

	begin(0);
	cr_assert_eq(judge(&spending, 0, 9 * MS, &none), SPENT_FINE);
	cr_assert_eq(judge(&spending, 0, 11 * MS, &none), SPENT_FEWER);
	cr_assert_eq(spending.interval, 2000);
}

Test(collector_spending, leaves_what_the_others_took)
{
	struct spending spending = { .interval = 1000 };
	const struct spending other = { .taken_ppm = 20000 };

	begin(0);
	cr_assert_eq(judge(&spending, 0, 4 * MS, &other), SPENT_FINE);
	cr_assert_eq(judge(&spending, 0, 6 * MS, &other), SPENT_FEWER, "beside the other sampler's 2 %% there are 2 %%");
	the.page->samples_ppm = 20000;
	cr_assert_eq(judge(&spending, 0, 2 * MS, &other), SPENT_FINE);
	cr_assert_eq(judge(&spending, 0, 4 * MS, &other), SPENT_FEWER, "a quarter of the budget is left whatever the others take");
}

Test(collector_spending, is_too_much_when_passing_on_is_too_dear_twice_in_a_row)
{
	struct spending spending = { .interval = 1000 };

	begin(0);
	cr_assert_eq(judge(&spending, 11 * MS, 0, &none), SPENT_FINE);
	cr_assert_eq(judge(&spending, 0, 11 * MS, &none), SPENT_FEWER);
	cr_assert_eq(judge(&spending, 11 * MS, 0, &none), SPENT_FINE);
	cr_assert_eq(spending.taken_ppm, 1000000);
	cr_assert_eq(judge(&spending, 11 * MS, 0, &none), SPENT_TOO_MUCH);
	cr_assert_eq(spending.taken_ppm, 0, "it takes nothing from here on");
}
