/* Points on the stream of allocated bytes: what is calculated on threads of the program. */
#include <criterion/criterion.h>
#include <fenv.h>
#include <math.h>
#include <sys/mman.h>

#include "collector/sampled.h"

Test(collector_sampled, calculates_where_every_floating_point_exception_traps_and_leaves_no_flag)
{
	struct sampled sampled = {.random = 1};
	int64_t gaps = 0;
	uint64_t weights = 0;

	feclearexcept(FE_ALL_EXCEPT);
	feenableexcept(FE_ALL_EXCEPT);
	for (uint64_t i = 0; i < 10000; i++) {
		gaps |= sampled_gap(&sampled, i << 30 | 4097);
		weights |= sampled_weight(i, i << 30 | 4097);
	}
	fedisableexcept(FE_ALL_EXCEPT);
	cr_assert_eq(fetestexcept(FE_ALL_EXCEPT), 0);
	cr_assert_geq(gaps, 0);
	cr_assert_gt(weights, 0);
}

Test(collector_sampled, a_block_of_no_bytes_stands_for_none)
{
	cr_assert_eq(sampled_weight(0, 4096), 0);
	cr_assert_eq(sampled_weight(1 << 30, 4096), 1 << 30);
}

Test(collector_sampled, gaps_are_the_interval_on_average_whatever_way_the_program_rounds)
{
	struct sampled sampled = {.random = 7};
	const int count = 200000;
	double sum = 0;

	fesetround(FE_TOWARDZERO);
	for (int i = 0; i < count; i++)
		sum += (double)sampled_gap(&sampled, 1 << 20);
	fesetround(FE_TONEAREST);
	cr_assert_float_eq(sum / count / (1 << 20), 1, 5 / sqrt(count));
}

static void hold(struct sampled *sampled, uint64_t first, int count)
{
	for (int i = 0; i < count; i++)
		cr_assert(sampled_add(sampled, first + (uint64_t)i * 0x80010));
}

/* As mlockall does: the kernel takes nothing back, and says EINVAL. */
Test(collector_sampled, blocks_are_forgotten_where_the_program_has_locked_its_memory, .timeout = 20)
{
	static struct sampled sampled;
	uint64_t first = 0x7f0000000000;

	cr_assert(sampled_begin(&sampled, 1));
	if (mlock(sampled.table, SAMPLED_SLOTS * sizeof *sampled.table))
		cr_skip_test("this much memory may not be locked here");
	for (int turn = 0; turn < 40; turn++, first += 2000 * 0x80010ull) {
		cr_assert(sampled_begin(&sampled, 1));
		hold(&sampled, first, 2000);
		sampled_end(&sampled);
	}
	cr_assert(sampled_begin(&sampled, 1));
	cr_assert_not(sampled_remove(&sampled, first - 0x80010));
}

Test(collector_sampled, a_search_ends_where_the_program_has_written_over_all_places, .timeout = 20)
{
	static struct sampled sampled;

	cr_assert(sampled_begin(&sampled, 1));
	for (uint32_t i = 0; i < SAMPLED_SLOTS; i++)
		sampled.table[i] = 0x4242;
	cr_assert_not(sampled_remove(&sampled, 0x1000));
	cr_assert(sampled_remove(&sampled, 0x4242));
}
