/* Intervals and rates. */
#include "session/pace.h"

#define SECOND_NS 1000000000ull
enum {
	COST_PART_MOST = 20 /* a look may take a twentieth of the time between two */, COST_PART_FAST = 4 /* who asks for many looks wants to pay for them */, FAST_HZ = 500,
	SMOOTH = 16,
};

void pace_init(struct pace *pace, uint32_t rate_hz, uint32_t max_overhead_ppm, uint64_t seed)
{
	*pace = (struct pace){ .rate_hz = rate_hz, .max_overhead_ppm = max_overhead_ppm, .perf_rate_hz = rate_hz, .share = 1, .cpus = 1, .random = seed | 1 };
}

void pace_share(struct pace *pace, uint32_t share)
{
	pace->share = share;
}

void pace_cpus(struct pace *pace, uint32_t cpus)
{
	pace->cpus = cpus ? cpus : 1;
}

bool pace_is_fast(const struct pace *pace)
{
	return pace->rate_hz >= FAST_HZ;
}

uint32_t pace_part_hz(const struct pace *pace, uint32_t part)
{
	return pace->perf_rate_hz * 2 * PACE_PARTS / (2 * part + 1);
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

uint64_t pace_every_ns(const struct pace *pace)
{
	uint64_t every_ns = larger(SECOND_NS / pace->rate_hz, pace->look_ns * (pace_is_fast(pace) ? COST_PART_FAST : COST_PART_MOST) * pace->share);

	if (pace->max_overhead_ppm)
		every_ns = larger(every_ns, larger(pace->hold_ns, pace->stood_ns / pace->cpus) * 1000000 / pace->max_overhead_ppm);
	return every_ns < SECOND_NS ? every_ns : SECOND_NS;
}

uint64_t pace_next_ns(struct pace *pace)
{
	uint64_t every_ns = pace_every_ns(pace);

	pace->random ^= pace->random << 13;
	pace->random ^= pace->random >> 7;
	pace->random ^= pace->random << 17;
	return every_ns / 2 + pace->random % (every_ns + 1);
}

static uint64_t smoothed(uint64_t before, uint64_t now)
{
	return (before * (SMOOTH - 1) + now) / SMOOTH;
}

void pace_looked(struct pace *pace, uint64_t cost_ns, uint64_t holds, uint64_t stood_ns)
{
	pace->look_ns = smoothed(pace->look_ns, cost_ns);
	pace->stood_ns = smoothed(pace->stood_ns, stood_ns);
	if (holds)
		pace->hold_ns = smoothed(pace->hold_ns, stood_ns / holds);
}

/* The interval between looks grows up to a second, and not beyond. */
uint64_t pace_stand_most_ns(const struct pace *pace)
{
	return pace->max_overhead_ppm ? SECOND_NS / 1000000 * pace->max_overhead_ppm * pace->cpus : UINT64_MAX;
}

static bool lower_to(struct pace *pace, uint64_t rate_hz)
{
	rate_hz = larger(rate_hz, PACE_PERF_HZ_LEAST);
	if (rate_hz >= pace->perf_rate_hz)
		return false;
	pace->perf_rate_hz = (uint32_t)rate_hz;
	return true;
}

bool pace_perf_costs(struct pace *pace, uint64_t cost_ns)
{
	return cost_ns && pace->max_overhead_ppm && lower_to(pace, pace->max_overhead_ppm * 1000ull / cost_ns);
}

bool pace_perf_overrun(struct pace *pace)
{
	return lower_to(pace, pace->perf_rate_hz / 2);
}
