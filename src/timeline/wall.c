/* The machine's clocks in the trace's time, from WALL_CLOCK readings. */
#include "timeline/private.h"

static void range_add(struct offset_range *range, int64_t offset_ns, bool first)
{
	if (first)
		*range = (struct offset_range){ offset_ns, offset_ns, offset_ns };
	range->least_ns = offset_ns < range->least_ns ? offset_ns : range->least_ns;
	range->most_ns = offset_ns > range->most_ns ? offset_ns : range->most_ns;
}

/* Half the width of a reading, and how far the others are off it. */
static uint64_t range_bound(const struct offset_range *range, uint64_t bound_ns)
{
	uint64_t spread_ns = (uint64_t)range->most_ns - (uint64_t)range->least_ns;

	return bound_ns > UINT64_MAX - spread_ns ? UINT64_MAX : bound_ns + spread_ns;
}

void wall_add(struct timeline_private *p, const struct event_cursor *event, uint64_t at_ns)
{
	struct wall_build *wall = &p->wall;
	uint64_t monotonic_ns = event_u64(event, 3);
	bool first = !wall->readings;

	if (first)
		wall->bound_ns = event_u64(event, 1);
	range_add(&wall->wall, (int64_t)(event_u64(event, 0) - at_ns), first);
	range_add(&wall->monotonic, (int64_t)(monotonic_ns - at_ns), first);
	wall->monotonic_missing |= !monotonic_ns;
	wall->readings++;
	wall->sync_ns = event_u64(event, 2); /* the last word counts */
}

void wall_build(struct timeline_private *p)
{
	const struct wall_build *wall = &p->wall;

	if (!wall->readings)
		return;
	p->timeline.wall = (struct wall_clock){ .readings = wall->readings, .unix_ns = (uint64_t)wall->wall.first_ns + p->timeline.start_ns, .sync_ns = wall->sync_ns,
		.bound_ns = range_bound(&wall->wall, wall->bound_ns), .monotonic = !wall->monotonic_missing };
	if (p->timeline.wall.monotonic) {
		p->timeline.wall.monotonic_ns = (uint64_t)wall->monotonic.first_ns + p->timeline.start_ns;
		p->timeline.wall.monotonic_bound_ns = range_bound(&wall->monotonic, wall->bound_ns);
	}
	p->timeline.start_unix_ns = p->timeline.wall.unix_ns;
}
