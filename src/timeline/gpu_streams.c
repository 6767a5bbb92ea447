/* Streams: how long each was busy, why it was not, and how much work stood in its queue. */
#include "base/sort.h"
#include "timeline/private.h"

struct work { const struct gpu_span *span; uint32_t device; };

static int compare_work(const void *left, const void *right, const void *context)
{
	const struct work *a = left, *b = right;

	if (a->device != b->device)
		return a->device < b->device ? -1 : 1;
	if (a->span->stream != b->span->stream)
		return a->span->stream < b->span->stream ? -1 : 1;
	if (a->span->process != b->span->process)
		return a->span->process < b->span->process ? -1 : 1;
	if (a->span->start_ns != b->span->start_ns)
		return a->span->start_ns < b->span->start_ns ? -1 : 1;
	return a->span->end_ns < b->span->end_ns ? -1 : a->span->end_ns > b->span->end_ns;
}

static bool same_stream(const struct work *a, const struct work *b)
{
	return a->device == b->device && a->span->stream == b->span->stream && a->span->process == b->span->process;
}

static void add_times(const struct timeline_private *p, const struct work *work, size_t count, struct gpu_stream *out)
{
	uint64_t reached = work[0].span->start_ns;

	for (size_t i = 0; i < count; i++) {
		const struct gpu_span *span = work[i].span;

		if (span->start_ns > reached) {
			struct idle_parts parts = gpu_idle_explain(p, reached, span->start_ns, gpu_call_of(p, span));

			for (int cause = 0; cause < GPU_IDLE_CAUSES; cause++)
				out->idle_ns[cause] += parts.ns[cause];
			reached = span->start_ns;
		}
		if (span->end_ns > reached) {
			out->busy_ns += span->end_ns - reached;
			reached = span->end_ns;
		}
	}
}

static int compare_times(const void *left, const void *right, const void *context)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return a < b ? -1 : a > b;
}

/* ASKED sorted, BEGAN as the work is. LENGTHS: room for both. */
static void read_queue(const uint64_t *asked, const uint64_t *began, size_t count, uint64_t *lengths, struct gpu_queue *out)
{
	uint64_t length = 0, full_since = 0;

	for (size_t i = 0, j = 0; j < count;) {
		bool asks = i < count && asked[i] <= began[j];
		uint64_t at = asks ? asked[i] : began[j];

		length += asks ? 1 : (uint64_t)-1;
		i += asks;
		j += !asks;
		if (asks && length == GPU_QUEUE_FULL)
			full_since = at;
		else if (!asks && length == GPU_QUEUE_FULL - 1)
			out->full_ns += at - full_since;
		out->max = length > out->max ? (uint32_t)length : out->max;
		lengths[out->readings++] = length;
	}
	out->p50 = (uint32_t)middle_of(lengths, out->readings);
}

/* What one call asked for on this stream, as a CUDA graph, is one piece. NUMBER: of the stream. */
static bool add_queue(struct timeline_private *p, const struct work *work, size_t count, uint32_t number, struct gpu_stream *out)
{
	uint64_t *asked = malloc(4 * count * sizeof *asked), *began, *lengths;
	size_t known = 0;
	bool sorted;

	if (!asked)
		return false;
	began = asked + count;
	lengths = began + count;
	for (size_t i = 0; i < count; i++) {
		struct gpu_call *call = work[i].span->call == NONE ? NULL : &p->gpu_calls.items[work[i].span->call];

		if (!call || call->queued == number + 1)
			continue;
		call->queued = number + 1;
		asked[known] = call->start_ns < work[i].span->start_ns ? call->start_ns : work[i].span->start_ns;
		began[known++] = work[i].span->start_ns;
	}
	sorted = sort_runs(asked, known, sizeof *asked, compare_times, NULL);
	if (sorted)
		read_queue(asked, began, known, lengths, &out->queue);
	free(asked);
	return sorted;
}

void gpu_streams_build(struct timeline_private *p)
{
	struct work *work = malloc((p->timeline.gpu.events + 1) * sizeof *work);
	struct gpu_stream *streams = NULL;
	size_t count = 0, stream_count = 0;

	for (size_t i = 0; work && i < p->devices.count; i++)
		for (size_t j = 0; j < p->devices.items[i].spans.count; j++)
			work[count++] = (struct work){ &p->devices.items[i].spans.items[j], p->devices.items[i].out.id };
	if (count) {
		p->failed |= !sort_runs(work, count, sizeof *work, compare_work, NULL);
		for (size_t i = 0; i < count; i++)
			stream_count += i == 0 || !same_stream(&work[i], &work[i - 1]);
		streams = arena_alloc(&p->arena, stream_count * sizeof *streams);
	}
	for (size_t first = 0, last, at = 0; streams && first < count; first = last, at++) {
		for (last = first + 1; last < count && same_stream(&work[first], &work[last]); last++)
			;
		streams[at] = (struct gpu_stream){ .device = work[first].device, .stream = work[first].span->stream, .process = work[first].span->process };
		add_times(p, work + first, last - first, &streams[at]);
		p->failed |= !add_queue(p, work + first, last - first, (uint32_t)at, &streams[at]);
	}
	p->failed |= !work || (count && !streams);
	p->timeline.gpu.streams = streams;
	p->timeline.gpu.stream_count = streams ? stream_count : 0;
	free(work);
}
