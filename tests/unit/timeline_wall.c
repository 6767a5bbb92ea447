/* The clocks of the machine that recorded. */
#include <criterion/criterion.h>

#include "timeline_help.h"

#define WALL(at, unix_ns, bound, sync) #at " wall_clock unix_ns=" #unix_ns " bound_ns=" #bound " sync_ns=" #sync "\n"

Test(timeline_wall, stands_at_the_beginning_of_the_timeline)
{
	struct timeline *t = timeline_from_text(META ON(1000) OFF(9000) SESSION WALL(3000, 1700000000000002000, 25, 4000000));

	cr_assert_eq(t->wall.readings, 1);
	cr_assert_eq(t->wall.unix_ns, 1700000000000000000u, "%lu", (unsigned long)t->wall.unix_ns);
	cr_assert_eq(t->start_unix_ns, t->wall.unix_ns);
	cr_assert_eq(t->wall.bound_ns, 25);
	cr_assert_eq(t->wall.sync_ns, 4000000);
}

Test(timeline_wall, a_step_widens_the_bound)
{
	struct timeline *t = timeline_from_text(META ON(0) OFF(9000) SESSION WALL(0, 1700000000000000000, 25, 1) WALL(5000, 1700000000000007000, 25, 1));

	cr_assert_eq(t->wall.bound_ns, 25 + 2000);
}

#define BOTH(at, unix_ns, bound, monotonic) #at " wall_clock unix_ns=" #unix_ns " bound_ns=" #bound " sync_ns=1 monotonic_ns=" #monotonic "\n"

Test(timeline_wall, tells_the_machines_monotonic_clock_where_all_readings_do)
{
	struct timeline *t = timeline_from_text(META ON(1000) OFF(9000) SESSION BOTH(3000, 1700000000000002000, 25, 7002000) BOTH(5000, 1900000000000004000, 25, 7004300));

	cr_assert(t->wall.monotonic);
	cr_assert_eq(t->wall.monotonic_ns, 7000000u, "%lu", (unsigned long)t->wall.monotonic_ns);
	cr_assert_eq(t->wall.monotonic_bound_ns, 25 + 300, "a step of the wall clock is none of it");
	t = timeline_from_text(META ON(1000) OFF(9000) SESSION BOTH(3000, 1700000000000002000, 25, 7002000) WALL(5000, 1700000000000004000, 25, 1));
	cr_assert(!t->wall.monotonic && t->wall.monotonic_ns == 0);
}

Test(timeline_wall, is_not_known_without_a_reading)
{
	struct timeline *t = timeline_from_text(META ON(0) OFF(9000));

	cr_assert_eq(t->wall.readings, 0);
	cr_assert_eq(t->wall.unix_ns, 0);
}
