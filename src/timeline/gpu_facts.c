/* All devices together: how long each class of work ran, how classes overlap, by kind of copy, and how long launches took to begin. */
#include "timeline/private.h"

/* ---- one walk over the spans ---- */

static void each_span(const struct timeline_private *p, void (*each)(void *context, uint32_t device, const struct gpu_span *span), void *context)
{
	for (size_t i = 0; i < p->devices.count; i++)
		for (size_t j = 0; j < p->devices.items[i].spans.count; j++)
			each(context, p->devices.items[i].out.id, &p->devices.items[i].spans.items[j]);
}

struct classes { struct pieces of[GPU_CLASSES], overlap[GPU_CLASSES] /* [c]: of the two other classes than c, on one device */; uint64_t first_ns, last_ns; bool room; };

static void append(struct classes *classes, struct pieces *to, const struct pieces *from)
{
	for (size_t i = 0; i < from->count; i++)
		classes->room &= pieces_add(to, from->items[i].start_ns, from->items[i].end_ns, SIZE_MAX);
}

static void add_device(struct classes *classes, const struct device_build *device, struct gpu_facts *facts)
{
	struct pieces of[GPU_CLASSES] = { 0 };

	for (size_t i = 0; i < device->spans.count; i++) {
		const struct gpu_span *span = &device->spans.items[i];

		classes->room &= pieces_add(&of[span->class_], span->start_ns, span->end_ns, SIZE_MAX);
		facts->count[span->class_]++;
		if (span->start_ns < classes->first_ns)
			classes->first_ns = span->start_ns;
		if (span->end_ns > classes->last_ns)
			classes->last_ns = span->end_ns;
	}
	for (size_t i = 0; i < GPU_CLASSES; i++) {
		pieces_melt(&of[i]);
		append(classes, &classes->of[i], &of[i]);
	}
	for (size_t i = 0; i < GPU_CLASSES; i++)
		classes->room &= pieces_intersect(&of[(i + 1) % GPU_CLASSES], &of[(i + 2) % GPU_CLASSES], &classes->overlap[i]);
	for (size_t i = 0; i < GPU_CLASSES; i++)
		list_done(&of[i]);
}

/* How long the stretches are, of which nothing is left then. */
static uint64_t melted_length(struct pieces *pieces)
{
	uint64_t length;

	pieces_melt(pieces);
	length = pieces_length(pieces);
	list_done(pieces);
	return length;
}

static bool by_class(struct timeline_private *p, struct gpu_facts *facts)
{
	struct classes classes = { .first_ns = UINT64_MAX, .room = true };
	struct pieces all = { 0 };

	for (size_t i = 0; i < p->devices.count; i++)
		add_device(&classes, &p->devices.items[i], facts);
	for (size_t i = 0; i < GPU_CLASSES; i++) {
		append(&classes, &all, &classes.of[i]);
		facts->busy_ns[i] = melted_length(&classes.of[i]);
		facts->overlap_ns[i] = melted_length(&classes.overlap[i]);
	}
	facts->any_ns = melted_length(&all);
	facts->span_ns = classes.last_ns - classes.first_ns;
	return classes.room;
}

/* ---- copies ---- */

enum { COPY_KINDS_MAX = 256 };
struct copies { struct gpu_copies kinds[COPY_KINDS_MAX]; size_t count; };

static void take_copy(void *context, uint32_t device, const struct gpu_span *span)
{
	struct copies *copies = context;
	size_t i = 0;

	if (span->class_ != GPU_MEMORY || span->kind == EVENT_GPU_MEMSET)
		return;
	while (i < copies->count && (copies->kinds[i].kind != (enum event_kind)span->kind || copies->kinds[i].memory_kinds != span->memory_kinds))
		i++;
	if (i == COPY_KINDS_MAX)
		i--; /* a lying trace: all that is left over together */
	if (i == copies->count)
		copies->kinds[copies->count++] = (struct gpu_copies){ (enum event_kind)span->kind, span->memory_kinds, 0, 0, 0 };
	copies->kinds[i].count++;
	copies->kinds[i].bytes += span->bytes;
	copies->kinds[i].time_ns += span->end_ns - span->start_ns;
}

static int compare_copies(const void *left, const void *right)
{
	const struct gpu_copies *a = left, *b = right;

	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	return a->memory_kinds < b->memory_kinds ? -1 : a->memory_kinds > b->memory_kinds;
}

static bool by_copy(struct timeline_private *p, struct gpu_facts *facts)
{
	struct copies *copies = calloc(1, sizeof *copies);
	struct gpu_copies *kept;

	if (!copies)
		return false;
	each_span(p, take_copy, copies);
	qsort(copies->kinds, copies->count, sizeof *copies->kinds, compare_copies);
	kept = arena_alloc(&p->arena, copies->count * sizeof *kept + 1);
	if (kept)
		memcpy(kept, copies->kinds, copies->count * sizeof *kept);
	facts->copies = kept;
	facts->copies_count = kept ? copies->count : 0;
	free(copies);
	return kept != NULL;
}

/* ---- launches ---- */

struct delays { const struct timeline_private *p; uint64_t *items; int64_t least_ns, most_ns; uint64_t matched, kernels, short_kernels, late, early, early_most_ns; size_t count; };

/* A call that asked for much, as for a CUDA graph, took a part of its time for each piece. */
static void take_work(void *context, uint32_t device, const struct gpu_span *span)
{
	struct delays *delays = context;
	const struct gpu_call *call = gpu_call_of(delays->p, span);

	if (!call)
		return;
	delays->matched++;
	if (span->start_ns < call->start_ns) {
		uint64_t by = call->start_ns - span->start_ns;

		delays->early++;
		delays->early_most_ns = by > delays->early_most_ns ? by : delays->early_most_ns;
	}
	delays->kernels += span->class_ != GPU_MEMORY;
	delays->short_kernels += span->class_ != GPU_MEMORY && span->end_ns - span->start_ns < (call->end_ns - call->start_ns) / call->works;
}

/* To its first work: what comes after that in a graph waits for the work before it, not for the launch. */
static void take_delay(struct delays *delays, const struct gpu_call *call)
{
	int64_t delay_ns = (int64_t)(call->first_ns - call->end_ns);

	delays->items[delays->count++] = (uint64_t)delay_ns;
	delays->least_ns = delay_ns < delays->least_ns ? delay_ns : delays->least_ns;
	delays->most_ns = delay_ns > delays->most_ns ? delay_ns : delays->most_ns;
	delays->late += delay_ns > GPU_LATE_LAUNCH_NS;
}

static bool by_launch(struct timeline_private *p, struct gpu_facts *facts)
{
	struct delays delays = { .p = p, .items = calloc(facts->events, sizeof *delays.items), .least_ns = INT64_MAX, .most_ns = INT64_MIN };

	if (!delays.items)
		return false;
	each_span(p, take_work, &delays);
	for (size_t i = 0; i < p->gpu_calls.count; i++)
		if (p->gpu_calls.items[i].works)
			take_delay(&delays, &p->gpu_calls.items[i]);
	if (delays.count) {
		for (size_t i = 0; i < delays.count; i++)
			delays.items[i] -= (uint64_t)delays.least_ns;
		facts->launch_delay_min_ns = delays.least_ns;
		facts->launch_delay_median_ns = (int64_t)(middle_of(delays.items, delays.count) + (uint64_t)delays.least_ns);
		facts->launch_delay_p95_ns = (int64_t)(nth_of(delays.items, delays.count, percentile_rank(delays.count, 95) - 1) + (uint64_t)delays.least_ns);
		facts->launch_delay_max_ns = delays.most_ns;
	}
	facts->launches = delays.matched;
	facts->launch_delays = delays.count;
	facts->late_launches = delays.late;
	facts->launched_kernels = delays.kernels;
	facts->short_kernels = delays.short_kernels;
	facts->early = delays.early;
	facts->early_most_ns = delays.early_most_ns;
	free(delays.items);
	return true;
}

static bool by_launch_call(struct timeline_private *p, struct gpu_facts *facts)
{
	uint64_t *items = malloc((p->gpu_calls.count + 1) * sizeof *items);

	if (!items)
		return false;
	for (size_t i = 0; i < p->gpu_calls.count; i++) {
		const struct gpu_call *call = &p->gpu_calls.items[i];
		uint64_t took_ns = call->end_ns - call->start_ns;

		if (call->class_ != GPU_CALL_LAUNCH && call->class_ != GPU_CALL_GRAPH_LAUNCH)
			continue;
		items[facts->launch_calls++] = took_ns;
		facts->slow_launch_calls += took_ns > GPU_SLOW_CALL_NS;
		facts->slow_launch_ns += took_ns > GPU_SLOW_CALL_NS ? took_ns - GPU_SLOW_CALL_NS : 0;
	}
	facts->launch_call_p50_ns = middle_of(items, facts->launch_calls);
	facts->launch_call_p95_ns = facts->launch_calls ? nth_of(items, facts->launch_calls, percentile_rank(facts->launch_calls, 95) - 1) : 0;
	free(items);
	return true;
}

/* ---- kernels ---- */

struct lengths { uint64_t *items; size_t count; };

static void take_kernel(void *context, uint32_t device, const struct gpu_span *span)
{
	struct lengths *lengths = context;

	if (span->class_ != GPU_MEMORY)
		lengths->items[lengths->count++] = span->end_ns - span->start_ns;
}

static bool by_kernel(struct timeline_private *p, struct gpu_facts *facts)
{
	struct lengths lengths = { .items = malloc(facts->events * sizeof *lengths.items) };

	if (!lengths.items)
		return false;
	each_span(p, take_kernel, &lengths);
	facts->kernel_p50_ns = middle_of(lengths.items, lengths.count);
	free(lengths.items);
	return true;
}

void gpu_facts_build(struct timeline_private *p)
{
	struct gpu_facts *facts = &p->timeline.gpu;

	for (size_t i = 0; i < p->devices.count; i++)
		facts->events += p->devices.items[i].spans.count;
	if (facts->events)
		p->failed |= !by_class(p, facts) || !by_copy(p, facts) || !by_launch(p, facts) || !by_launch_call(p, facts) || !by_kernel(p, facts);
}
