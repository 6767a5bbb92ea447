/* The element in the middle, and nearest ranks. */
#include <criterion/criterion.h>

#include "timeline/private.h"

static int compare_numbers(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return a < b ? -1 : a > b;
}

/* SPREAD: how many bits they have. */
static void expect_middle(size_t count, unsigned spread)
{
	uint64_t items[1000], sorted[1000], random = count * 31 + spread;

	for (size_t i = 0; i < count; i++) {
		random = random * 6364136223846793005u + 1442695040888963407u;
		items[i] = sorted[i] = spread ? (random ^ random >> 31) >> (64 - spread) : 0;
	}
	/* cppcheck-suppress uninitvar ; as many are set */
	qsort(sorted, count, sizeof *sorted, compare_numbers);
	cr_assert_eq(middle_of(items, count), sorted[count / 2], "of %zu numbers of %u bits", count, spread);
	for (size_t i = 0; i < count; i += count / 7 + 1)
		cr_assert_eq(nth_of(items, count, i), sorted[i], "number %zu of %zu of %u bits", i, count, spread);
}

Test(timeline_percentile, the_middle_is_that_of_the_sorted_numbers)
{
	for (size_t count = 1; count <= 1000; count = count * 3 / 2 + 1)
		for (unsigned spread = 0; spread <= 64; spread += 4)
			expect_middle(count, spread);
	cr_assert_eq(middle_of(NULL, 0), 0u);
}

Test(timeline_percentile, a_rank_is_the_first_that_so_many_per_cent_do_not_exceed)
{
	const uint64_t sorted[] = { 10, 20, 30, 40, 50, 60, 70, 80, 90, 100 };

	cr_assert_eq(percentile_of(sorted, 10, 50), 50u);
	cr_assert_eq(percentile_of(sorted, 10, 95), 100u);
	cr_assert_eq(percentile_of(sorted, 10, 0), 10u);
	cr_assert_eq(percentile_of(sorted, 1, 99), 10u);
	cr_assert_eq(percentile_of(sorted, 0, 50), 0u);
	cr_assert_eq(percentile_rank(100, 99), 99u);
	cr_assert_eq(percentile_rank(20, 95), 19u);
	cr_assert_gt(percentile_rank(10, 101), 10u);
}
