/*
 * The second pass: replays every lane into the tree. The CPU time that a thread used between two readings is shared among the functions
 * that had self time there; those that are known to wait (by samples, or because that is what they are for) get next to nothing.
 */
#include "timeline/replay.h"
#include "timeline/stands.h"

struct calls {
	struct timeline_private *p;
	struct lane *lane;
	double cpu_share; /* of the thread, between the readings around now */
	LIST(uint32_t) slice; /* nodes with self time since the last reading */
	struct stands stands;
};

/* CPU share between reading I-1 and reading I of a thread, without the time in which it waited for a device; negative when a thread came and went between two readings. */
static double share_before(const struct timeline_private *p, const struct thread_build *thread, size_t i)
{
	const struct point *points = thread->points.items;
	uint64_t wall, cpu, sync;

	if (thread->points.count < 2)
		return p->point_count ? -1 : 0;
	if (i == 0)
		i = 1;
	if (i >= thread->points.count)
		i = thread->points.count - 1;
	wall = points[i].out.at_ns - points[i - 1].out.at_ns;
	cpu = points[i].out.cpu_ns - points[i - 1].out.cpu_ns;
	cpu = cpu < wall ? cpu : wall;
	sync = gpu_sync_within(p, thread, points[i - 1].out.at_ns, points[i].out.at_ns);
	cpu -= gpu_sync_cpu(thread, sync, wall, cpu);
	wall -= sync;
	return !wall ? 0 : cpu >= wall ? 1 : (double)cpu / (double)wall;
}

static double running_share(const struct timeline_private *p, struct name *function)
{
	enum { SAMPLES_TELL = 5 };
	uint64_t samples = function->ran + function->waited;

	/* Samples do not overrule it: on a busy machine a woken waiter stands there for long and only wants to run. */
	if (wait_is_waiter(p, function))
		return 0.01;
	return function->kind != FUNCTION_NATIVE && samples >= SAMPLES_TELL ? ((double)function->ran + 0.1) / (double)samples : 1;
}

static void end_slice(struct calls *calls)
{
	struct timeline_private *p = calls->p;
	bool read = calls->cpu_share >= 0;
	double self = 0, weights = 0;

	for (size_t i = 0; i < calls->slice.count; i++) {
		const struct node *node = &p->nodes.items[calls->slice.items[i]];

		self += node->slice_self;
		weights += node->slice_self * running_share(p, &p->names.list.items[node->function]);
	}
	for (size_t i = 0; i < calls->slice.count; i++) {
		struct node *node = &p->nodes.items[calls->slice.items[i]];
		double share = running_share(p, &p->names.list.items[node->function]);
		double cpu = !read ? share : weights > 0 ? calls->cpu_share * self / weights * share : 0;

		p->threads.items[node->thread].cpu_seen += node->slice_self * (cpu < 1 ? cpu : 1);
		node->cpu_seen += node->slice_self * (cpu < 1 ? cpu : 1);
		cpu = node->slice_estimated * (cpu < 1 ? cpu : 1);
		node->cpu_self += cpu;
		*(p->names.list.items[node->function].kind == FUNCTION_C ? &p->threads.items[node->thread].cpu_c : &p->threads.items[node->thread].cpu_python) += cpu;
		node->slice_self = node->slice_estimated = 0;
	}
	calls->slice.count = 0;
}

/* Time goes by: nearly always the next wait is ahead. */
static uint64_t sync_within(struct calls *calls, const struct thread_build *thread, uint64_t from_ns, uint64_t to_ns)
{
	const struct pieces *syncs = &thread->syncs;
	uint64_t start_ns = calls->p->timeline.start_ns;
	size_t *next = &calls->lane->sync;

	while (*next < syncs->count && syncs->items[*next].end_ns <= start_ns + from_ns)
		++*next;
	return *next < syncs->count && syncs->items[*next].start_ns < start_ns + to_ns ? gpu_sync_within(calls->p, thread, from_ns, to_ns) : 0;
}

static void run_node(struct calls *calls, struct thread_build *thread, uint32_t index, double weight, uint64_t from_ns, uint64_t to_ns)
{
	struct node *node = &calls->p->nodes.items[index];
	uint64_t passed = to_ns - from_ns, worked;
	double estimated = (double)passed * weight;

	if (!passed || node->function == NONE)
		return;
	node->self_ns += passed;
	spread_run(calls->p, node->function, from_ns, to_ns);
	node->estimated_self += estimated;
	worked = passed - sync_within(calls, thread, from_ns, to_ns);
	thread->leaf_ns[wait_of_leaf(calls->p, &calls->p->names.list.items[node->function])] += (double)worked * weight;
	thread->leaf_ns[THREAD_GPU_WAIT] += (double)(passed - worked) * weight;
	if (calls->cpu_share == 0 || !worked)
		return;
	if (node->slice_self <= 0) {
		uint32_t *slot = list_add_or_fail(&calls->slice, 4 * (size_t)NODES_LIMIT, &calls->p->failed);

		if (!slot)
			return;
		*slot = index;
	}
	node->slice_self += (double)worked;
	node->slice_estimated += (double)worked * weight;
}

/* The samples of [from, to) were taken in this call. Stacks of samples know no C functions: whether one waits is learned here, before its slice ends. */
static void take_samples(struct calls *calls, const struct thread_build *thread, uint32_t node, uint64_t from_ns, uint64_t to_ns)
{
	const struct timeline_private *p = calls->p;
	uint32_t index = p->nodes.items[node].function;
	struct name *function = index != NONE && p->names.list.items[index].kind == FUNCTION_C ? &p->names.list.items[index] : NULL;
	struct lane *lane = calls->lane;

	for (; lane->sample < thread->sample_end; lane->sample++) {
		struct sample *sample = &p->samples.items[p->sample_order[lane->sample]];

		if (sample->at_ns >= p->timeline.start_ns + to_ns)
			return;
		if (sample->at_ns < p->timeline.start_ns + from_ns)
			continue;
		sample->node = node;
		if (function)
			*(sample->running ? &function->ran : &function->waited) += 1;
	}
}

static void on_run(void *context, const struct replay *replay, uint64_t from_ns, uint64_t to_ns)
{
	struct calls *calls = context;
	struct lane *lane = replay->lane;
	struct thread_build *thread = &calls->p->threads.items[lane->thread];
	uint32_t node = replay->frames.items[replay->frames.count - 1].node;
	double weight = lane->segments.items[replay->segment].weight;

	take_samples(calls, thread, node, from_ns, to_ns);
	stands_run(calls->p, &calls->stands, lane, replay->segment, node, from_ns, to_ns);
	if (thread->syscall_end)
		syscalls_run(calls->p, lane, node, from_ns, to_ns);
	if (thread->drives_gpu) {
		gpu_calls_run(calls->p, lane, node, from_ns, to_ns);
		rests_run(calls->p, replay, from_ns, to_ns);
	}
	while (lane->point < thread->points.count && thread->points.items[lane->point].out.at_ns <= to_ns) {
		struct point *point = &thread->points.items[lane->point];

		if (point->out.at_ns >= from_ns) {
			run_node(calls, thread, node, weight, from_ns, point->out.at_ns);
			from_ns = point->out.at_ns;
			point->node = node;
		}
		lane->point++;
		end_slice(calls);
		calls->cpu_share = share_before(calls->p, thread, lane->point);
	}
	run_node(calls, thread, node, weight, from_ns, to_ns);
}

static void on_open(void *context, const struct replay *replay, struct frame *frame, bool counts)
{
	struct calls *calls = context;
	uint32_t thread = replay->lane->thread;
	uint32_t parent = replay->frames.count > 1 ? frame[-1].node : tree_root(calls->p, thread);

	frame->node = tree_child(calls->p, parent, frame->function, thread);
	if (counts) {
		struct node *node = &calls->p->nodes.items[frame->node];

		node->calls++;
		node->estimated_calls += replay->lane->segments.items[replay->segment].weight;
	}
	if (!frame->open_start)
		stands_enter(calls->p, &calls->stands, replay->lane, replay->segment, parent, frame->node, frame->start_ns, counts);
	if (replay->frames.count == 1)
		rests_open(calls->p, replay);
	if (replay->frames.count > calls->p->threads.items[thread].out.deepest)
		calls->p->threads.items[thread].out.deepest = replay->frames.count;
}

/* One inside another of the same function is part of it; what a generator or coroutine does between two yields is no whole request. */
static bool is_scope(const struct replay *replay, const struct frame *frame)
{
	if (frame->suspended || frame->kind == EVENT_PY_RESUME)
		return false;
	for (const struct frame *outer = replay->frames.items; outer < frame; outer++)
		if (outer->function == frame->function)
			return false;
	return true;
}

static void on_close(void *context, const struct replay *replay, const struct frame *frame, uint64_t at_ns, bool open_end, bool exception)
{
	struct calls *calls = context;
	struct node *node = &calls->p->nodes.items[frame->node];
	uint64_t took = at_ns - frame->start_ns;

	if (took > node->longest_ns)
		node->longest_ns = took;
	node->exceptions += exception;
	if (!open_end && node->parent != NONE) /* the root stands for a node for which there was no memory */
		stands_leave(calls->p, &calls->stands, calls->lane, replay->segment, node->parent, frame->node, at_ns);
	gpu_gaps_close(calls->p, calls->lane, frame->node, frame->start_ns, at_ns);
	if (replay->frames.count == 1)
		rests_close(calls->p, replay, at_ns, open_end);
	if (calls->p->names.list.items[frame->function].scope && is_scope(replay, frame))
		scopes_call(calls->p, frame->function, frame->start_ns, at_ns, frame->open_start, open_end);
}

static const struct replay_hooks hooks = { on_run, on_open, on_close };

struct lane_calls {
	struct replay replay;
	struct calls calls;
};

static struct lane_calls *begin_lane(struct timeline_private *p, struct lane *lane)
{
	struct lane_calls *state = calloc(1, sizeof *state);

	if (!state) {
		p->failed = true;
		return NULL;
	}
	state->calls = (struct calls){ .p = p, .lane = lane };
	state->calls.cpu_share = share_before(p, &p->threads.items[lane->thread], 0);
	replay_init(&state->replay, p, &hooks, &state->calls, lane);
	lane->replay = &state->replay;
	return state;
}

static void replay_lane_chunk(struct timeline_private *p, struct lane *lane, const struct chunk *chunk)
{
	struct lane_calls *state = lane->replay ? (struct lane_calls *)lane->replay : begin_lane(p, lane);
	struct event_cursor c = event_cursor(chunk->events, chunk->size);
	struct ticks ticks = ticks_of(&chunk->clock);
	uint64_t start = p->timeline.start_ns, at_ns;

	if (!state)
		return;
	replay_chunk(&state->replay, chunk, &ticks);
	while (event_next(&c)) {
		if (c.event.kind > EVENT_SEED)
			continue;
		at_ns = ticks_to_ns(&ticks, c.event.ticks);
		replay_event(&state->replay, &c, at_ns > start ? at_ns - start : 0);
	}
}

static void end_lane(struct timeline_private *p, struct lane *lane)
{
	struct timeline_quality *quality = &p->timeline.quality;
	struct replay *replay = lane->replay;

	if (!replay)
		return;
	replay_end(replay);
	end_slice(&((struct lane_calls *)replay)->calls);
	stands_end(p, &((struct lane_calls *)replay)->calls.stands, lane);
	list_done(&((struct lane_calls *)replay)->calls.slice);
	p->failed |= replay->failed;
	quality->unmatched += replay->unmatched;
	quality->outside += replay->outside;
	quality->other_calls += replay->too_deep;
	replay_done(replay);
	free(replay);
	lane->replay = NULL;
}

/* A cost that no hook can have had is the target's word alone. */
static void charge_threads(struct timeline_private *p)
{
	for (size_t i = 0; i < p->threads.count; i++) {
		struct thread *thread = &p->threads.items[i].out;
		double ns = ((double)thread->events + (double)thread->lost) * p->hook_cost_ns;

		thread->hooks_ns = ns > 0 && ns < 1e18 ? (uint64_t)ns : 0;
	}
}

int calls_read(struct timeline_private *p, struct trace *trace, struct error *err)
{
	struct chunk chunk;
	int status = 0;

	spread_begin(p);
	p->hook_cost_ns = (double)facts_counter(p, "cost_ps_py") / 1000;
	while (!p->failed && (status = trace_next(trace, &chunk, err)) > 0) {
		struct lane *lane = lanes_find(p, &chunk);

		if (lane && lane->kind == LANE_THREAD && chunk.lane_kind == LANE_THREAD && lane->thread != NONE)
			replay_lane_chunk(p, lane, &chunk);
	}
	for (size_t i = 0; i < p->lanes.count; i++)
		end_lane(p, &p->lanes.items[i]);
	stands_share_cpu(p);
	charge_threads(p);
	if (p->failed)
		return fail(err, ERR_MEMORY, "reading calls: out of memory");
	return status;
}
