/* Samples that cost more than half of the budget become fewer, by twice as many bytes between them; and they never become more again. */
#include "collector/collector.h"

static const uint64_t INTERVAL_MAX = 1ull << 40;

/* What samples, system calls and counters leave of the budget, but half at least. */
static uint64_t share_of(uint64_t ns)
{
	uint64_t whole = the.settings.max_overhead_ppm, taken = __atomic_load_n(&the.page->samples_ppm, __ATOMIC_RELAXED);

	return (uint64_t)((__uint128_t)ns * (whole - (taken < whole / 2 ? taken : whole / 2)) / 1000000);
}

enum spent spending_judge(struct spending *spending, uint64_t *load)
{
	uint64_t passing_ns = spending->passing_ns, telling_ns = spending->telling_ns, cpu_ns, allowed_ns;

	if (!the.settings.max_overhead_ppm || passing_ns + telling_ns < share_of(BUDGET_CYCLE_NS))
		return SPENT_FINE;
	cpu_ns = process_cpu_ns();
	allowed_ns = share_of(cpu_ns - spending->cpu_ns);
	spending->cpu_ns = cpu_ns;
	spending->passing_ns = spending->telling_ns = 0;
	if (load)
		*load = allowed_ns ? (passing_ns + telling_ns) * 1000 / allowed_ns : 0;
	if (passing_ns > allowed_ns)
		return SPENT_TOO_MUCH;
	if (telling_ns <= allowed_ns / 2 || spending->interval >= INTERVAL_MAX)
		return SPENT_FINE;
	spending->interval *= 2;
	return SPENT_FEWER;
}
