/*
 * Where the wall clock, and the clock that all processes of one boot share, stand in the clock of the trace, so that traces can be laid side by side. Read again
 * and again: a clock that is stepped meanwhile shows, and so does what the trace's own one is off.
 */
#include <sys/timex.h>
#include <time.h>

#include "session/state.h"

enum { WALL_TRIES = 8 };

/* STA_UNSYNC and maxerror are the kernel's, kept by whoever disciplines the clock (adjtimex(2)). */
static uint64_t sync_ns(void)
{
	struct timex state = { 0 };

	if (adjtimex(&state) < 0 || state.status & STA_UNSYNC || state.maxerror < 0)
		return UINT64_MAX;
	return (uint64_t)state.maxerror * 1000;
}

void session_wall(struct session *session)
{
	uint64_t best_ticks = 0, best_unix_ns = 0, best_monotonic_ns = 0, best_width = UINT64_MAX;

	for (int i = 0; i < WALL_TRIES; i++) {
		uint64_t before = session_ticks(session), unix_ns = clock_realtime_ns(), monotonic_ns = clock_monotonic_ns(), width = session_ticks(session) - before;

		if (width >= best_width)
			continue;
		best_width = width;
		best_ticks = before + width / 2;
		best_unix_ns = unix_ns;
		best_monotonic_ns = monotonic_ns - (uint64_t)session->facts->own_clock_ahead_ns;
	}
	event_add(&session->events, best_ticks, EVENT_WALL_CLOCK, 0, 0, best_unix_ns,
	          (uint64_t)((unsigned __int128)(best_width / 2 + 1) * 1000000000 / session->clock.ticks_per_second) + 1, sync_ns(), best_monotonic_ns);
}
