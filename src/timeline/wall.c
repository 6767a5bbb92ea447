/* The wall clock in the trace's time, from WALL_CLOCK readings. */
#include "timeline/private.h"

void wall_add(struct timeline_private *p, const struct event_cursor *event, uint64_t at_ns)
{
	struct wall_build *wall = &p->wall;
	int64_t offset_ns = (int64_t)(event_u64(event, 0) - at_ns);

	if (!wall->readings) {
		wall->first_ns = wall->least_ns = wall->most_ns = offset_ns;
		wall->bound_ns = event_u64(event, 1);
	}
	wall->readings++;
	wall->least_ns = offset_ns < wall->least_ns ? offset_ns : wall->least_ns;
	wall->most_ns = offset_ns > wall->most_ns ? offset_ns : wall->most_ns;
	wall->sync_ns = event_u64(event, 2); /* the last word counts */
}

void wall_build(struct timeline_private *p)
{
	const struct wall_build *wall = &p->wall;
	uint64_t spread_ns = (uint64_t)wall->most_ns - (uint64_t)wall->least_ns;

	if (!wall->readings)
		return;
	p->timeline.wall = (struct wall_clock){ .readings = wall->readings, .unix_ns = (uint64_t)wall->first_ns + p->timeline.start_ns, .sync_ns = wall->sync_ns,
		.bound_ns = wall->bound_ns > UINT64_MAX - spread_ns ? UINT64_MAX : wall->bound_ns + spread_ns };
	p->timeline.start_unix_ns = p->timeline.wall.unix_ns;
}
