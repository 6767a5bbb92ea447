/* Published numbers about system calls. */
#include <stdlib.h>
#include <string.h>

#include "analyze/private.h"
#include "analyze/syscalls.h"

static const char NONE_SEEN[] = "no system calls were recorded";

double metric_syscall_rate(const struct analysis_private *p, const char **why)
{
	const struct timeline *timeline = p->timeline;
	double covered = (double)timeline_counter(timeline, "syscalls_covered_ns", (int64_t)timeline->duration_ns), count = 0;

	for (size_t i = 0; i < timeline->syscall_count; i++) {
		if (timeline->syscalls[i].sampled)
			return metric_unknown(why, "system calls were only estimated, by samples: --syscalls trace counts them");
		count += (double)timeline->syscalls[i].count;
	}
	return timeline->syscall_count && covered > 0 ? count * 1e9 / covered : metric_unknown(why, NONE_SEEN);
}

bool syscall_blocks_loop(const struct timeline *timeline, const struct syscall_site *site)
{
	if (strcmp(timeline->syscalls[site->syscall].name, "futex(gil)") == 0)
		return false;
	for (uint32_t node = site->node; node && node != UINT32_MAX; node = timeline->nodes[node].parent)
		if (timeline->nodes[node].function != UINT32_MAX && function_is_loop_callback(&timeline->functions[timeline->nodes[node].function]))
			return true;
	return false;
}

static bool has_loop(const struct timeline *timeline)
{
	for (size_t i = 0; i < timeline->function_count; i++)
		if (function_is_loop_callback(&timeline->functions[i]))
			return true;
	return false;
}

double metric_aio_blocked(const struct analysis_private *p, const char **why)
{
	const struct timeline *timeline = p->timeline;
	double *loops, most = 0;

	if (!timeline->syscall_count)
		return metric_unknown(why, NONE_SEEN);
	if (!has_loop(timeline))
		return metric_unknown(why, "no callback of an asyncio event loop was seen");
	loops = calloc(timeline->thread_count + 1, sizeof *loops);
	if (!loops)
		return metric_unknown(why, "out of memory");
	for (size_t i = 0; i < timeline->syscall_site_count; i++) {
		const struct syscall_site *site = &timeline->syscall_sites[i];
		uint32_t thread = syscall_blocks_loop(timeline, site) ? timeline->nodes[site->node].thread : UINT32_MAX;

		if (thread >= timeline->thread_count)
			continue;
		loops[thread] += (double)site->time_ns;
		most = fmax(most, loops[thread]);
	}
	free(loops);
	return most;
}
