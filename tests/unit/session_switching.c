/* What a switch of threads takes: who is measured, and with what. */
#include <criterion/criterion.h>
#include <sched.h>
#include <stdint.h>
#include <unistd.h>

#include "session/switching.h"

struct rounds { int added, removed, refused /* a mask */, wrong; };

static bool add(void *context, const pid_t tids[2], int round)
{
	struct rounds *rounds = context;
	cpu_set_t first, second;

	rounds->wrong += round != rounds->added || tids[0] == tids[1] || sched_getaffinity(tids[0], sizeof first, &first) < 0 || sched_getaffinity(tids[1], sizeof second, &second) < 0 ||
	                 CPU_COUNT(&first) != 1 || !CPU_EQUAL(&first, &second);
	rounds->added++;
	return !(rounds->refused >> round & 1);
}

static void take_away(void *context)
{
	struct rounds *rounds = context;

	rounds->removed++;
}

Test(switching, is_measured_with_each_load_between_two_threads_on_one_cpu)
{
	struct rounds rounds = { .refused = 1 << 1 };
	struct switching_load load = { add, take_away, &rounds, 4 };
	cpu_set_t before, after;

	cr_assert_eq(sched_getaffinity(0, sizeof before, &before), 0);
	switching_extra_ns(&load);
	cr_assert_eq(sched_getaffinity(0, sizeof after, &after), 0);
	cr_expect_eq(rounds.added, 4);
	cr_expect_eq(rounds.removed, 3, "what could not be added is not taken away");
	cr_expect_eq(rounds.wrong, 0);
	cr_expect(CPU_EQUAL(&before, &after), "the caller may not run where it could before");
}

Test(switching, costs_nothing_where_no_load_could_be_added)
{
	struct rounds rounds = { .refused = ~0 };
	struct switching_load load = { add, take_away, &rounds, 2 };

	cr_expect_eq(switching_extra_ns(&load), 0);
	cr_expect_eq(rounds.removed, 0);
}
