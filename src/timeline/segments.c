/*
 * When the measurement began and ended, how long each thread lived, and in which stretches ("segments") a lane's calls could be
 * seen: hooks on, thread alive, nothing lost.
 *
 * A segment of a planned window stands for the gap before it (stands.h). Others stand for the time around them, up to the middle of the gaps beside: so every
 * moment is estimated by what was seen nearest to it; one common factor would be biased, because such windows are short exactly when a program calls much.
 */
#include "timeline/private.h"

enum {
	NEAR_EDGE_NS = 300000000, /* readings come at 10 Hz: a thread first read so soon was there from the start */
};
#define DURATION_LIMIT_NS 10000000000000000u /* a hundred days: times beyond are forged, and sums must not overflow */

static uint64_t max64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t min64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void find_duration(struct timeline_private *p)
{
	struct timeline *timeline = &p->timeline;
	bool windows = p->first_window != NO_TIME, open = false;
	uint64_t start, end;

	for (size_t i = 0; i < p->processes.count; i++)
		open |= p->processes.items[i].window_open;
	start = windows ? p->first_window : p->first_reading != NO_TIME ? p->first_reading : p->first_event;
	if (start == NO_TIME)
		start = 0;
	if (windows && !open && p->last_disarm == p->last_window)
		end = p->last_disarm; /* the hooks were taken off in order: that is the end */
	else
		end = max64(p->last_window, max64(p->last_reading, p->last_event));
	timeline->start_ns = start;
	timeline->duration_ns = end > start ? min64(end - start, DURATION_LIMIT_NS) : 0;
}

static uint64_t relative(const struct timeline_private *p, uint64_t absolute_ns)
{
	return absolute_ns > p->timeline.start_ns ? min64(absolute_ns - p->timeline.start_ns, p->timeline.duration_ns) : 0;
}

static void rebase_windows(struct timeline_private *p)
{
	for (size_t i = 0; i < p->processes.count; i++) {
		struct process_build *process = &p->processes.items[i];

		for (size_t j = 0; j < process->windows.count; j++) {
			struct window_build *window = &process->windows.items[j];

			window->start_ns = relative(p, window->start_ns);
			window->end_ns = window->end_ns == NO_TIME ? p->timeline.duration_ns : relative(p, window->end_ns);
			window->stands_from_ns = relative(p, window->stands_from_ns);
			window->stands_to_ns = relative(p, window->stands_to_ns);
		}
		if (!process->windows.count && process->has_calls) { /* nobody said when hooks were on: calls were seen, so always */
			struct window_build *window = list_add_or_fail(&process->windows, WINDOWS_LIMIT, &p->failed);

			if (window)
				window->end_ns = p->timeline.duration_ns;
		}
	}
}

static uint64_t between(uint64_t before, uint64_t after, double share)
{
	if (share >= 1) /* what a hostile trace says is rounded to that, and need not fit any more */
		return after > before ? after : before;
	return after > before ? before + (uint64_t)((double)(after - before) * share) : before;
}

/* What the clocks said at AT_NS, between two readings: between them the thread did the same all along, as far as anybody knows. */
static void clocks_at(const struct thread_point *before, const struct thread_point *after, uint64_t at_ns, struct thread_point *out)
{
	double share = (double)(at_ns - before->at_ns) / (double)(after->at_ns - before->at_ns);

	out->cpu_ns = between(before->cpu_ns, after->cpu_ns, share);
	out->run_wait_ns = between(before->run_wait_ns, after->run_wait_ns, share);
	out->voluntary = between(before->voluntary, after->voluntary, share);
	out->involuntary = between(before->involuntary, after->involuntary, share);
}

/* Of the readings before the start and after the end only the nearest matter: as much of them as lies in between. (An attach that takes long reads the clocks long before the first window.) */
static void rebase_points(struct timeline_private *p, struct thread_build *thread)
{
	uint64_t start = p->timeline.start_ns, end = start + p->timeline.duration_ns;
	struct thread_point before = { 0 };
	size_t kept = 0;
	bool last = false;

	for (size_t i = 0; i < thread->points.count && !last; i++) {
		struct point point = thread->points.items[i];
		const struct thread_point read = point.out;

		if (read.at_ns <= start)
			kept = 0;
		last = read.at_ns >= end;
		if (i && before.at_ns < start && read.at_ns > start)
			clocks_at(&before, &read, start, &thread->points.items[0].out);
		if (i && before.at_ns < end && read.at_ns > end)
			clocks_at(&before, &read, end, &point.out);
		point.out.at_ns = relative(p, read.at_ns);
		thread->points.items[kept++] = point;
		before = read;
	}
	thread->points.count = kept;
}

static void rebase_times(const struct timeline_private *p, struct process_build *process)
{
	uint64_t span = process->times_last - process->times_first, duration = p->timeline.duration_ns;

	if (!process->has_times || span <= duration)
		return;
	process->out.user_ns = between(0, process->out.user_ns, (double)duration / (double)span);
	process->out.system_ns = between(0, process->out.system_ns, (double)duration / (double)span);
}

static void find_life(struct timeline_private *p, struct thread_build *thread)
{
	uint64_t duration = p->timeline.duration_ns, first = NO_TIME, last = 0;
	bool read = thread->first_reading != NO_TIME;

	if (thread->first_event != NO_TIME) {
		first = relative(p, thread->first_event);
		last = relative(p, thread->last_event);
	}
	if (read) {
		first = min64(first, relative(p, thread->first_reading));
		last = max64(last, relative(p, thread->last_reading));
	}
	if (first == NO_TIME)
		first = 0;
	if (thread->start_ns > p->timeline.start_ns)
		first = min64(first, relative(p, thread->start_ns));
	else if (thread->start_ns || (thread->seeded && !p->point_count) || (read && first <= NEAR_EDGE_NS))
		first = 0;
	/* In a trace with readings, a thread without any came and went between two of them. */
	if (read ? duration - last <= NEAR_EDGE_NS : !p->point_count)
		last = duration;
	thread->out.first_ns = first;
	thread->out.last_ns = max64(first, last);
	thread->out.wall_ns = thread->out.last_ns - first;
}

static void add_segment(struct timeline_private *p, struct lane *lane, uint64_t start_ns, uint64_t end_ns)
{
	struct segment *segment;

	if (end_ns <= start_ns || p->segment_count >= SEGMENTS_LIMIT || !(segment = list_add_or_fail(&lane->segments, 2 * WINDOWS_LIMIT, &p->failed)))
		return;
	p->segment_count++;
	*segment = (struct segment){ .start_ns = start_ns, .end_ns = end_ns, .weight = 1 };
}

/* The first segment of a planned window. */
static void add_planned(struct timeline_private *p, struct lane *lane, uint64_t start_ns, uint64_t end_ns, const struct window_build *window)
{
	size_t before = lane->segments.count;
	struct segment *segment;

	add_segment(p, lane, start_ns, end_ns);
	if (lane->segments.count == before)
		return;
	segment = &lane->segments.items[before];
	segment->stands_from_ns = max64(start_ns, window->stands_from_ns);
	segment->stands_to_ns = min64(end_ns, window->stands_to_ns);
	segment->cut = start_ns > window->stands_from_ns || end_ns < window->stands_to_ns;
}

static int compare_lanes(const void *left, const void *right)
{
	const struct lane *a = *(struct lane *const *)left, *b = *(struct lane *const *)right;

	if (a->thread != b->thread)
		return a->thread < b->thread ? -1 : 1;
	if (a->first_ns != b->first_ns)
		return a->first_ns < b->first_ns ? -1 : 1;
	return a->number < b->number ? -1 : a->number > b->number;
}

/* A tid may come again, as another thread with another lane: the first lane ends where the second begins. */
static void share_lives(struct timeline_private *p)
{
	size_t count = p->lanes.count;
	struct lane **order = malloc((count + 1) * sizeof *order);

	if (!order) {
		p->failed = true;
		return;
	}
	for (size_t i = 0; i < count; i++)
		order[i] = &p->lanes.items[i];
	qsort(order, count, sizeof *order, compare_lanes);
	for (size_t i = 0; i < count; i++) {
		struct lane *lane = order[i];

		if (lane->thread == NONE)
			continue;
		lane->begin_ns = i && order[i - 1]->thread == lane->thread ? relative(p, lane->first_ns) : p->threads.items[lane->thread].out.first_ns;
		lane->end_ns = i + 1 < count && order[i + 1]->thread == lane->thread ? relative(p, order[i + 1]->first_ns) : p->threads.items[lane->thread].out.last_ns;
	}
	free(order);
}

/* A thread that is left alone is not covered, though its stack may have been found once. */
static void end_at_unhooked(struct timeline_private *p, struct lane *lane, const struct thread_build *thread)
{
	uint64_t end = relative(p, max64(thread->unhooked_ns, lane->last_call_ns));

	if (thread->unhooked)
		lane->end_ns = max64(lane->begin_ns, min64(lane->end_ns, end));
}

/* Windows and gaps are both sorted: one walk over both. */
static void cut_segments(struct timeline_private *p, struct lane *lane)
{
	const struct process_build *process = &p->processes.items[lane->process];
	size_t gap = 0;

	for (size_t i = 0; i < process->windows.count; i++) {
		const struct window_build *window = &process->windows.items[i];
		uint64_t start = max64(window->start_ns, lane->begin_ns), end = min64(window->end_ns, lane->end_ns);

		while (gap < lane->gaps.count && relative(p, lane->gaps.items[gap].end_ns) <= start)
			gap++;
		for (size_t g = gap; g < lane->gaps.count && start < end; g++) {
			uint64_t gap_start = relative(p, lane->gaps.items[g].start_ns), gap_end = relative(p, lane->gaps.items[g].end_ns);

			if (gap_start >= end)
				break;
			add_planned(p, lane, start, gap_start, window);
			start = max64(start, gap_end);
		}
		add_planned(p, lane, start, end, window);
	}
}

static bool is_planned(const struct segment *segment)
{
	return segment->stands_to_ns > segment->stands_from_ns;
}

/* There is one after it. */
static uint64_t stands_until(const struct segment *segment)
{
	return is_planned(segment + 1) ? segment->end_ns : segment->end_ns + (segment[1].start_ns - segment->end_ns) / 2;
}

/* How often all that happened is as much as what was seen, by the number of events that were lost; 0: none was. */
static double loss_factor(const struct lane *lane)
{
	return lane->lost && lane->events ? (double)(lane->events + lane->lost) / (double)lane->events : 0;
}

static bool any_planned(const struct lane *lane)
{
	for (size_t i = 0; i < lane->segments.count; i++)
		if (is_planned(&lane->segments.items[i]))
			return true;
	return false;
}

/*
 * Each segment stands for the time up to halfway to the next, a planned one for the time before it, too. But where events were lost a segment ends and begins
 * with a call, however long nothing happened before and after: there it stands for no more than the number of lost events says.
 */
static void weigh_segments(struct lane *lane, struct thread_build *thread)
{
	struct segment *segments = lane->segments.items;
	size_t count = lane->segments.count;
	uint64_t covered = 0, from = lane->begin_ns;
	double factor = any_planned(lane) ? loss_factor(lane) : 0;

	for (size_t i = 0; i < count; i++)
		covered += segments[i].end_ns - segments[i].start_ns;
	thread->out.covered_ns += covered;
	if ((double)covered >= FULL_COVERAGE * (double)(lane->end_ns - lane->begin_ns))
		return;
	for (size_t i = 0; i < count; i++) {
		struct segment *segment = &segments[i];
		uint64_t to = i + 1 < count ? stands_until(segment) : lane->end_ns, length = segment->end_ns - segment->start_ns;
		double around = (double)(to - from - length), off = is_planned(segment) && !segment->cut ? (double)(segment->start_ns - from) : 0;

		if (factor && around - off > (factor - 1) * (double)length)
			around = off + (factor - 1) * (double)length;
		if (is_planned(segment))
			segment->gap_ns = around;
		else
			segment->weight = 1 + around / (double)length;
		from = to;
	}
}

void segments_build(struct timeline_private *p)
{
	find_duration(p);
	rebase_windows(p);
	for (size_t i = 0; i < p->processes.count; i++)
		rebase_times(p, &p->processes.items[i]);
	for (size_t i = 0; i < p->threads.count; i++) {
		rebase_points(p, &p->threads.items[i]);
		find_life(p, &p->threads.items[i]);
	}
	share_lives(p);
	for (size_t i = 0; i < p->lanes.count; i++) {
		struct lane *lane = &p->lanes.items[i];

		if (lane->kind != LANE_THREAD || lane->thread == NONE)
			continue;
		struct thread_build *thread = &p->threads.items[lane->thread];

		end_at_unhooked(p, lane, thread);
		cut_segments(p, lane);
		weigh_segments(lane, thread);
		thread->out.events += lane->events;
		thread->out.lost += lane->lost;
	}
}
