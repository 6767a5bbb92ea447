/* Published numbers about what surrounds the process: its control groups, pressure, memory nodes, pools of threads. From COUNTER events. */
#include <string.h>

#include "analyze/private.h"

static const char NO_QUOTA[] = "the cgroup sets no CPU quota, or its counters could not be read";
static const char NO_PRESSURE[] = "this kernel does not tell pressure (PSI), or it could not be read";
static const char NO_LIMIT[] = "no memory limit, or the cgroup's counters could not be read";
static const char NO_PROCESSOR[] = "without --counters, or on this machine, the processor's counters are not read";
static const char NOT_COUNTED[] = "without --counters, or where perf_event is not permitted, this is not counted";
static const char NO_NODES[] = "one memory node, or where threads ran could not be read";

static const struct counter *counter_named(const struct analysis_private *p, const char *name)
{
	for (size_t i = 0; i < p->timeline->counter_count; i++)
		if (strcmp(p->timeline->counters[i].name, name) == 0)
			return &p->timeline->counters[i];
	return NULL;
}

/* Of a number that only grows; one that went back was reset, and tells nothing. It is known from its first reading to its last. */
static double growth(const struct counter *counter)
{
	return counter->last > counter->first ? (double)counter->last - (double)counter->first : 0;
}

static double growth_rate(const struct analysis_private *p, const char *name, const char **why, const char *reason)
{
	const struct counter *counter = counter_named(p, name);

	return counter && counter->last_ns > counter->first_ns ? growth(counter) * 1e9 / (double)(counter->last_ns - counter->first_ns) : metric_unknown(why, reason);
}

/* Of a counter of nanoseconds. */
static double growth_pct(const struct analysis_private *p, const char *name, const char **why, const char *reason)
{
	return clamp(growth_rate(p, name, why, reason) / 1e7, 0, 100);
}

double metric_cpu_cgroup_throttled(const struct analysis_private *p, const char **why)
{
	const struct counter *periods = counter_named(p, "cgroup_periods"), *throttled = counter_named(p, "cgroup_throttled_periods");

	if (!periods || !throttled)
		return metric_unknown(why, NO_QUOTA);
	return growth(periods) > 0 ? 100 * growth(throttled) / growth(periods) : 0;
}

double metric_cpu_cgroup_throttled_ns(const struct analysis_private *p, const char **why)
{
	const struct counter *counter = counter_named(p, "cgroup_throttled_ns");

	return counter ? growth(counter) : metric_unknown(why, NO_QUOTA);
}

/* How often the one counter grew for each time that the other did. */
static double counted_ratio(const struct analysis_private *p, const char *name, const char *per, double scale, const char **why)
{
	const struct counter *counter = counter_named(p, name), *base = counter_named(p, per);

	return counter && base && base->last > 0 ? scale * (double)counter->last / (double)base->last : metric_unknown(why, NO_PROCESSOR);
}

double metric_cpu_cache_misses(const struct analysis_private *p, const char **why)
{
	return counted_ratio(p, "cache_misses", "instructions", 1000, why);
}

double metric_cpu_instructions(const struct analysis_private *p, const char **why)
{
	return counted_ratio(p, "instructions", "cycles", 1, why);
}

double metric_cpu_migrations(const struct analysis_private *p, const char **why)
{
	return growth_rate(p, "cpu_migrations", why, NOT_COUNTED);
}

double metric_memory_cgroup_limit(const struct analysis_private *p, const char **why)
{
	const struct counter *used = counter_named(p, "cgroup_memory_bytes"), *limit = counter_named(p, "cgroup_memory_limit_bytes");

	return used && limit && limit->last > 0 ? 100 * (double)used->max / (double)limit->last : metric_unknown(why, NO_LIMIT);
}

double metric_memory_cgroup_reclaims(const struct analysis_private *p, const char **why)
{
	return growth_rate(p, "cgroup_memory_reclaims", why, NO_LIMIT);
}

double metric_memory_numa_remote(const struct analysis_private *p, const char **why)
{
	const struct counter *remote = counter_named(p, "numa_remote_pages"), *all = counter_named(p, "numa_pages");

	return remote && all && all->last > 0 ? 100 * (double)remote->last / (double)all->last : metric_unknown(why, "one memory node, or the pages' nodes could not be read");
}

double metric_memory_pss(const struct analysis_private *p, const char **why)
{
	const struct counter *share = counter_named(p, "pss_bytes");

	return share ? (double)share->last : metric_unknown(why, "the process's share of memory was not read: it is not permitted, or takes too long");
}

double metric_numa_device_far(const struct analysis_private *p, const char **why)
{
	const struct counter *far = counter_named(p, "numa_device_far_ns"), *ran = counter_named(p, "numa_ran_ns");

	return far && ran && ran->last > 0 ? clamp(100 * (double)far->last / (double)ran->last, 0, 100) : metric_unknown(why, "one memory node, no device, or its node could not be read");
}

double metric_numa_migrations(const struct analysis_private *p, const char **why)
{
	return growth_rate(p, "numa_thread_migrations", why, NO_NODES);
}

double metric_pressure_cpu(const struct analysis_private *p, const char **why)
{
	return growth_pct(p, "pressure_cpu_some_ns", why, NO_PRESSURE);
}

double metric_pressure_io(const struct analysis_private *p, const char **why)
{
	return growth_pct(p, "pressure_io_some_ns", why, NO_PRESSURE);
}

double metric_pressure_memory(const struct analysis_private *p, const char **why)
{
	return growth_pct(p, "pressure_memory_some_ns", why, NO_PRESSURE);
}

double metric_threads_pool(const struct analysis_private *p, const char **why)
{
	const struct counter *asked = counter_named(p, "pool_threads_asked");

	return asked ? (double)asked->last : metric_unknown(why, "no library with a pool of threads was mapped, or this was not read");
}
