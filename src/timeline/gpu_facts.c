/* All devices together: how long each class of work ran, how classes overlap, by stream, by kind of copy, and how long launches took to begin. */
#include "timeline/private.h"

struct piece { uint64_t start_ns, end_ns; };
struct pieces { struct piece *items; size_t count; };

static int compare_pieces(const void *left, const void *right)
{
	const struct piece *a = left, *b = right;

	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	return a->end_ns < b->end_ns ? -1 : a->end_ns > b->end_ns;
}

/* Sorts and melts together what touches. */
static void melt(struct pieces *pieces)
{
	size_t kept = 0;

	if (!pieces->count)
		return;
	qsort(pieces->items, pieces->count, sizeof *pieces->items, compare_pieces);
	for (size_t i = 1; i < pieces->count; i++) {
		if (pieces->items[i].start_ns > pieces->items[kept].end_ns)
			pieces->items[++kept] = pieces->items[i];
		else if (pieces->items[i].end_ns > pieces->items[kept].end_ns)
			pieces->items[kept].end_ns = pieces->items[i].end_ns;
	}
	pieces->count = kept + 1;
}

static uint64_t length_of(const struct pieces *pieces)
{
	uint64_t total = 0;

	for (size_t i = 0; i < pieces->count; i++)
		total += pieces->items[i].end_ns - pieces->items[i].start_ns;
	return total;
}

static uint64_t overlap_of(const struct pieces *a, const struct pieces *b)
{
	uint64_t total = 0;

	for (size_t i = 0, j = 0; i < a->count && j < b->count;) {
		const struct piece *x = &a->items[i], *y = &b->items[j];
		uint64_t start = x->start_ns > y->start_ns ? x->start_ns : y->start_ns, end = x->end_ns < y->end_ns ? x->end_ns : y->end_ns;

		total += end > start ? end - start : 0;
		if (x->end_ns < y->end_ns)
			i++;
		else
			j++;
	}
	return total;
}

/* ---- one walk over the spans ---- */

static void each_span(const struct timeline_private *p, void (*each)(void *context, uint32_t device, const struct gpu_span *span), void *context)
{
	for (size_t i = 0; i < p->devices.count; i++)
		for (size_t j = 0; j < p->devices.items[i].spans.count; j++)
			each(context, p->devices.items[i].out.id, &p->devices.items[i].spans.items[j]);
}

struct classes { struct pieces of[GPU_CLASSES], all; struct gpu_facts *facts; uint64_t first_ns, last_ns; };

static void take_class(void *context, uint32_t device, const struct gpu_span *span)
{
	struct classes *classes = context;
	struct pieces *pieces = &classes->of[span->class_];
	struct piece piece = { span->start_ns, span->end_ns };

	pieces->items[pieces->count++] = piece;
	classes->all.items[classes->all.count++] = piece;
	classes->facts->count[span->class_]++;
	if (span->start_ns < classes->first_ns)
		classes->first_ns = span->start_ns;
	if (span->end_ns > classes->last_ns)
		classes->last_ns = span->end_ns;
}

static bool by_class(struct timeline_private *p, struct gpu_facts *facts)
{
	struct piece *room = malloc((GPU_CLASSES + 1) * facts->events * sizeof *room);
	struct classes classes = { .facts = facts, .first_ns = UINT64_MAX };

	if (!room)
		return false;
	for (size_t i = 0; i < GPU_CLASSES; i++)
		classes.of[i].items = room + i * facts->events;
	classes.all.items = room + GPU_CLASSES * facts->events;
	each_span(p, take_class, &classes);
	melt(&classes.all);
	for (size_t i = 0; i < GPU_CLASSES; i++) {
		melt(&classes.of[i]);
		facts->busy_ns[i] = length_of(&classes.of[i]);
	}
	for (size_t i = 0; i < GPU_CLASSES; i++)
		facts->overlap_ns[i] = overlap_of(&classes.of[(i + 1) % GPU_CLASSES], &classes.of[(i + 2) % GPU_CLASSES]);
	facts->any_ns = length_of(&classes.all);
	facts->span_ns = classes.last_ns - classes.first_ns;
	free(room);
	return true;
}

/* ---- streams ---- */

struct stream_piece { uint32_t device, stream; struct piece piece; };
struct stream_pieces { struct stream_piece *items; size_t count; };

static void take_stream(void *context, uint32_t device, const struct gpu_span *span)
{
	struct stream_pieces *all = context;

	all->items[all->count++] = (struct stream_piece){ device, span->stream, { span->start_ns, span->end_ns } };
}

static int compare_streams(const void *left, const void *right)
{
	const struct stream_piece *a = left, *b = right;

	if (a->device != b->device)
		return a->device < b->device ? -1 : 1;
	if (a->stream != b->stream)
		return a->stream < b->stream ? -1 : 1;
	return compare_pieces(&a->piece, &b->piece);
}

static bool by_stream(struct timeline_private *p, struct gpu_facts *facts)
{
	struct stream_pieces all = { .items = malloc(facts->events * sizeof *all.items) };
	struct gpu_stream *streams;
	uint64_t reached = 0;
	size_t count = 0;

	if (!all.items)
		return false;
	each_span(p, take_stream, &all);
	qsort(all.items, all.count, sizeof *all.items, compare_streams);
	for (size_t i = 0; i < all.count; i++)
		count += i == 0 || all.items[i].device != all.items[i - 1].device || all.items[i].stream != all.items[i - 1].stream;
	streams = arena_alloc(&p->arena, count * sizeof *streams);
	for (size_t i = 0, at = 0; streams && i < all.count; i++) {
		const struct stream_piece *one = &all.items[i];
		uint64_t start = one->piece.start_ns;

		if (i == 0 || one->device != all.items[i - 1].device || one->stream != all.items[i - 1].stream) {
			at += i != 0;
			streams[at] = (struct gpu_stream){ one->device, one->stream, 0 };
			reached = 0;
		}
		start = start > reached ? start : reached;
		if (one->piece.end_ns > start) {
			streams[at].busy_ns += one->piece.end_ns - start;
			reached = one->piece.end_ns;
		}
	}
	free(all.items);
	facts->streams = streams;
	facts->stream_count = streams ? count : 0;
	return streams != NULL;
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

struct delays { const struct timeline_private *p; int64_t *items; size_t count; };

static void take_delay(void *context, uint32_t device, const struct gpu_span *span)
{
	struct delays *delays = context;
	uint32_t launch = span->correlation ? map_get(&delays->p->launches, span->correlation) : MAP_ABSENT;

	if (launch != MAP_ABSENT)
		delays->items[delays->count++] = (int64_t)(span->start_ns - delays->p->launch_ends.items[launch]);
}

static int compare_delays(const void *left, const void *right)
{
	int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;

	return a < b ? -1 : a > b;
}

static bool by_launch(struct timeline_private *p, struct gpu_facts *facts)
{
	struct delays delays = { .p = p, .items = malloc(facts->events * sizeof *delays.items) };

	if (!delays.items)
		return false;
	each_span(p, take_delay, &delays);
	if (delays.count) {
		qsort(delays.items, delays.count, sizeof *delays.items, compare_delays);
		facts->launch_delay_min_ns = delays.items[0];
		facts->launch_delay_median_ns = delays.items[delays.count / 2];
	}
	facts->launches = delays.count;
	free(delays.items);
	return true;
}

void gpu_facts_build(struct timeline_private *p)
{
	struct gpu_facts *facts = &p->timeline.gpu;

	for (size_t i = 0; i < p->devices.count; i++)
		facts->events += p->devices.items[i].spans.count;
	if (facts->events)
		p->failed |= !by_class(p, facts) || !by_stream(p, facts) || !by_copy(p, facts) || !by_launch(p, facts);
}
