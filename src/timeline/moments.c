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
static void charge_node(struct timeline_private *p, const struct moment *moment, uint64_t ns)
{
	struct tree_node *nodes = (struct tree_node *)p->timeline.nodes;

	if (nodes && moment->node && moment->state == THREAD_PYTHON)
		nodes[moment->node].gil_ns += ns;
}

struct moments { struct moment *items; size_t count, capacity; }; /* as LIST() */

static void add_thread(struct timeline_private *p, struct moments *moments, const struct thread_build *thread)
{
	struct moment last = { 0 }, *slot = NULL;

	for (uint32_t at = thread->first_sample; at < thread->sample_end; at++) {
		struct moment moment = moment_of(p, at, thread->sample_end);

		if (moment.end_ns <= moment.start_ns)
			continue;
		if (last.end_ns && goes_on(&last, &moment, (moment.end_ns - moment.start_ns) / 4)) {
			charge_node(p, &moment, moment.end_ns - last.end_ns);
			last.end_ns = moment.end_ns;
		} else {
			charge_node(p, &moment, moment.end_ns - moment.start_ns);
			last = moment;
			slot = list_add_or_fail(moments, MOMENTS_LIMIT, &p->failed);
		}
		if (slot)
			*slot = last;
	}
}

void moments_build(struct timeline_private *p)
{
	struct moments moments = { 0 };
	struct moment *kept;

	for (size_t i = 0; i < p->threads.count; i++)
		add_thread(p, &moments, &p->threads.items[i]);
	kept = moments.count ? timeline_keep(p, moments.count, sizeof *kept) : NULL;
	if (kept) {
		memcpy(kept, moments.items, moments.count * sizeof *kept);
		p->timeline.moments = kept;
		p->timeline.moment_count = moments.count;
	}
	list_done(&moments);
}
