/* What the program did with its memory: the rows of the report that tell of it. */
#include <math.h>

#include "report/model.h"
#include "timeline/operations.h"

static double share_of(const struct report *report, uint64_t ns)
{
	return report->timeline->duration_ns ? 100 * (double)ns / (double)report->timeline->duration_ns : NAN;
}

static struct collection_row collection_of(const struct report *report, const struct operation *from)
{
	return (struct collection_row){
		.generation = from->name, .count = from->count, .time_ns = from->time_ns, .longest_ns = from->longest_ns, .freed = from->freed,
		.p50_ns = operation_percentile(from, 50), .p99_ns = operation_percentile(from, 99), .pct = share_of(report, from->time_ns),
	};
}

static int build_collections(struct report *report, struct error *err)
{
	const struct operations *all = timeline_operations(report->timeline);

	report->collections = arena_alloc(&report->arena, (all->count + 1) * sizeof *report->collections);
	if (!report->collections)
		return fail(err, ERR_MEMORY, "building the report");
	for (size_t i = 0; i < all->count; i++)
		if (all->items[i].kind == EVENT_GC)
			report->collections[report->collection_count++] = collection_of(report, &all->items[i]);
	return 0;
}

static int build_sites(struct report *report, struct error *err)
{
	const struct memory_facts *facts = timeline_memory(report->timeline);
	size_t count = facts->site_count < SITES_MAX ? facts->site_count : SITES_MAX;

	report->memory = facts;
	report->sites = arena_alloc(&report->arena, (count + 1) * sizeof *report->sites);
	if (!report->sites)
		return fail(err, ERR_MEMORY, "building the report");
	for (size_t i = 0; i < count; i++) {
		const struct memory_site *site = &facts->sites[i];

		report->sites[report->site_count++] = (struct site_row){
			.site = site, .error_pct = 196 / sqrt((double)(site->samples ? site->samples : 1)),
			.bytes_per_second = report->timeline->duration_ns ? (double)site->bytes * 1e9 / (double)report->timeline->duration_ns : NAN,
		};
	}
	return 0;
}

int memory_rows(struct report *report, struct error *err)
{
	return build_collections(report, err) < 0 ? -1 : build_sites(report, err);
}
