/*
 * The first pass, chunk by chunk: processes, threads and lanes as they come up, and for each lane when it has events and where it lost some. Whatever an event
 * tells beyond that is for facts.c.
 */
#include "timeline/private.h"
#include "timeline/ticks.h"

static uint32_t process_of(struct timeline_private *p, uint32_t number)
{
	uint32_t index = map_get(&p->process_index, number);
	struct process_build *process;

	if (index != MAP_ABSENT)
		return index;
	process = list_add_or_fail(&p->processes, PROCESSES_LIMIT, &p->failed);
	if (!process)
		return NONE;
	p->failed |= !map_put(&p->process_index, number, (uint32_t)p->processes.count - 1);
	process->number = number;
	return (uint32_t)p->processes.count - 1;
}

/* Tids are the attacher's, so that they tell threads of different processes apart. */
struct thread_build *lanes_thread(struct timeline_private *p, uint32_t process, uint32_t tid)
{
	uint32_t index = map_get(&p->thread_index, tid);
	struct thread_build *thread;

	if (index != MAP_ABSENT)
		return &p->threads.items[index];
	thread = list_add_or_fail(&p->threads, THREADS_LIMIT, &p->failed);
	if (!thread)
		return NULL;
	if (!map_put(&p->thread_index, tid, (uint32_t)p->threads.count - 1))
		p->failed = true;
	thread->out.tid = tid;
	thread->process = process;
	thread->first_event = thread->first_reading = NO_TIME;
	thread->last_stack = thread->root = thread->other = NONE;
	return thread;
}

static uint64_t lane_key(const struct timeline_private *p, const struct chunk *chunk)
{
	return (uint64_t)map_get(&p->process_index, chunk->process) << 32 | chunk->lane;
}

struct lane *lanes_find(const struct timeline_private *p, const struct chunk *chunk)
{
	uint32_t index = map_get(&p->lane_index, lane_key(p, chunk));

	return index == MAP_ABSENT ? NULL : &p->lanes.items[index];
}

static struct lane *lane_of(struct timeline_private *p, const struct chunk *chunk)
{
	struct lane *lane = lanes_find(p, chunk);
	uint32_t process = process_of(p, chunk->process);

	if (lane || process == NONE)
		return lane;
	lane = list_add_or_fail(&p->lanes, LANES_LIMIT, &p->failed);
	if (!lane)
		return NULL;
	if (!map_put(&p->lane_index, lane_key(p, chunk), (uint32_t)p->lanes.count - 1))
		p->failed = true;
	lane->number = chunk->lane;
	lane->process = process;
	lane->kind = chunk->lane_kind;
	lane->first_ns = NO_TIME;
	lane->thread = lane->owner = NONE;
	lane->emptied_ns = NO_TIME;
	if (chunk->lane_kind == LANE_THREAD || (chunk->lane_kind == LANE_GPU && chunk->tid)) {
		struct thread_build *thread = lanes_thread(p, process, chunk->tid);

		lane->owner = thread ? (uint32_t)(thread - p->threads.items) : NONE;
	}
	if (chunk->lane_kind == LANE_THREAD)
		lane->thread = lane->owner;
	return lane;
}

static void note_lane_event(struct timeline_private *p, struct lane *lane, uint64_t at_ns)
{
	struct thread_build *thread = lane->thread == NONE ? NULL : &p->threads.items[lane->thread];

	if (at_ns < lane->first_ns)
		lane->first_ns = at_ns;
	if (at_ns > lane->last_ns)
		lane->last_ns = at_ns;
	if (at_ns < p->first_event)
		p->first_event = at_ns;
	if (at_ns > p->last_event)
		p->last_event = at_ns;
	if (!thread)
		return;
	if (at_ns < thread->first_event)
		thread->first_event = at_ns;
	if (at_ns > thread->last_event)
		thread->last_event = at_ns;
}

static void add_gap(struct timeline_private *p, struct lane *lane, uint64_t start_ns, uint64_t end_ns)
{
	p->failed |= !pieces_add(&lane->gaps, start_ns, end_ns, WINDOWS_LIMIT);
}

/* Losses before a chunk: told by its sequence number and by the total it carries. */
static void note_loss(struct timeline_private *p, struct lane *lane, const struct chunk *chunk, uint64_t first_ns)
{
	bool gap = lane->sequence && chunk->sequence > lane->sequence + 1;

	if (chunk->lost_before > lane->lost) {
		lane->lost = chunk->lost_before;
		gap = true;
	}
	if (gap)
		add_gap(p, lane, lane->last_ns ? lane->last_ns : 0, first_ns);
	if (chunk->sequence > lane->sequence)
		lane->sequence = chunk->sequence;
}

/* Calls are the bulk: of them only the count and the times at both ends are taken here. */
static void scan_calls(struct timeline_private *p, struct lane *lane, const struct chunk *chunk, const struct ticks *ticks)
{
	struct event_cursor c = event_cursor(chunk->events, chunk->size);
	struct process_build *process = &p->processes.items[lane->process];
	uint64_t events = 0, last_ticks = 0, lost_ticks = 0, last_call = 0;
	bool first = true;

	while (event_next(&c)) {
		if (first) {
			uint64_t first_ns = ticks_to_ns(ticks, c.event.ticks);

			if (lane->first_ns == NO_TIME)
				lane->seeded = chunk->depth > 0 || c.event.kind == EVENT_STACK_BEGIN || c.event.kind == EVENT_SEED;
			note_loss(p, lane, chunk, first_ns);
			note_lane_event(p, lane, first_ns);
			first = false;
			lost_ticks = c.event.ticks;
		}
		if (c.event.kind == EVENT_LOST) {
			lane->lost += event_u64(&c, 0);
			add_gap(p, lane, ticks_to_ns(ticks, lost_ticks), ticks_to_ns(ticks, c.event.ticks));
		} else if (c.event.kind > EVENT_SEED) {
			facts_take(p, lane, &c, ticks);
		}
		if (c.event.kind <= EVENT_C_LEAVE)
			last_call = c.event.ticks;
		events++;
		last_ticks = lost_ticks = c.event.ticks;
	}
	if (c.damaged)
		p->timeline.quality.damaged_chunks++;
	if (!events)
		return;
	note_lane_event(p, lane, ticks_to_ns(ticks, last_ticks));
	if (last_call)
		lane->last_call_ns = ticks_to_ns(ticks, last_call);
	lane->events += events;
	process->has_calls = true;
	if (lane->thread != NONE) {
		p->threads.items[lane->thread].has_lane = true;
		p->threads.items[lane->thread].seeded |= lane->seeded;
	}
}

static void scan_facts(struct timeline_private *p, struct lane *lane, const struct chunk *chunk, const struct ticks *ticks)
{
	struct event_cursor c = event_cursor(chunk->events, chunk->size);

	while (event_next(&c)) {
		if (lane->kind == LANE_GPU)
			note_lane_event(p, lane, ticks_to_ns(ticks, c.event.ticks));
		if (c.event.flags & EVENT_FLAG_CUT)
			p->timeline.quality.cut_strings++;
		if (c.event.kind == EVENT_LOST)
			lane->lost += event_u64(&c, 0);
		facts_take(p, lane, &c, ticks);
		lane->events++;
	}
	if (chunk->lost_before > lane->lost)
		lane->lost = chunk->lost_before;
	if (c.damaged)
		p->timeline.quality.damaged_chunks++;
}

int lanes_read(struct timeline_private *p, struct trace *trace, struct error *err)
{
	struct chunk chunk;
	int status;

	p->first_window = p->first_reading = p->first_event = NO_TIME;
	while ((status = trace_next(trace, &chunk, err)) > 0) {
		struct ticks ticks = ticks_of(&chunk.clock);
		struct lane *lane = lane_of(p, &chunk);

		if (!lane) {
			p->timeline.quality.damaged_chunks++; /* more processes or lanes than any machine has */
			continue;
		}
		if (lane->kind == LANE_THREAD)
			scan_calls(p, lane, &chunk, &ticks);
		else
			scan_facts(p, lane, &chunk, &ticks);
		if (p->failed)
			return fail(err, ERR_MEMORY, "reading the trace: out of memory");
	}
	return status;
}
