/*
 * When a thread that drives a device has nothing to do itself: it waits for work (an empty queue, select(), accept()), sleeps, or is in no Python function at
 * all, and no scope is open anywhere. Data loaders wait for their workers: that is no lack of demand.
 */
#include "timeline/replay.h"

enum { RESTS_LIMIT = 1 << 20, REST_LEAST_NS = 5000 };

static bool is_loader(const struct timeline_private *p, struct name *name)
{
	if (!name->loader)
		name->loader = 1 + (strstr(strings_get(p->strings, name->file), "dataloader") || strstr(strings_get(p->strings, name->file), "utils/data/") || strstr(strings_get(p->strings, name->name), "DataLoader"));
	return name->loader == 2;
}

static bool loads_data(struct timeline_private *p, const struct replay *replay)
{
	for (size_t i = 0; i < replay->frames.count; i++)
		if (is_loader(p, &p->names.list.items[replay->frames.items[i].function]))
			return true;
	return false;
}

static bool is_rest(struct timeline_private *p, uint32_t node)
{
	enum thread_state state = wait_of_leaf(p, &p->names.list.items[p->nodes.items[node].function]);
	struct wait_frames frames;

	if (state == THREAD_PYTHON || state == THREAD_NATIVE)
		return false;
	frames = wait_frames_of_node(p, node);
	state = wait_refine(p, state, &frames);
	return state == THREAD_IDLE || state == THREAD_SLEEP;
}

static void add_rest(struct timeline_private *p, struct thread_build *thread, uint64_t from_ns, uint64_t to_ns)
{
	p->failed |= !pieces_add(&thread->rests, p->timeline.start_ns + from_ns, p->timeline.start_ns + to_ns, RESTS_LIMIT);
}

void rests_run(struct timeline_private *p, const struct replay *replay, uint64_t from_ns, uint64_t to_ns)
{
	struct thread_build *thread = &p->threads.items[replay->lane->thread];
	uint32_t node = replay->frames.items[replay->frames.count - 1].node;

	if (thread->drives_gpu && to_ns - from_ns >= REST_LEAST_NS && p->nodes.items[node].function != NONE && is_rest(p, node) && !loads_data(p, replay))
		add_rest(p, thread, from_ns, to_ns);
}

void rests_open(struct timeline_private *p, const struct replay *replay)
{
	struct lane *lane = replay->lane;
	const struct frame *frame = &replay->frames.items[0];

	if (replay->frames.count == 1 && lane->emptied_ns != NO_TIME && p->threads.items[lane->thread].drives_gpu && p->names.list.items[frame->function].kind == FUNCTION_PYTHON && frame->start_ns > lane->emptied_ns + REST_LEAST_NS)
		add_rest(p, &p->threads.items[lane->thread], lane->emptied_ns, frame->start_ns);
	lane->emptied_ns = NO_TIME;
}

void rests_close(struct timeline_private *p, const struct replay *replay, uint64_t at_ns, bool open_end)
{
	if (replay->frames.count == 1)
		replay->lane->emptied_ns = !open_end && p->names.list.items[replay->frames.items[0].function].kind == FUNCTION_PYTHON ? at_ns : NO_TIME;
}

/* Where no call is known, samples tell. */
static void add_samples(struct timeline_private *p)
{
	for (size_t i = 0; i < p->samples.count; i++) {
		const struct sample *sample = &p->samples.items[i];
		struct thread_build *thread = &p->threads.items[sample->thread];

		if (thread->drives_gpu && sample->node == NONE && (sample->state == THREAD_IDLE || sample->state == THREAD_SLEEP) && sample->at_ns > sample->weight_ns)
			p->failed |= !pieces_add(&thread->rests, sample->at_ns - sample->weight_ns / 2, sample->at_ns + sample->weight_ns / 2, RESTS_LIMIT);
	}
}

void rests_build(struct timeline_private *p)
{
	add_samples(p);
	for (size_t i = 0; i < p->threads.count; i++) {
		struct thread_build *thread = &p->threads.items[i];
		struct pieces free_time = { 0 };

		if (!thread->rests.count)
			continue;
		pieces_melt(&thread->rests);
		p->failed |= !pieces_subtract(&thread->rests, &p->scopes_open, &free_time);
		list_done(&thread->rests);
		thread->rests = free_time;
	}
}
