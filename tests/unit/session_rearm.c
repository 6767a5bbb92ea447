/* When a throttled program without a thread of ours is entered again. */
#include <criterion/criterion.h>

#include "session/rearm.h"

#define MS 1000000ull

/* Looks every 100 ms from FROM to END, wanted or not. How often it is entered; *FIRST: when first. */
static int entries(struct rearm *rearm, bool wanted, uint64_t from_ms, uint64_t end_ms, uint64_t *first_ms)
{
	int count = 0;

	for (uint64_t now_ms = from_ms; now_ms < end_ms; now_ms += 100)
		if (rearm_due(rearm, wanted, now_ms * MS) && !count++)
			*first_ms = now_ms;
	return count;
}

Test(rearm, for_as_long_as_it_is_wanted_again_and_again)
{
	struct rearm rearm = { 0 };
	uint64_t first_ms = 0;

	cr_assert_eq(entries(&rearm, true, 5000, 30000, &first_ms), 3, "at 1, 11 and 21 s");
	cr_assert_eq(first_ms, 6000, "after a second, in which something is earned");
}

Test(rearm, not_when_a_call_of_the_program_has_turned_them_on)
{
	struct rearm rearm = { 0 };
	uint64_t first_ms = 0;

	cr_assert_eq(entries(&rearm, true, 5000, 5900, &first_ms), 0);
	cr_assert_eq(entries(&rearm, false, 5900, 6000, &first_ms), 0);
	cr_assert_eq(entries(&rearm, true, 6000, 8000, &first_ms), 1);
	cr_assert_eq(first_ms, 7000, "the second begins anew");
}

Test(rearm, at_most_once_in_ten_seconds)
{
	struct rearm rearm = { 0 };
	uint64_t first_ms = 0, again_ms = 0;

	cr_assert_eq(entries(&rearm, true, 5000, 6100, &first_ms), 1);
	cr_assert_not(rearm_due(&rearm, false, 6100 * MS)); /* a window, which closes at once */
	cr_assert_eq(entries(&rearm, true, 6200, 20000, &again_ms), 1);
	cr_assert_eq(again_ms, first_ms + 10000);
}
