/* Reading clocks and converting between them. */
#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#ifdef __x86_64__
#include <cpuid.h>
#include <x86intrin.h>
#endif

#define NS_PER_SECOND 1000000000ull
#define CLOCKSOURCE "/sys/devices/system/clocksource/clocksource0/current_clocksource"

static uint64_t read_clock(clockid_t id)
{
	struct timespec now;

	clock_gettime(id, &now);
	return (uint64_t)now.tv_sec * NS_PER_SECOND + (uint64_t)now.tv_nsec;
}

uint64_t clock_monotonic_ns(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

uint64_t clock_realtime_ns(void)
{
	return read_clock(CLOCK_REALTIME);
}

time_t clock_wall_seconds(void)
{
	return (time_t)(clock_realtime_ns() / 1000000000);
}

uint64_t clock_thread_ns(void)
{
	return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

bool clock_process_ns(pid_t pid, uint64_t *ns)
{
	struct timespec now;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &now) < 0)
		return false;
	*ns = (uint64_t)now.tv_sec * NS_PER_SECOND + (uint64_t)now.tv_nsec;
	return true;
}

#ifdef __x86_64__
uint64_t clock_tsc(void)
{
	return __rdtsc();
}

bool clock_tsc_usable(void)
{
	unsigned eax, ebx, ecx, edx;
	char name[32] = "";
	FILE *file;

	if (!__get_cpuid(0x80000007, &eax, &ebx, &ecx, &edx) || !(edx & 1u << 8))
		return false; /* not invariant: it changes with the frequency, or stops */
	file = fopen(CLOCKSOURCE, "re");
	if (!file)
		return false;
	if (!fgets(name, sizeof name, file))
		name[0] = '\0';
	fclose(file);
	return strcmp(name, "tsc\n") == 0;
}
#else
uint64_t clock_tsc(void)
{
	return 0;
}

bool clock_tsc_usable(void)
{
	return false;
}
#endif

/* Both clocks at one moment: a reading of one between two of the other, the tightest of several. */
struct bracket {
	uint64_t ticks, ns, width;
};

static struct bracket bracket_best(void)
{
	struct bracket best = { 0, 0, UINT64_MAX };
	uint64_t before, after, ns;
	int i;

	for (i = 0; i < 64; i++) {
		before = clock_tsc();
		ns = clock_monotonic_ns();
		after = clock_tsc();
		if (after - before < best.width)
			best = (struct bracket){ before + (after - before) / 2, ns, after - before };
	}
	return best;
}

struct clock_map clock_calibrate(uint64_t wait_ns)
{
	struct timespec wait = { (time_t)(wait_ns / NS_PER_SECOND), (long)(wait_ns % NS_PER_SECOND) };
	struct bracket first, last;

	first = bracket_best();
	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &wait, &wait) == EINTR)
		;
	last = bracket_best();
	if (last.ns <= first.ns || last.ticks <= first.ticks)
		return clock_map_monotonic();
	return (struct clock_map){
		.base_ticks = last.ticks,
		.base_ns = last.ns,
		.ticks_per_second = (uint64_t)((unsigned __int128)(last.ticks - first.ticks) * NS_PER_SECOND / (last.ns - first.ns)),
	};
}

struct clock_map clock_map_monotonic(void)
{
	return (struct clock_map){ 0, 0, NS_PER_SECOND };
}

/* BASE + (VALUE - VALUE_BASE) * TO / FROM, rounded down, kept within 64 bits. */
static uint64_t convert(uint64_t value, uint64_t value_base, uint64_t base, uint64_t to, uint64_t from)
{
	unsigned __int128 distance;

	if (from == 0)
		return base;
	if (value >= value_base) {
		distance = (unsigned __int128)(value - value_base) * to / from;
		return distance > UINT64_MAX - base ? UINT64_MAX : base + (uint64_t)distance;
	}
	distance = ((unsigned __int128)(value_base - value) * to + from - 1) / from;
	return distance > base ? 0 : base - (uint64_t)distance;
}

uint64_t clock_to_ns(const struct clock_map *map, uint64_t ticks)
{
	return convert(ticks, map->base_ticks, map->base_ns, NS_PER_SECOND, map->ticks_per_second);
}

uint64_t clock_to_ticks(const struct clock_map *map, uint64_t ns)
{
	return convert(ns, map->base_ns, map->base_ticks, map->ticks_per_second, NS_PER_SECOND);
}
