/*
 * Why devices did nothing. A gap ends with work that a call of the host asked for. Asked for before the gap began: the device waited for itself (another
 * stream, an event, its own dispatch). Else the host was late: because it had nothing to do, because it had waited for the device before (without that wait
 * it would have asked earlier, by as much as it waited), or because it was busy.
 */
#include "base/sort.h"
#include "timeline/private.h"

enum { GAPS_LIMIT = 1 << 22, SYNC_EDGE_NS = 10000 /* a wait that ends just before the last work's end, as clocks differ */ };

static void add_gap(struct timeline_private *p, uint32_t device, uint64_t start_ns, uint64_t end_ns, const struct gpu_call *call, bool tail)
{
	struct gpu_gap *gap;

	if (end_ns <= start_ns || !(gap = list_add_or_fail(&p->gpu_gaps, GAPS_LIMIT, &p->failed)))
		return;
	*gap = (struct gpu_gap){ .start_ns = start_ns, .end_ns = end_ns, .device = device, .call = call ? (uint32_t)(call - p->gpu_calls.items) : NONE, .thread = NONE, .node = NONE, .tail = tail };
	if (call && (tail || call->start_ns > start_ns))
		gap->thread = call->thread;
}

static void find_gaps(struct timeline_private *p, uint32_t index)
{
	const struct device_build *device = &p->devices.items[index];
	uint64_t reached = p->timeline.start_ns;
	const struct gpu_call *last = NULL;

	for (size_t i = 0; i < device->spans.count; i++) {
		const struct gpu_span *span = &device->spans.items[i];
		const struct gpu_call *call = gpu_call_of(p, span);

		add_gap(p, index, reached, span->start_ns, call, false);
		last = call ? call : last;
		reached = span->end_ns > reached ? span->end_ns : reached;
	}
	add_gap(p, index, reached, p->timeline.start_ns + p->timeline.duration_ns, last, true);
}

static int compare_gaps(const void *left, const void *right, const void *context)
{
	const struct gpu_gap *a = left, *b = right;

	if (a->thread != b->thread)
		return a->thread < b->thread ? -1 : 1;
	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	return a->device < b->device ? -1 : a->device > b->device;
}

void gpu_gaps_find(struct timeline_private *p)
{
	for (uint32_t i = 0; i < p->devices.count; i++)
		if (p->devices.items[i].spans.count)
			find_gaps(p, i);
	p->failed |= !sort_runs(p->gpu_gaps.items, p->gpu_gaps.count, sizeof *p->gpu_gaps.items, compare_gaps, NULL);
	for (uint32_t i = 0; i < p->gpu_gaps.count && p->gpu_gaps.items[i].thread != NONE; i++) {
		struct thread_build *thread = &p->threads.items[p->gpu_gaps.items[i].thread];

		if (thread->gap_end != i || !i)
			thread->first_gap = i;
		thread->gap_end = i + 1;
	}
	for (size_t i = 0; i < p->lanes.count; i++)
		if (p->lanes.items[i].thread != NONE)
			p->lanes.items[i].gap = p->threads.items[p->lanes.items[i].thread].first_gap;
}

/* Until the host asked. */
static uint64_t host_end(const struct timeline_private *p, const struct gpu_gap *gap)
{
	uint64_t asked = gap->tail ? gap->end_ns : p->gpu_calls.items[gap->call].start_ns;

	return asked < gap->end_ns ? asked : gap->end_ns;
}

/* Calls end innermost first, so the first that lasted for half of the host's part is the deepest one. */
void gpu_gaps_close(struct timeline_private *p, struct lane *lane, uint32_t node, uint64_t start_ns, uint64_t end_ns)
{
	const struct thread_build *thread = &p->threads.items[lane->thread];
	uint64_t start = p->timeline.start_ns + start_ns, end = p->timeline.start_ns + end_ns;

	while (lane->gap < thread->gap_end && p->gpu_gaps.items[lane->gap].end_ns <= end)
		lane->gap++;
	for (uint32_t i = lane->gap < thread->gap_end ? lane->gap + 1 : lane->gap; i-- > thread->first_gap;) {
		struct gpu_gap *gap = &p->gpu_gaps.items[i];
		uint64_t until, from, to;

		if (gap->end_ns <= start)
			return;
		if (gap->node != NONE || gap->start_ns >= end)
			continue;
		until = host_end(p, gap);
		from = gap->start_ns > start ? gap->start_ns : start;
		to = until < end ? until : end;
		if (to > from && 2 * (to - from) >= until - gap->start_ns)
			gap->node = node;
	}
}

/* How long the host waited for the device before it asked: what it would have been earlier without. */
static uint64_t blocked_before(const struct thread_build *thread, uint64_t start_ns, uint64_t asked_ns)
{
	return pieces_touching(&thread->blocked, start_ns > SYNC_EDGE_NS ? start_ns - SYNC_EDGE_NS : 0, asked_ns);
}

static struct idle_parts host_parts(const struct timeline_private *p, uint32_t index, uint64_t start_ns, uint64_t asked_ns, uint64_t end_ns)
{
	const struct thread_build *thread = index == NONE ? NULL : &p->threads.items[index];
	uint64_t gap = end_ns - start_ns, resting = thread ? pieces_within(&thread->rests, start_ns, asked_ns) : 0, blocked = thread ? blocked_before(thread, start_ns, asked_ns) : 0;

	blocked = blocked < gap - resting ? blocked : gap - resting;
	return (struct idle_parts){ .ns = { [GPU_NO_DEMAND] = resting, [GPU_SYNC_CAUSED] = blocked, [GPU_HOST_LATE] = gap - resting - blocked } };
}

struct idle_parts gpu_idle_explain(const struct timeline_private *p, uint64_t start_ns, uint64_t end_ns, const struct gpu_call *call)
{
	uint64_t gap = end_ns - start_ns;

	if (!call)
		return (struct idle_parts){ .ns = { [GPU_IDLE_UNKNOWN] = gap } };
	if (call->start_ns <= start_ns)
		return (struct idle_parts){ .ns = { [GPU_DEVICE_DEPENDENCY] = gap } };
	return host_parts(p, call->thread, start_ns, call->start_ns < end_ns ? call->start_ns : end_ns, end_ns);
}

/* After the last work nobody asked for more. */
static struct idle_parts gap_parts(const struct timeline_private *p, const struct gpu_gap *gap)
{
	const struct gpu_call *call = gap->call == NONE ? NULL : &p->gpu_calls.items[gap->call];

	return gap->tail && call ? host_parts(p, call->thread, gap->start_ns, gap->end_ns, gap->end_ns) : gpu_idle_explain(p, gap->start_ns, gap->end_ns, call);
}

void gpu_idle_build(struct timeline_private *p)
{
	for (size_t i = 0; i < p->gpu_gaps.count; i++) {
		const struct gpu_gap *gap = &p->gpu_gaps.items[i];
		struct idle_parts parts = gap_parts(p, gap);

		for (int cause = 0; cause < GPU_IDLE_CAUSES; cause++)
			p->devices.items[gap->device].out.idle_ns[cause] += parts.ns[cause];
	}
}

/* ---- stacks ---- */

static int compare_idle_gaps(const void *left, const void *right)
{
	const struct gpu_idle_gap *a = left, *b = right;

	if (a->cause != b->cause)
		return a->cause < b->cause ? -1 : 1;
	if (a->node != b->node)
		return a->node < b->node ? -1 : 1;
	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns ? -1 : 1;
	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	return a->device < b->device ? -1 : a->device > b->device;
}

static int compare_stacks(const void *left, const void *right)
{
	const struct gpu_idle_stack *a = left, *b = right;

	if (a->time_ns != b->time_ns)
		return a->time_ns > b->time_ns ? -1 : 1;
	if (a->cause != b->cause)
		return (int)a->cause - (int)b->cause;
	return a->node < b->node ? -1 : a->node > b->node;
}

/* Where no call lasted for long enough, the stack that asked for the work. */
static uint32_t gap_node(const struct timeline_private *p, const struct gpu_gap *gap)
{
	uint32_t node = gap->node == NONE && gap->call != NONE && !gap->tail ? p->gpu_calls.items[gap->call].node : gap->node;

	return node == NONE || !p->export_node[node] ? NONE : p->export_node[node];
}

static size_t list_idle_gaps(const struct timeline_private *p, struct gpu_idle_gap *out)
{
	size_t count = 0;

	for (size_t i = 0; i < p->gpu_gaps.count; i++) {
		const struct gpu_gap *gap = &p->gpu_gaps.items[i];
		struct idle_parts of = gap_parts(p, gap);

		for (uint32_t cause = 0; cause < GPU_IDLE_CAUSES; cause++)
			if (of.ns[cause])
				out[count++] = (struct gpu_idle_gap){ .start_ns = gap->start_ns - p->timeline.start_ns, .end_ns = gap->end_ns - p->timeline.start_ns, .time_ns = of.ns[cause],
					.device = p->devices.items[gap->device].out.id, .node = gap_node(p, gap), .cause = (enum gpu_idle)cause };
	}
	qsort(out, count, sizeof *out, compare_idle_gaps);
	return count;
}

/* Gaps are sorted by cause, node and time: each run is one stack. */
static size_t group_idle_gaps(const struct gpu_idle_gap *gaps, size_t count, struct gpu_idle_stack *out)
{
	size_t stacks = 0;

	for (size_t i = 0, first; i < count; stacks++) {
		struct gpu_idle_stack *stack = &out[stacks];

		*stack = (struct gpu_idle_stack){ .cause = gaps[i].cause, .node = gaps[i].node };
		for (first = i; i < count && gaps[i].cause == gaps[first].cause && gaps[i].node == gaps[first].node; i++)
			stack->time_ns += gaps[i].time_ns;
		stack->count = i - first;
		stack->p50_ns = gaps[first + percentile_rank(i - first, 50) - 1].time_ns;
		stack->longest_ns = gaps[i - 1].time_ns;
		stack->longest_at_ns = gaps[i - 1].start_ns;
	}
	return stacks;
}

static void keep_stacks(struct timeline_private *p, struct gpu_idle_stack *stacks, size_t count)
{
	struct gpu_idle_stack *kept;

	qsort(stacks, count, sizeof *stacks, compare_stacks);
	count = count < GPU_IDLE_STACKS_MAX ? count : GPU_IDLE_STACKS_MAX;
	kept = arena_alloc(&p->arena, count * sizeof *kept + 1);
	p->failed |= !kept;
	if (!kept)
		return;
	memcpy(kept, stacks, count * sizeof *kept);
	p->timeline.gpu.idle_stacks = kept;
	p->timeline.gpu.idle_stack_count = count;
}

void gpu_idle_stacks_build(struct timeline_private *p)
{
	size_t room = p->gpu_gaps.count * GPU_IDLE_CAUSES + 1, count;
	struct gpu_idle_gap *smaller;
	struct gpu_idle_stack *stacks;

	if (!p->gpu_gaps.count)
		return;
	p->idle_gaps = malloc(room * sizeof *p->idle_gaps);
	if (!p->idle_gaps) {
		p->failed = true;
		return;
	}
	count = list_idle_gaps(p, p->idle_gaps);
	smaller = realloc(p->idle_gaps, (count + 1) * sizeof *smaller);
	p->idle_gaps = smaller ? smaller : p->idle_gaps;
	p->timeline.gpu.idle_gaps = p->idle_gaps;
	p->timeline.gpu.idle_gap_count = count;
	stacks = malloc((count + 1) * sizeof *stacks);
	p->failed |= !stacks;
	if (stacks)
		keep_stacks(p, stacks, group_idle_gaps(p->idle_gaps, count, stacks));
	free(stacks);
}
