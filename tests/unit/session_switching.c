/* What a switch of threads takes: who is measured, and with what. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <sys/resource.h>
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

enum { CROWD = 4 };
struct crowd { pthread_t threads[CROWD]; int count; bool over; };

static void *crowded(void *context)
{
	const struct crowd *crowd = context;

	while (!__atomic_load_n(&crowd->over, __ATOMIC_RELAXED))
		;
	return NULL;
}

/* On the same CPU, which they inherit; and they go first. */
static bool crowd_begin(void *context, const pid_t tids[2], int round)
{
	struct crowd *crowd = context;

	(void)round;
	while (crowd->count < CROWD && pthread_create(&crowd->threads[crowd->count], NULL, crowded, crowd) == 0)
		crowd->count++;
	return setpriority(PRIO_PROCESS, (id_t)tids[0], 19) == 0 && setpriority(PRIO_PROCESS, (id_t)tids[1], 19) == 0;
}

static void crowd_end(void *context)
{
	struct crowd *crowd = context;

	__atomic_store_n(&crowd->over, true, __ATOMIC_RELAXED);
	while (crowd->count)
		pthread_join(crowd->threads[--crowd->count], NULL);
}

Test(switching, does_not_count_what_others_run)
{
	struct crowd crowd = { 0 };
	struct switching_load load = { crowd_begin, crowd_end, &crowd, 1 };

	cr_expect_lt(switching_extra_ns(&load), 100000, "a turn of another's is some milliseconds");
}

Test(switching, costs_nothing_where_no_load_could_be_added)
{
	struct rounds rounds = { .refused = ~0 };
	struct switching_load load = { add, take_away, &rounds, 2 };

	cr_expect_eq(switching_extra_ns(&load), 0);
	cr_expect_eq(rounds.removed, 0);
}
