/* Samples whose telling costs more than half of what they may take become fewer, by twice as many bytes between them; and they never become more again. */
#include "collector/collector.h"

static const uint64_t INTERVAL_MAX = 1ull << 40;
enum { LEAST_PART = 16 };

/*
 * A tenth is left as the hooks leave one, and a tenth of the rest is theirs; samples of stacks, system calls and counters take their parts, and so does the other
 * sampler of allocations. A sixteenth of the budget at least.
 */
static uint64_t share_of(uint64_t ns, uint64_t other_ppm)
{
	uint64_t whole = the.settings.max_overhead_ppm, least = whole / LEAST_PART, aim = whole - whole / 5, taken = other_ppm + __atomic_load_n(&the.page->samples_ppm, __ATOMIC_RELAXED);

	return (uint64_t)((__uint128_t)ns * (taken + least < aim ? aim - taken : least) / 1000000);
}

void spending_begin(struct spending *spending)
{
	spending->cpu_ns = process_cpu_ns();
	spending->passing_ns = spending->telling_ns = spending->allowed_ns = 0;
}

void spending_ends(struct spending *spending)
{
	__atomic_store_n(&spending->taken_ppm, 0, __ATOMIC_RELAXED);
}

enum spent spending_judge(struct spending *spending, const struct spending *other, uint64_t *load)
{
	uint64_t passing_ns = spending->passing_ns, telling_ns = spending->telling_ns, other_ppm = __atomic_load_n(&other->taken_ppm, __ATOMIC_RELAXED);
	uint64_t spent_ns = passing_ns + telling_ns, cpu_ns, ran_ns, taken_ppm, allowed_ns, asking_ns;
	struct cpu_clock clock = {0};
	bool again = spending->over;

	if (!the.settings.max_overhead_ppm || spent_ns < share_of(BUDGET_CYCLE_NS, other_ppm))
		return SPENT_FINE;
	cpu_ns = cpu_clock_ask(&clock, 0, &asking_ns);
	ran_ns = cpu_ns > spending->cpu_ns ? cpu_ns - spending->cpu_ns : 1;
	allowed_ns = share_of(ran_ns, other_ppm);
	spending->cpu_ns = cpu_ns;
	spending->passing_ns = 0;
	spending->telling_ns = asking_ns;
	spending->allowed_ns += allowed_ns;
	spending->debt_ns = spending->debt_ns + spent_ns > allowed_ns ? spending->debt_ns + spent_ns - allowed_ns : 0;
	if (load)
		*load = allowed_ns ? spent_ns * 1000 / allowed_ns : 0;
	spending->over = passing_ns > allowed_ns;
	/* What is too dear comes to take what it may, by rests. */
	taken_ppm = (uint64_t)((__uint128_t)(spending->over && again ? allowed_ns : spent_ns) * 1000000 / ran_ns);
	__atomic_store_n(&spending->taken_ppm, taken_ppm < 1000000 ? (uint32_t)taken_ppm : 1000000, __ATOMIC_RELAXED);
	if (spending->over)
		return again ? SPENT_TOO_MUCH : SPENT_FINE;
	if (telling_ns <= allowed_ns / 2 || spending->interval >= INTERVAL_MAX)
		return SPENT_FINE;
	spending->interval *= 2;
	return SPENT_FEWER;
}
