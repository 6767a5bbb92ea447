/* What samples saw each thread do, as stretches of time: the state strips of a time line. */
#include "timeline/private.h"

enum { MOMENTS_LIMIT = 1 << 20 };

static uint32_t holder_of(const struct timeline_private *p, uint32_t tid)
{
	uint32_t index = tid ? map_get(&p->thread_index, tid) : MAP_ABSENT;

	return index == MAP_ABSENT ? NONE : p->export_thread[index];
}

/* From its moment on it stands for its weight, or until the thread's next sample. */
static struct moment moment_of(const struct timeline_private *p, uint32_t at, uint32_t end)
{
	const struct sample *sample = &p->samples.items[p->sample_order[at]];
	uint64_t start = p->timeline.start_ns, from = sample->at_ns > start ? sample->at_ns - start : 0, to = from + sample->weight_ns;

	if (at + 1 < end) {
		uint64_t next = p->samples.items[p->sample_order[at + 1]].at_ns;

		next = next > start ? next - start : 0;
		to = next < to ? next : to;
	}
	to = to < p->timeline.duration_ns ? to : p->timeline.duration_ns;
	return (struct moment){ from, to, p->export_thread[sample->thread], holder_of(p, sample->holder), sample->stack_node < p->nodes.count ? p->export_node[sample->stack_node] : 0,
		(enum thread_state)sample->state };
}

static bool goes_on(const struct moment *last, const struct moment *next, uint64_t slack_ns)
{
	return last->thread == next->thread && last->state == next->state && last->holder == next->holder && last->node == next->node && next->start_ns <= last->end_ns + slack_ns;
}

/* Who runs Python holds the GIL. */
static void charge_nodes(struct timeline_private *p)
{
	struct tree_node *nodes = (struct tree_node *)p->timeline.nodes;

	for (size_t i = 0; nodes && i < p->timeline.moment_count; i++) {
		const struct moment *moment = &p->timeline.moments[i];

		if (moment->node && moment->state == THREAD_PYTHON)
			nodes[moment->node].gil_ns += moment->end_ns - moment->start_ns;
	}
}

void moments_build(struct timeline_private *p)
{
	LIST(struct moment) moments = { 0 };
	struct moment *kept;

	for (size_t i = 0; i < p->threads.count; i++) {
		const struct thread_build *thread = &p->threads.items[i];

		for (uint32_t at = thread->first_sample; at < thread->sample_end; at++) {
			struct moment moment = moment_of(p, at, thread->sample_end), *last = moments.count ? &moments.items[moments.count - 1] : NULL;

			if (moment.end_ns <= moment.start_ns)
				continue;
			if (last && goes_on(last, &moment, (moment.end_ns - moment.start_ns) / 4)) {
				last->end_ns = moment.end_ns;
				continue;
			}
			last = list_add_or_fail(&moments, MOMENTS_LIMIT, &p->failed);
			if (last)
				*last = moment;
		}
	}
	kept = moments.count ? arena_alloc(&p->arena, moments.count * sizeof *kept) : NULL;
	if (kept) {
		memcpy(kept, moments.items, moments.count * sizeof *kept);
		p->timeline.moments = kept;
		p->timeline.moment_count = moments.count;
		charge_nodes(p);
	} else if (moments.count) {
		p->failed = true;
	}
	list_done(&moments);
}
