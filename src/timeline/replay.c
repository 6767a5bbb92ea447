/* The state machine of one lane. It believes nothing: times may go backwards, leaves may match no enter, refs may be forged. */
#include "timeline/replay.h"

enum {
	EDGE_NS = 1000000,   /* a hook that began before a window's end may write its event a little later */
	SEARCH_FRAMES = 256, /* how deep a leave looks for its enter */
};

void replay_init(struct replay *replay, const struct timeline_private *p, const struct replay_hooks *hooks, void *context, struct lane *lane)
{
	*replay = (struct replay){ .p = p, .hooks = hooks, .context = context, .lane = lane };
	if (lane->segments.count)
		replay->now_ns = lane->segments.items[0].start_ns;
}

void replay_done(struct replay *replay)
{
	list_done(&replay->frames);
	list_done(&replay->seeds);
	list_done(&replay->before);
}

static void run_to(struct replay *replay, uint64_t at_ns)
{
	if (at_ns <= replay->now_ns)
		return;
	if (replay->frames.count)
		replay->hooks->run(replay->context, replay, replay->now_ns, at_ns);
	replay->now_ns = at_ns;
}

static void push(struct replay *replay, uint32_t function, uint8_t kind, uint64_t start_ns, bool open_start, uint32_t omitted)
{
	struct frame *frame = list_add_or_fail(&replay->frames, FRAMES_LIMIT, &replay->failed);

	if (!frame) {
		replay->too_deep++;
		return;
	}
	*frame = (struct frame){ .function = function, .start_ns = start_ns, .kind = kind, .open_start = open_start, .omitted = omitted };
	replay->hooks->open(replay->context, replay, frame, !open_start && kind != EVENT_PY_RESUME);
}

static void pop(struct replay *replay, bool open_end, bool exception)
{
	struct frame *frame = &replay->frames.items[replay->frames.count - 1];

	replay->hooks->close(replay->context, replay, frame, replay->now_ns, open_end, exception);
	replay->frames.count--;
}

static void pop_to(struct replay *replay, size_t count)
{
	while (replay->frames.count > count)
		pop(replay, true, false);
}

/* The stack as it stands, remembered over the time in which it cannot be watched. */
static void remember(struct replay *replay)
{
	replay->before.count = 0;
	replay->before_whole = true;
	for (size_t i = 0; i < replay->frames.count; i++) {
		uint32_t *function = list_add_or_fail(&replay->before, FRAMES_LIMIT, &replay->failed);

		if (!function || replay->frames.items[i].omitted)
			replay->before_whole = false;
		if (function)
			*function = replay->frames.items[i].function;
	}
}

static void leave_segment(struct replay *replay)
{
	const struct segment *segment = replay_segment(replay);

	if (replay->known) {
		run_to(replay, segment->end_ns);
		remember(replay);
		pop_to(replay, 0);
		replay->quiet_from = replay->segment + 1;
	}
	replay->known = false;
	replay->segment++;
	segment = replay_segment(replay);
	if (segment)
		replay->now_ns = segment->start_ns;
}

/* Moves to the segment of AT. False when hooks were off at AT: the event says nothing. */
static bool reach(struct replay *replay, uint64_t *at_ns)
{
	const struct segment *segment;

	while ((segment = replay_segment(replay)) && *at_ns >= segment->end_ns) {
		uint64_t late = *at_ns - segment->end_ns;
		bool last = replay->segment + 1 == replay->lane->segments.count;

		if (late <= EDGE_NS && replay->known && (last || *at_ns + late < segment[1].start_ns)) {
			*at_ns = segment->end_ns;
			break;
		}
		leave_segment(replay);
	}
	if (!segment)
		return false;
	if (*at_ns < segment->start_ns && segment->start_ns - *at_ns > EDGE_NS)
		return false;
	if (*at_ns < replay->now_ns)
		*at_ns = replay->now_ns;
	return true;
}

static size_t common_frames(const struct replay *replay)
{
	size_t same = 0;

	if (replay->seeds_omitted || (replay->frames.count && replay->frames.items[0].omitted))
		return 0;
	while (same < replay->frames.count && same < replay->seeds.count && replay->frames.items[same].function == replay->seeds.items[same])
		same++;
	return same;
}

static void push_seeds(struct replay *replay, size_t from, uint64_t start_ns)
{
	if (replay->seeds_omitted && !from)
		push(replay, NAME_UNKNOWN, EVENT_PY_ENTER, start_ns, true, replay->seeds_omitted);
	for (size_t i = from; i < replay->seeds.count; i++)
		push(replay, replay->seeds.items[i], EVENT_PY_ENTER, start_ns, true, 0);
}

static bool stayed(const struct replay *replay)
{
	return replay->before_whole && !replay->seeds_omitted && replay->before.count && replay->before.count == replay->seeds.count &&
		memcmp(replay->before.items, replay->seeds.items, replay->seeds.count * sizeof *replay->seeds.items) == 0;
}

/* The thread called and returned nothing in the segments since it was last seen, and then stood where it had stood: it was there
 * all the time. An idle event loop is like that; without this its waiting would be missed and its work overrated. */
static void credit_quiet(struct replay *replay)
{
	size_t here = replay->segment;

	for (size_t i = replay->quiet_from; i < here; i++) {
		const struct segment *segment = &replay->lane->segments.items[i];

		replay->segment = i;
		replay->now_ns = segment->start_ns;
		push_seeds(replay, 0, segment->start_ns);
		run_to(replay, segment->end_ns);
		pop_to(replay, 0);
	}
	replay->segment = here;
	replay->now_ns = replay->lane->segments.items[here].start_ns;
}

static void finish_seeds(struct replay *replay)
{
	size_t same;

	if (!replay->seeding)
		return;
	replay->seeding = false;
	if (!replay_segment(replay))
		return;
	if (!replay->known && stayed(replay))
		credit_quiet(replay);
	/* First sight in this segment: what is on the stack now was there since the segment began, as nothing was called since. */
	same = common_frames(replay);
	pop_to(replay, same);
	push_seeds(replay, same, replay->now_ns);
	replay->known = true;
}

static void begin_seeds(struct replay *replay, uint32_t omitted)
{
	replay->seeds.count = 0;
	replay->seeding = true;
	replay->seeds_omitted = omitted;
}

static void add_seed(struct replay *replay, uint32_t function)
{
	uint32_t *seed = list_add_or_fail(&replay->seeds, FRAMES_LIMIT, &replay->failed);

	if (seed)
		*seed = function;
	else
		replay->too_deep++;
}

static bool same_kind(uint8_t enter, uint8_t leave)
{
	return (enter == EVENT_C_ENTER) == (leave == EVENT_C_LEAVE);
}

static void leave(struct replay *replay, uint32_t function, uint8_t kind, bool exception)
{
	size_t count = replay->frames.count, searched = 0;

	for (size_t i = count; i-- > 0 && searched < SEARCH_FRAMES; searched++) {
		struct frame *frame = &replay->frames.items[i];

		if (frame->omitted)
			break;
		if (frame->function != function || !same_kind(frame->kind, kind))
			continue;
		while (replay->frames.count > i + 1) { /* their leaves were missed */
			replay->unmatched++;
			pop(replay, true, false);
		}
		frame->suspended = kind == EVENT_PY_YIELD;
		pop(replay, false, exception);
		return;
	}
	if (count == 1 && replay->frames.items[0].omitted) { /* one of the frames below what we know */
		if (!--replay->frames.items[0].omitted)
			pop(replay, true, exception);
		return;
	}
	replay->unmatched++;
}

/* The stack as the writer knew it: its depth and the innermost refs. */
static void seed_from_chunk(struct replay *replay, const struct chunk *chunk)
{
	uint32_t there = chunk->ref_count < LANE_DEPTH_REFS ? chunk->ref_count : LANE_DEPTH_REFS;
	uint32_t count = there < chunk->depth ? there : chunk->depth;

	if (!chunk->depth)
		return;
	begin_seeds(replay, chunk->depth - count);
	for (uint32_t i = there - count; i < there; i++)
		add_seed(replay, names_find(replay->p, replay->lane->process, chunk->refs[i]));
	finish_seeds(replay);
}

void replay_chunk(struct replay *replay, const struct chunk *chunk, const struct ticks *ticks)
{
	bool lost = replay->sequence && chunk->sequence > replay->sequence + 1;
	struct event_cursor first = event_cursor(chunk->events, chunk->size);
	uint64_t at_ns;

	lost |= chunk->lost_before > replay->lost;
	if (chunk->sequence > replay->sequence)
		replay->sequence = chunk->sequence;
	if (chunk->lost_before > replay->lost)
		replay->lost = chunk->lost_before;
	if ((replay->began && !lost) || !event_next(&first))
		return;
	replay->began = true;
	at_ns = ticks_to_ns(ticks, first.event.ticks);
	at_ns = at_ns > replay->p->timeline.start_ns ? at_ns - replay->p->timeline.start_ns : 0;
	finish_seeds(replay);
	if (lost && replay->known) { /* what was open is open no longer, for all we know */
		pop_to(replay, 0);
		replay->known = false;
	}
	if (!reach(replay, &at_ns) || first.event.kind == EVENT_STACK_BEGIN)
		return;
	seed_from_chunk(replay, chunk);
}

void replay_event(struct replay *replay, const struct event_cursor *at, uint64_t at_ns)
{
	const struct event *event = &at->event;
	uint32_t function;

	if (event->kind == EVENT_SEED) {
		if (replay->seeding)
			add_seed(replay, names_find(replay->p, replay->lane->process, event->ref));
		return;
	}
	finish_seeds(replay);
	if (!reach(replay, &at_ns)) {
		replay->outside++;
		return;
	}
	if (event->kind == EVENT_STACK_BEGIN) {
		if (replay->known)
			run_to(replay, at_ns);
		begin_seeds(replay, event_u32(at, 0));
		return;
	}
	run_to(replay, at_ns);
	replay->known = true;
	function = names_find(replay->p, replay->lane->process, event->ref);
	switch (event->kind) {
	case EVENT_PY_ENTER:
	case EVENT_PY_RESUME:
	case EVENT_C_ENTER:
		push(replay, function, event->kind, replay->now_ns, false, 0);
		break;
	case EVENT_PY_LEAVE:
	case EVENT_PY_YIELD:
	case EVENT_C_LEAVE:
		leave(replay, function, event->kind, event->flags & EVENT_FLAG_EXCEPTION);
		break;
	default: /* LINE, RAISE: nothing opens or closes */
		break;
	}
}

void replay_end(struct replay *replay)
{
	finish_seeds(replay);
	if (replay_segment(replay) && replay->known)
		leave_segment(replay);
}
