/* What samples of allocations may take of the budget: what everything else leaves. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collector/collector.h"

#define MS 1000000ull

static const struct spending none;

/* 5 %, of which a fifth is never theirs: 10 ms in a cycle of 250. */
static void begin(uint32_t samples_ppm)
{
	the.page = calloc(1, PAGE_BYTES);
	cr_assert_not_null(the.page);
	the.settings.max_overhead_ppm = 50000;
	the.settings.ticks_per_second = 1000000000;
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
	cr_assert_eq(judge(&spending, 0, 700000, &other), SPENT_FINE);
	cr_assert_eq(judge(&spending, 0, 900000, &other), SPENT_FEWER, "a sixteenth of the budget is left whatever the others take");
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
	cr_assert_leq(spending.taken_ppm, 40000, "what rests takes what it may, on average, not %u ppm", spending.taken_ppm);
	spending_ends(&spending);
	cr_assert_eq(spending.taken_ppm, 0);
}

/* process_cpu_ns() of a test that does nothing: hardly anything is allowed. */
Test(collector_spending, owes_what_it_spent_beyond_what_is_allowed)
{
	struct spending spending = { .interval = 1000 };
	uint64_t owed;

	begin(0);
	spending_begin(&spending);
	judge(&spending, 11 * MS, 0, &none);
	owed = spending.debt_ns;
	cr_assert(owed > 10 * MS && owed <= 11 * MS && spending.debt_ns + spending.allowed_ns == 11 * MS, "%llu, %llu", (unsigned long long)owed, (unsigned long long)spending.allowed_ns);
	spending_begin(&spending);
	cr_assert_eq(spending.debt_ns, owed, "a pause alone pays nothing");
	spending.debt_ns = MS;
	spending.telling_ns = 21 * MS / 2;
	while (process_cpu_ns() - spending.cpu_ns < 300 * MS) /* 12 ms are allowed */
		;
	spending_judge(&spending, &none, NULL);
	cr_assert_eq(spending.debt_ns, 0, "made up for, and nothing saved: %llu", (unsigned long long)spending.debt_ns);
}

static uint64_t slow_ns;

/* As in a process of thousands of threads. */
int clock_gettime(clockid_t id, struct timespec *now)
{
	struct timespec at;
	uint64_t end;

	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &at);
	end = (uint64_t)at.tv_sec * 1000000000u + (uint64_t)at.tv_nsec + (id == CLOCK_PROCESS_CPUTIME_ID ? slow_ns : 0);
	while ((uint64_t)at.tv_sec * 1000000000u + (uint64_t)at.tv_nsec < end)
		syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &at);
	return (int)syscall(SYS_clock_gettime, id, now);
}

static void begin_with_a_clock_of(uint64_t ns)
{
	static struct lane lanes[1];

	slow_ns = ns;
	begin(0);
	the.lanes.table = lanes;
	the.cost_ps = 10000;
}

Test(collector_spending, a_clock_that_is_dear_to_ask_is_paid_for_and_asked_rarely)
{
	uint64_t now;
	int64_t unpaid;

	begin_with_a_clock_of(2 * MS);
	now = ticks_now();
	the.earned_cpu_ns = process_cpu_ns();
	budget_earn(now + 1);
	unpaid = the.unpaid;
	cr_assert_geq(unpaid, (int64_t)(2 * MS * 1000 / the.cost_ps) * 9 / 10, "%ld tokens are to be paid", (long)unpaid);
	cr_assert_geq(the.page->lanes[LANE_META_SLOT].cost_ticks, 2 * MS);
	cr_assert_not(cpu_clock_is_due(&the.cpu_clock, now + 99 * MS));
}

Test(collector_spending, a_thread_that_lost_its_CPU_once_makes_no_dear_clock)
{
	struct cpu_clock clock = {0};
	uint64_t cost_ns;

	begin_with_a_clock_of(0);
	cpu_clock_ask(&clock, 1000, &cost_ns);
	slow_ns = 20 * MS;
	cpu_clock_ask(&clock, 1000, &cost_ns);
	cr_assert_lt(cost_ns, 20 * MS);
	cpu_clock_ask(&clock, 1000, &cost_ns);
	cr_assert_geq(cost_ns, 20 * MS);
	cr_assert_not(cpu_clock_is_due(&clock, 1000 + 999 * MS));
}
