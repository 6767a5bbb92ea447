/* Published numbers that come from samples of allocations. */
#include "analyze/private.h"
#include "timeline/memory.h"

static const char NOT_SAMPLED[] = "allocations were not sampled (--memory)";

static bool is_sampled(const struct analysis_private *p)
{
	return timeline_memory(p->timeline)->all.samples || timeline_capture(p->timeline, "memory.interval");
}

static double value_of(const struct analysis_private *p, uint64_t value, const char **why)
{
	return is_sampled(p) ? (double)value : metric_unknown(why, NOT_SAMPLED);
}

static double value_of_ends(const struct analysis_private *p, uint64_t value, const char **why)
{
	const char *missing = timeline_memory(p->timeline)->ends_missing;

	return missing ? metric_unknown(why, missing) : value_of(p, value, why);
}

double metric_memory_allocated(const struct analysis_private *p, const char **why)
{
	return value_of(p, timeline_memory(p->timeline)->all.bytes, why);
}

double metric_memory_allocations(const struct analysis_private *p, const char **why)
{
	return value_of(p, timeline_memory(p->timeline)->all.count, why);
}

double metric_memory_brief(const struct analysis_private *p, const char **why)
{
	return value_of(p, timeline_memory(p->timeline)->all.brief_bytes, why);
}

double metric_memory_unreleased(const struct analysis_private *p, const char **why)
{
	return value_of_ends(p, timeline_memory(p->timeline)->all.live_bytes, why);
}

bool memory_site_grows(const struct memory_site *site)
{
	enum { EARLY_LEAST = 10 };

	return site->early_samples >= EARLY_LEAST && site->live_bytes - site->early_bytes >= site->early_bytes / 2;
}

double metric_memory_growing(const struct analysis_private *p, const char **why)
{
	const struct memory_facts *facts = timeline_memory(p->timeline);
	uint64_t bytes = 0;

	for (size_t i = 0; i < facts->site_count; i++)
		if (memory_site_grows(&facts->sites[i]))
			bytes += facts->sites[i].live_bytes;
	return value_of_ends(p, bytes, why);
}
