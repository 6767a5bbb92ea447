/*
 * Who held the GIL while others waited for it. Samples of a waiting thread come with the holder of that moment; how long it waited
 * altogether says the partition, and samples share that out.
 */
#include "timeline/private.h"

enum { PAIRS_LIMIT = 1 << 20 };

void gil_told(struct timeline_private *p, struct thread_build *waiter, uint32_t holder, uint64_t at_ns)
{
	waiter->gil_holder = holder != waiter->out.tid ? holder : 0;
	waiter->gil_told_ns = at_ns;
}

void gil_sample(struct timeline_private *p, struct thread_build *waiter, uint64_t at_ns, uint64_t weight_ns)
{
	uint32_t holder = waiter->gil_told_ns == at_ns ? waiter->gil_holder : 0, thread = (uint32_t)(waiter - p->threads.items);
	uint64_t key = (uint64_t)holder << 32 | thread;
	uint32_t index = map_get(&p->gil_index, key);

	if (index == MAP_ABSENT) {
		struct gil_build *fresh = list_add_or_fail(&p->gil, PAIRS_LIMIT, &p->failed);

		if (!fresh)
			return;
		*fresh = (struct gil_build){ .holder = holder, .waiter = thread };
		index = (uint32_t)p->gil.count - 1;
		if (!map_put(&p->gil_index, key, index))
			p->failed = true;
	}
	p->gil.items[index].ns += weight_ns;
	p->gil.items[index].samples++;
}

static int compare_waiters(const void *left, const void *right)
{
	const struct gil_build *a = left, *b = right;

	if (a->waiter != b->waiter)
		return a->waiter < b->waiter ? -1 : 1;
	return a->holder < b->holder ? -1 : a->holder > b->holder;
}

static int compare_waits(const void *left, const void *right)
{
	const struct gil_wait *a = left, *b = right;

	if (a->wait_ns != b->wait_ns)
		return a->wait_ns > b->wait_ns ? -1 : 1;
	if (a->waiter != b->waiter)
		return a->waiter < b->waiter ? -1 : 1;
	return a->holder < b->holder ? -1 : a->holder > b->holder;
}

static uint32_t thread_index(const struct timeline_private *p, uint32_t tid)
{
	uint32_t index = tid ? map_get(&p->thread_index, tid) : MAP_ABSENT;

	return index == MAP_ABSENT ? NONE : p->export_thread[index];
}

/* The rows of one waiter: COUNT of them from ROWS on. */
static size_t share_out(const struct timeline_private *p, const struct gil_build *rows, size_t count, struct gil_wait *out)
{
	const struct thread_build *waiter = &p->threads.items[rows[0].waiter];
	uint64_t left = waiter->out.gil_wait_ns;
	double sum = 0;
	size_t made = 0;

	for (size_t i = 0; i < count; i++)
		sum += (double)rows[i].ns;
	for (size_t i = 0; i < count && left; i++) {
		double share = sum > 0 ? (double)waiter->out.gil_wait_ns * ((double)rows[i].ns / sum) : 0;
		uint64_t ns = i + 1 == count || share > (double)left ? left : (uint64_t)share;

		left -= ns;
		if (ns)
			out[made++] = (struct gil_wait){ thread_index(p, rows[i].holder), p->export_thread[rows[i].waiter], ns, rows[i].samples };
	}
	return made;
}

void gil_build(struct timeline_private *p)
{
	size_t count = 0, samples = p->gil.count;
	struct gil_wait *waits = arena_alloc(&p->arena, (samples + p->threads.count + 1) * sizeof *waits);
	bool *told = calloc(p->threads.count + 1, sizeof *told);

	if (!waits || !told) {
		p->failed = true;
		free(told);
		return;
	}
	if (samples)
		qsort(p->gil.items, samples, sizeof *p->gil.items, compare_waiters);
	for (size_t i = 0, next; i < samples; i = next) {
		for (next = i + 1; next < samples && p->gil.items[next].waiter == p->gil.items[i].waiter; next++)
			;
		told[p->gil.items[i].waiter] = true;
		count += share_out(p, &p->gil.items[i], next - i, waits + count);
	}
	for (size_t i = 0; i < p->threads.count; i++)
		if (!told[i] && p->threads.items[i].out.gil_wait_ns)
			waits[count++] = (struct gil_wait){ NONE, p->export_thread[i], p->threads.items[i].out.gil_wait_ns, 0 };
	qsort(waits, count, sizeof *waits, compare_waits);
	p->timeline.gil_waits = waits;
	p->timeline.gil_wait_count = count;
	free(told);
}
