/* System calls as tables show them: by name, with the function that spent most time in them. */
#include <math.h>
#include <string.h>

#include "report/model.h"

static void find_caller(const struct timeline *timeline, uint32_t syscall, struct syscall_row *row, uint64_t *time_of)
{
	uint64_t all = 0;

	memset(time_of, 0, (timeline->function_count + 1) * sizeof *time_of);
	for (size_t i = 0; i < timeline->syscall_site_count; i++) {
		const struct syscall_site *site = &timeline->syscall_sites[i];

		if (site->syscall != syscall)
			continue;
		all += site->time_ns;
		if (site->function < timeline->function_count)
			time_of[site->function] += site->time_ns;
	}
	for (size_t i = 0; i < timeline->function_count; i++)
		if (time_of[i] > row->caller_ns) {
			row->caller_ns = time_of[i];
			row->caller = &timeline->functions[i];
		}
	row->caller_pct = all ? 100.0 * (double)row->caller_ns / (double)all : 0;
}

int syscall_rows_build(struct report *report, struct error *err)
{
	const struct timeline *timeline = report->timeline;
	size_t count = timeline->syscall_count < SYSCALL_ROWS_MAX ? timeline->syscall_count : SYSCALL_ROWS_MAX;
	uint64_t *time_of = arena_alloc(&report->arena, (timeline->function_count + 1) * sizeof *time_of);

	report->syscalls = arena_alloc(&report->arena, (count + 1) * sizeof *report->syscalls);
	if (!report->syscalls || !time_of)
		return fail(err, ERR_MEMORY, "building the report");
	for (size_t i = 0; i < count; i++) {
		struct syscall_row *row = &report->syscalls[report->syscall_count++];

		row->summary = &timeline->syscalls[i];
		find_caller(timeline, (uint32_t)i, row, time_of);
	}
	return 0;
}

struct quantity syscall_calls(const struct syscall_row *row, unsigned flags)
{
	return row->summary->sampled ? quantity_of(NAN, "count", flags) : quantity_short(row->summary->count, flags);
}
