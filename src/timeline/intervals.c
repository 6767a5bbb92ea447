/* One more pass, for exports: every closed call and every other interval, through the same replay as the totals. */
#include <stdio.h>

#include "base/text.h"
#include "timeline/replay.h"

struct scope_texts { char *name, *metadata; };

struct lane_intervals {
	struct replay replay; /* first: lane->replay points at it */
	struct intervals *all;
	uint32_t thread, number, process;
};

struct intervals {
	const struct timeline_private *p;
	bool (*begin)(void *context, const struct interval *interval);
	bool (*each)(void *context, const struct interval *interval);
	void *context;
	struct lane_intervals **lanes; /* by index of the lane */
	struct text name, metadata;    /* of the interval at hand */
	struct open_scopes scopes;     /* what is kept of each: which of the texts are its */
	LIST(struct scope_texts) texts;
	bool devices;                  /* nothing but their work is wanted */
	bool ended, failed;
};

/* Nothing ends before it begins or lies outside the measurement, whatever the trace claims. */
static void give_to(struct intervals *all, bool (*to)(void *context, const struct interval *interval), struct interval interval)
{
	uint64_t duration = all->p->timeline.duration_ns;

	interval.start_ns = interval.start_ns < duration ? interval.start_ns : duration;
	interval.end_ns = interval.end_ns < duration ? interval.end_ns : duration;
	if (interval.end_ns < interval.start_ns)
		interval.end_ns = interval.start_ns;
	if (!all->ended && !to(all->context, &interval))
		all->ended = true;
}

static void give(struct intervals *all, struct interval interval)
{
	give_to(all, all->each, interval);
}

static uint32_t exported(const struct timeline_private *p, uint32_t function)
{
	return p->export_function[function];
}

static void on_run(void *context, const struct replay *replay, uint64_t from_ns, uint64_t to_ns)
{
}

static struct interval call_of(const struct lane_intervals *lane, const struct replay *replay, const struct frame *frame, uint64_t end_ns)
{
	return (struct interval){ .kind = frame->kind == EVENT_C_ENTER ? EVENT_C_ENTER : EVENT_PY_ENTER, .start_ns = frame->start_ns, .end_ns = end_ns,
		.thread = lane->thread, .function = exported(replay->p, frame->function), .depth = (uint32_t)replay->frames.count - 1, .lane = lane->number, .process = lane->process,
		.open_start = frame->open_start, .name = "", .metadata = "" };
}

static void on_open(void *context, const struct replay *replay, struct frame *frame, bool counts)
{
	struct lane_intervals *lane = context;

	if (lane->all->begin)
		give_to(lane->all, lane->all->begin, call_of(lane, replay, frame, frame->start_ns));
}

static void on_close(void *context, const struct replay *replay, const struct frame *frame, uint64_t at_ns, bool open_end, bool exception)
{
	struct lane_intervals *lane = context;
	struct interval interval = call_of(lane, replay, frame, at_ns);

	interval.open_end = open_end;
	interval.exception = exception;
	give(lane->all, interval);
}

static const struct replay_hooks hooks = { on_run, on_open, on_close };

static char *copy_string(const struct event_cursor *c, unsigned field)
{
	size_t length;
	const char *bytes = event_str(c, field, &length);

	return strndup(bytes, length);
}

/* Those beyond what the timeline keeps (scopes.c) are counted there. */
static void enter_scope(struct lane_intervals *lane, const struct event_cursor *c, uint64_t at_ns)
{
	struct intervals *all = lane->all;
	struct open_scope *scope = open_scopes_begin(&all->scopes, lane->number, event_u64(c, 0), at_ns, &all->failed);
	struct scope_texts *texts;

	if (!scope)
		return;
	scope->kept = (uint32_t)(scope - all->scopes.list.items);
	texts = scope->kept < all->texts.count ? &all->texts.items[scope->kept] : list_add_or_fail(&all->texts, OPEN_SCOPES_LIMIT, &all->failed);
	if (!texts) {
		open_scopes_end(&all->scopes, lane->number, event_u64(c, 0));
		return;
	}
	*texts = (struct scope_texts){ copy_string(c, 1), copy_string(c, 2) };
	if (!texts->name || !texts->metadata)
		all->failed = true;
}

static void give_scope(struct lane_intervals *lane, const struct open_scope *scope, uint64_t at_ns, bool open_end)
{
	struct scope_texts *texts = &lane->all->texts.items[scope->kept];
	struct interval interval = { .kind = EVENT_SCOPE_ENTER, .start_ns = scope->start_ns, .end_ns = at_ns, .thread = lane->thread, .function = NONE,
		.lane = lane->number, .process = lane->process, .open_end = open_end, .name = texts->name ? texts->name : "", .metadata = texts->metadata ? texts->metadata : "" };

	give(lane->all, interval);
	interval.kind = EVENT_SCOPE_EXIT;
	interval.start_ns = at_ns;
	if (!open_end)
		give(lane->all, interval);
	free(texts->name);
	free(texts->metadata);
	*texts = (struct scope_texts){ NULL, NULL };
}

static void exit_scope(struct lane_intervals *lane, const struct event_cursor *c, uint64_t at_ns)
{
	const struct open_scope *scope = open_scopes_end(&lane->all->scopes, lane->number, event_u64(c, 0));

	if (scope)
		give_scope(lane, scope, at_ns, false);
}

/* By lane, then newest first; those that have ended last. */
static int compare_open(const void *left, const void *right)
{
	const struct open_scope *a = left, *b = right;

	if (a->open != b->open)
		return a->open ? -1 : 1;
	if (a->lane != b->lane)
		return a->lane < b->lane ? -1 : 1;
	return a->order > b->order ? -1 : a->order < b->order;
}

/* NUL-terminated, until the next one. */
static const char *string_in(struct text *room, const struct event_cursor *c, unsigned field)
{
	size_t length;
	const char *bytes = event_str(c, field, &length);

	text_clear(room);
	text_add(room, bytes, length);
	return text_string(room);
}

/* Joins work of a device and the call that asked for it: each process numbers its calls by itself. */
static uint64_t flow_of(const struct lane_intervals *lane, uint32_t correlation)
{
	return correlation ? (uint64_t)lane->process << 32 | correlation : 0;
}

/* What stands in one event: instants, system calls, allocations, the device's work. */
static void give_single(struct intervals *all, const struct lane_intervals *lane, const struct event_cursor *c, uint64_t at_ns)
{
	struct interval interval = { .kind = c->event.kind, .start_ns = at_ns, .end_ns = at_ns, .thread = lane->thread, .function = NONE, .lane = lane->number, .process = lane->process, .name = "", .metadata = "" };
	uint32_t caller;

	switch (c->event.kind) {
	case EVENT_INSTANT:
		interval.name = string_in(&all->name, c, 0);
		interval.metadata = string_in(&all->metadata, c, 1);
		break;
	case EVENT_CPU_SYSCALL:
		interval.end_ns += event_u64(c, 0);
		interval.name = string_in(&all->name, c, 3);
		caller = c->event.ref ? map_get(&all->p->thread_index, c->event.ref) : MAP_ABSENT;
		if (caller != MAP_ABSENT)
			interval.thread = all->p->export_thread[caller];
		interval.sampled = c->event.flags & EVENT_FLAG_SAMPLED;
		if (interval.sampled)
			interval.metadata = "estimated from samples";
		break;
	case EVENT_MEMORY_ALLOC:
		interval.bytes = event_u64(c, 1);
		break;
	case EVENT_MEMORY_FREE:
		break;
	case EVENT_GC: /* it is told at its end */
		interval.start_ns -= event_u64(c, 0) < at_ns ? event_u64(c, 0) : at_ns;
		text_clear(&all->name);
		text_printf(&all->name, "collection of garbage, generation %u", c->event.ref);
		interval.name = text_string(&all->name);
		break;
	case EVENT_GPU_API:
		interval.end_ns += event_u64(c, 0);
		interval.name = string_in(&all->name, c, 3);
		interval.correlation = event_u32(c, 1);
		interval.flow = flow_of(lane, interval.correlation);
		caller = map_get(&all->p->thread_index, event_u32(c, 2)); /* it stands in the device's lane */
		if (caller != MAP_ABSENT)
			interval.thread = all->p->export_thread[caller];
		break;
	case EVENT_GPU_KERNEL:
		interval.name = string_in(&all->name, c, 10);
		for (unsigned i = 0; i < 3; i++) {
			interval.grid[i] = event_u32(c, 4 + i);
			interval.block[i] = event_u32(c, 7 + i);
		}
		/* fall through */
	default: /* copies, memset, sync */
		interval.end_ns += event_u64(c, 0);
		interval.correlation = event_u32(c, 1);
		interval.flow = flow_of(lane, interval.correlation);
		interval.device = event_u32(c, 2);
		interval.stream = event_u32(c, 3);
		if (c->event.kind != EVENT_GPU_KERNEL && c->event.kind != EVENT_GPU_SYNC)
			interval.bytes = event_u64(c, 4);
		if (c->event.kind >= EVENT_H2D_COPY && c->event.kind <= EVENT_D2D_COPY)
			interval.memory_kinds = event_u32(c, 5);
		break;
	}
	all->failed |= all->name.failed || all->metadata.failed;
	give(all, interval);
}

static bool of_device(unsigned kind)
{
	return kind >= EVENT_GPU_KERNEL && kind <= EVENT_GPU_API;
}

static bool is_single(unsigned kind)
{
	return kind == EVENT_INSTANT || kind == EVENT_CPU_SYSCALL || kind == EVENT_MEMORY_ALLOC || kind == EVENT_MEMORY_FREE || kind == EVENT_GC || of_device(kind);
}

static struct lane_intervals *lane_state(struct intervals *all, size_t index)
{
	struct lane_intervals *state = all->lanes[index];
	struct lane *lane = &all->p->lanes.items[index];

	if (state)
		return state;
	state = calloc(1, sizeof *state);
	if (!state) {
		all->failed = true;
		return NULL;
	}
	state->all = all;
	state->number = (uint32_t)index;
	state->process = all->p->lanes.items[index].process;
	state->thread = lane->owner == NONE ? NONE : all->p->export_thread[lane->owner];
	replay_init(&state->replay, all->p, &hooks, state, lane);
	all->lanes[index] = state;
	return state;
}

static void read_chunk(struct intervals *all, size_t index, const struct chunk *chunk)
{
	struct event_cursor c = event_cursor(chunk->events, chunk->size);
	struct ticks ticks = ticks_of(&chunk->clock);
	uint64_t start = all->p->timeline.start_ns, at_ns;
	struct lane_intervals *lane = lane_state(all, index);

	if (!lane)
		return;
	if (lane->replay.lane->kind == LANE_THREAD && lane->thread != NONE)
		replay_chunk(&lane->replay, chunk, &ticks);
	while (!all->ended && event_next(&c)) {
		at_ns = ticks_to_ns(&ticks, c.event.ticks);
		at_ns = at_ns > start ? at_ns - start : 0;
		if (c.event.kind <= EVENT_SEED) {
			if (lane->replay.lane->kind == LANE_THREAD && lane->thread != NONE)
				replay_event(&lane->replay, &c, at_ns);
		} else if (c.event.kind == EVENT_SCOPE_ENTER) {
			enter_scope(lane, &c, at_ns);
		} else if (c.event.kind == EVENT_SCOPE_EXIT) {
			exit_scope(lane, &c, at_ns);
		} else if (is_single(c.event.kind)) {
			give_single(all, lane, &c, at_ns);
		}
	}
}

/* SCOPE: the first that is open in this lane or in one behind it. */
static void end_lane(struct intervals *all, struct lane_intervals *lane, size_t *scope)
{
	if (!lane)
		return;
	replay_end(&lane->replay);
	for (; *scope < all->scopes.list.count && all->scopes.list.items[*scope].open && all->scopes.list.items[*scope].lane == lane->number; ++*scope)
		give_scope(lane, &all->scopes.list.items[*scope], all->p->timeline.duration_ns, true);
	all->failed |= lane->replay.failed;
	replay_done(&lane->replay);
	free(lane);
}

static void read_device_work(struct intervals *all, size_t index, const struct chunk *chunk)
{
	struct event_cursor c = event_cursor(chunk->events, chunk->size);
	struct ticks ticks = ticks_of(&chunk->clock);
	uint64_t start = all->p->timeline.start_ns, at_ns;
	const struct lane *lane = &all->p->lanes.items[index];
	const struct lane_intervals of = { .thread = lane->thread == NONE ? NONE : all->p->export_thread[lane->thread], .number = (uint32_t)index, .process = lane->process };

	while (!all->ended && event_next(&c)) {
		if (!of_device(c.event.kind))
			continue;
		at_ns = ticks_to_ns(&ticks, c.event.ticks);
		give_single(all, &of, &c, at_ns > start ? at_ns - start : 0);
	}
}

static int read_all(struct intervals *all, struct trace *trace, struct error *err)
{
	struct chunk chunk;
	size_t scope = 0;
	int status = 0;

	if (trace_rewind(trace, err) < 0)
		return -1;
	while (!all->ended && !all->failed && (status = trace_next(trace, &chunk, err)) > 0) {
		const struct lane *lane = lanes_find(all->p, &chunk);
		size_t index = lane ? (size_t)(lane - all->p->lanes.items) : 0;

		if (lane && !all->devices)
			read_chunk(all, index, &chunk);
		else if (lane && lane->of_devices)
			read_device_work(all, index, &chunk);
	}
	if (all->scopes.list.count)
		qsort(all->scopes.list.items, all->scopes.list.count, sizeof *all->scopes.list.items, compare_open);
	for (size_t i = 0; i < all->p->lanes.count; i++)
		end_lane(all, all->lanes[i], &scope);
	return status;
}

static int walk(struct intervals *all, struct trace *trace, struct error *err)
{
	int status;

	all->lanes = calloc(all->p->lanes.count + 1, sizeof *all->lanes);
	status = all->lanes ? read_all(all, trace, err) : fail(err, ERR_MEMORY, "listing intervals: out of memory");
	free(all->lanes);
	open_scopes_done(&all->scopes);
	list_done(&all->texts);
	text_done(&all->name);
	text_done(&all->metadata);
	if (status >= 0 && all->failed)
		return fail(err, ERR_MEMORY, "listing intervals: out of memory");
	return status < 0 ? -1 : 0;
}

int timeline_walk(const struct timeline *timeline, struct trace *trace, bool (*begin)(void *context, const struct interval *interval), bool (*each)(void *context, const struct interval *interval), void *context, struct error *err)
{
	struct intervals all = { .p = timeline->private_, .begin = begin, .each = each, .context = context };

	return walk(&all, trace, err);
}

int timeline_intervals(const struct timeline *timeline, struct trace *trace, bool (*each)(void *context, const struct interval *interval), void *context, struct error *err)
{
	return timeline_walk(timeline, trace, NULL, each, context, err);
}

int timeline_device_work(const struct timeline *timeline, struct trace *trace, bool (*each)(void *context, const struct interval *interval), void *context, struct error *err)
{
	struct intervals all = { .p = timeline->private_, .each = each, .context = context, .devices = true };

	return walk(&all, trace, err);
}
