/* Turns of perf_event, of a simulated program on one CPU that is looked at ten times a second. */
#include <criterion/criterion.h>

#include "session/perf_turns.h"
#include "session/sampler_state.h"

#define MS 1000000ull

struct ran { uint64_t on_ns, shortest_ns, longest_ns, turns; };

/* SWITCHES per second for SECONDS; at no moment more was spent than is allowed, but for what a step costs, and what lingers. */
static struct ran run(struct perf_turns *turns, uint64_t switches, uint64_t seconds)
{
	const uint64_t step_ns = 100 * MS;
	struct ran ran = { .shortest_ns = UINT64_MAX };
	uint64_t turn_ns = 0;

	for (uint64_t at_ns = step_ns; at_ns <= seconds * 1000 * MS && !turns->useless; at_ns += step_ns) {
		uint64_t most_ns = (at_ns + 250 * MS) / 2000000 * turns->max_overhead_ppm + switches / 10 * turns->switch_ns + turns->resting * turns->resting_ns;
		bool on = !turns->rests;

		perf_turns_switched(turns, switches / 10, on, at_ns, at_ns);
		cr_assert(!turns->max_overhead_ppm || perf_turns_spent_ns(turns) <= most_ns, "%llu of %llu ns after %llu ms", (unsigned long long)perf_turns_spent_ns(turns), (unsigned long long)most_ns,
		          (unsigned long long)(at_ns / MS));
		ran.on_ns += on ? step_ns : 0;
		turn_ns += on ? step_ns : 0;
		if (!on || !turns->rests)
			continue;
		ran.shortest_ns = ran.turns && turn_ns < ran.shortest_ns ? turn_ns : ran.shortest_ns; /* the first one is paid for by what is free */
		ran.longest_ns = ran.turns && turn_ns > ran.longest_ns ? turn_ns : ran.longest_ns;
		ran.turns++;
		turn_ns = 0;
	}
	return ran;
}

static struct perf_turns turns_of(uint32_t max_overhead_ppm, uint64_t switch_ns, uint64_t resting_ns)
{
	struct perf_turns turns;

	perf_turns_init(&turns, max_overhead_ppm, 0, 7);
	turns.switch_ns = switch_ns;
	turns.resting_ns = resting_ns;
	return turns;
}

Test(turns, never_end_where_threads_are_switched_rarely)
{
	struct perf_turns turns = turns_of(50000, 2500, 200);

	cr_assert_eq(run(&turns, 9000, 100).on_ns, 100000 * MS, "2.25 of 2.5 %%");
	turns = turns_of(0, 2500, 200);
	cr_assert_eq(run(&turns, 1000000, 100).on_ns, 100000 * MS, "without a budget all are paid for");
}

Test(turns, share_the_time_as_the_budget_pays_for)
{
	struct perf_turns turns = turns_of(50000, 2500, 0);
	struct ran ran = run(&turns, 30000, 200);

	cr_assert(ran.on_ns > 60000 * MS && ran.on_ns < 70000 * MS, "2.5 of 7.5 %%: %llu ms of 200 s", (unsigned long long)(ran.on_ns / MS));
	cr_assert(ran.shortest_ns >= 100 * MS && ran.longest_ns <= 700 * MS && ran.longest_ns >= 400 * MS && ran.shortest_ns <= 300 * MS, "%llu to %llu ms", (unsigned long long)(ran.shortest_ns / MS),
	          (unsigned long long)(ran.longest_ns / MS));
	cr_assert(ran.turns > 100 && ran.turns < 400, "%llu turns", (unsigned long long)ran.turns);
	turns = turns_of(50000, 2500, 0);
	ran = run(&turns, 12000, 200);
	cr_assert(ran.on_ns > 160000 * MS && ran.on_ns < 170000 * MS, "2.5 of 3 %%: %llu ms of 200 s", (unsigned long long)(ran.on_ns / MS));
}

Test(turns, charge_what_lingers_after_them)
{
	struct perf_turns free = turns_of(50000, 2500, 0), turns = turns_of(50000, 2500, 250);
	uint64_t free_ns = run(&free, 30000, 200).on_ns, on_ns = run(&turns, 30000, 200).on_ns;

	cr_assert(on_ns < free_ns && on_ns > free_ns / 2, "%llu ms on, %llu without", (unsigned long long)(on_ns / MS), (unsigned long long)(free_ns / MS));
	cr_assert_gt(turns.resting, 0);
	turns = turns_of(50000, 2500, 250);
	cr_assert_gt(run(&turns, 150000, 200).on_ns, 6000 * MS, "3.75 %% at rest, which is more than is allowed, but for a second only");
}

Test(turns, follow_the_program)
{
	struct perf_turns turns = turns_of(50000, 2500, 200);
	uint64_t at_ns = 0;

	run(&turns, 30000, 60);
	for (int step = 0; step < 700; step++) {
		at_ns += 100 * MS;
		perf_turns_switched(&turns, 10, !turns.rests, 60000 * MS + at_ns, 60000 * MS + at_ns);
		cr_assert(!turns.rests || at_ns < 2000 * MS, "it has become quiet");
	}
}

Test(turns, charge_switches_that_came_before_they_were_priced)
{
	struct perf_turns turns = turns_of(50000, 0, 0);

	perf_turns_switched(&turns, 3000, true, 100 * MS, 100 * MS);
	cr_assert_not(turns.rests);
	turns.switch_ns = 2500;
	cr_assert_eq(perf_turns_spent_ns(&turns), 3000 * 2500);
	perf_turns_switched(&turns, 1000, true, 110 * MS, 110 * MS);
	cr_assert(turns.rests, "10 ms of 9 for 360 ms");
}

Test(turns, are_useless_below_a_hundredth)
{
	struct perf_turns turns = turns_of(1000, 2500, 0);

	cr_assert_not((run(&turns, 18000, 60), turns.useless), "0.05 of 4.5 %%");
	turns = turns_of(1000, 2500, 0);
	cr_assert((run(&turns, 22000, 60), turns.useless), "0.05 of 5.5 %%");
}

/* Of a CPU four thousandths: what pays for a turn is less than a step of two milliseconds would tell. */
Test(turns, go_on_in_a_program_that_mostly_waits)
{
	struct perf_turns turns = turns_of(50000, 3000, 0);
	uint64_t on = 0;

	for (uint64_t step = 1; step <= 4000; step++) {
		on += !turns.rests;
		perf_turns_switched(&turns, 12, !turns.rests, step * 400000, step * 100 * MS);
		cr_assert_not(turns.useless, "after %llu steps", (unsigned long long)step);
	}
	cr_assert(on > 1100 && on < 1700, "2.5 of 9 %%, and what is free: %llu of 4000 steps", (unsigned long long)on);
}

Test(turns, come_back_though_all_threads_have_ended_in_a_rest)
{
	struct sampler sampler = { .lock = PTHREAD_MUTEX_INITIALIZER };

	sampler.turns = turns_of(50000, 3000, 0);
	sampler.turns.rests = true;
	sampler_switched(&sampler, 10, 1000 * MS);
	cr_assert_not(sampler.turns.rests, "nothing is owed");
}
