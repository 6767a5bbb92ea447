#include "timeline/spread.h"

#include <math.h>

#include "timeline/private.h"

enum { BATCHES_LEAST = 4 };
#define Z 1.96
/* Of Student, for what so many neighbours scatter; the last one for that many and more. */
static const double student[] = { [BATCHES_LEAST] = 4.3, 3.5, 3.0, 2.8, 2.2 };
enum { STUDENTS = sizeof student / sizeof *student };

void spread_share(double hits, double count, double *low, double *high)
{
	double p = hits < count ? hits / count : 1, more = Z * Z / count;
	double middle = (p + more / 2) / (1 + more), half = sqrt(more * p * (1 - p) + more * more / 4) / (1 + more);

	*low = middle - half < p ? middle - half : p;
	*high = middle + half > p ? middle + half : p;
}

/* ---- samples ---- */

static void add_error(struct spread *spread, double below, double above)
{
	spread->below += below * below;
	spread->above += above * above;
	spread->estimated = true;
}

/* Time that was given to it by a share of the samples in the calls around: its own samples tell how sure that is. */
static void end_shared(const struct thread_build *thread, struct spread *spread)
{
	double count = (double)(thread->samples - thread->gap_samples), hits = (double)spread->shared_samples, low, high;

	if (spread->shared_ns > 0 && hits > 0 && count >= hits) {
		spread_share(hits, count, &low, &high);
		add_error(spread, spread->shared_ns * (1 - low * count / hits), spread->shared_ns * (high * count / hits - 1));
	}
	spread->shared_ns = 0;
	spread->shared_samples = 0;
}

/* Samples of different weights tell as much as fewer equal ones. */
static void end_gaps(const struct thread_build *thread, struct spread *spread)
{
	double all = thread->gap_running_ns + thread->gap_blocked_ns, low, high;
	double count = thread->gap_squares > 0 ? all * all / thread->gap_squares : 0;

	if (thread->gaps_sampled && count > 0) {
		spread_share(count * spread->gap_weight_ns / all, count, &low, &high);
		add_error(spread, thread->gap_ns * (spread->gap_weight_ns / all - low), thread->gap_ns * (high - spread->gap_weight_ns / all));
	}
	spread->gap_weight_ns = 0;
}

static void end_thread(const struct timeline_private *p, struct spread *spread)
{
	const struct thread_build *thread;

	if (!spread->thread)
		return;
	thread = &p->threads.items[spread->thread - 1];
	end_shared(thread, spread);
	end_gaps(thread, spread);
}

static bool is_shared(const struct name *name)
{
	return name->kind == FUNCTION_NATIVE || name->split || name->counted || name->left_out || name->times_shared;
}

static bool is_whole(const struct thread_build *thread)
{
	return thread->out.covered_ns >= thread->out.wall_ns || !thread->out.covered_ns;
}

void spread_add(const struct timeline_private *p, struct spread *spread, const struct node *node)
{
	const struct thread_build *thread = &p->threads.items[node->thread];

	if (spread->thread != node->thread + 1) {
		end_thread(p, spread);
		spread->thread = node->thread + 1;
		spread->by_windows |= !thread->gaps_sampled && !is_whole(thread);
	}
	spread->gap_weight_ns += node->gap_running_ns + node->gap_blocked_ns;
	if (!is_shared(&p->names.list.items[node->function]))
		return;
	spread->shared_ns += (double)node->self_ns;
	spread->shared_samples += node->samples - node->gap_samples;
}

/* ---- windows ---- */

static bool all_seen(const struct timeline_private *p)
{
	for (size_t i = 0; i < p->processes.count; i++) {
		const struct process_build *process = &p->processes.items[i];

		if (process->windows.count != 1 || process->windows.items[0].end_ns - process->windows.items[0].start_ns < p->timeline.duration_ns)
			return false;
	}
	return true;
}

/* Several processes have windows of their own: no intervals then. */
void spread_begin(struct timeline_private *p)
{
	p->batch_ns = p->timeline.duration_ns / SPREAD_BATCHES + 1;
	if (p->processes.count != 1 || all_seen(p))
		return;
	p->batches = calloc(p->names.list.count, sizeof *p->batches);
	p->batch_names = p->names.list.count;
	p->failed |= !p->batches;
}

void spread_run(struct timeline_private *p, uint32_t function, uint64_t from_ns, uint64_t to_ns)
{
	if (!p->batches || p->planned || function >= p->batch_names)
		return;
	while (from_ns < to_ns) {
		uint64_t batch = from_ns / p->batch_ns, end_ns = (batch + 1) * p->batch_ns;

		if (batch >= SPREAD_BATCHES)
			return;
		end_ns = end_ns < to_ns ? end_ns : to_ns;
		p->batches[function].self_ns[batch] += (float)(end_ns - from_ns);
		from_ns = end_ns;
	}
}

void spread_give(struct timeline_private *p, uint32_t function, uint64_t at_ns, double ns)
{
	uint64_t batch = p->batches ? at_ns / p->batch_ns : SPREAD_BATCHES;

	if (batch < SPREAD_BATCHES && function < p->batch_names)
		p->batches[function].self_ns[batch] += (float)ns;
}

void spread_give_all(struct timeline_private *p, uint64_t at_ns, double ns)
{
	uint64_t batch = p->batches ? at_ns / p->batch_ns : SPREAD_BATCHES;

	if (batch < SPREAD_BATCHES)
		p->batch_seen_ns[batch] += ns;
}

void spread_windows(struct timeline_private *p)
{
	for (size_t i = 0; i < p->timeline.window_count && !p->planned; i++)
		for (uint64_t at = p->timeline.windows[i].start_ns, end = p->timeline.windows[i].end_ns; at < end;) {
			uint64_t batch = at / p->batch_ns, to = (batch + 1) * p->batch_ns;

			if (batch >= SPREAD_BATCHES)
				break;
			to = to < end ? to : end;
			p->batch_seen_ns[batch] += (double)(to - at);
			at = to;
		}
}

/* False: too few sixteenths of the capture were looked at. */
static bool add_windows(const struct timeline_private *p, struct spread *spread, uint32_t name)
{
	double squares = 0, unseen = 0, before = 0, error;
	int count = 0;

	if (!p->batches || name >= p->batch_names)
		return false;
	for (int i = 0; i < SPREAD_BATCHES; i++) {
		double seen = p->batch_seen_ns[i], rate = seen > 0 ? (double)p->batches[name].self_ns[i] / seen : 0, gap = p->planned ? seen : (double)p->batch_ns - seen;

		unseen += gap > 0 ? gap * gap * (seen > 0 ? 1 : 2) : 0;
		if (seen <= 0)
			continue;
		squares += count++ ? (rate - before) * (rate - before) : 0;
		before = rate;
	}
	if (count < BATCHES_LEAST)
		return false;
	error = student[count < STUDENTS ? count : STUDENTS - 1] * sqrt(squares / 2 / (count - 1) * unseen);
	add_error(spread, error, error);
	return true;
}

static uint64_t whole(double value)
{
	return value > 0 ? value < 9e18 ? (uint64_t)(value + 0.5) : 9000000000000000000u : 0;
}

void spread_finish(const struct timeline_private *p, struct spread *spread, uint32_t name, struct function *out)
{
	uint64_t least = is_shared(&p->names.list.items[name]) || out->seen_self_ns > out->self_ns ? 0 : out->seen_self_ns;

	end_thread(p, spread);
	if (spread->by_windows && !add_windows(p, spread, name))
		return;
	if (!spread->estimated)
		return;
	out->self_low_ns = whole((double)out->self_ns - sqrt(spread->below));
	if (out->self_low_ns < least)
		out->self_low_ns = least;
	out->self_high_ns = whole((double)out->self_ns + sqrt(spread->above));
}
