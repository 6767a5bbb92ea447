/*
 * Slices into rows, rows into blocks. Calls of one depth follow one another, so that a block needs the gaps between them and their lengths only.
 * A page may not grow with its trace: of more calls than fit, the shorter ones are left out, all below one length, so that whoever called a
 * call that is shown is shown as well.
 */
#include <stdlib.h>

#include "base/list.h"
#include "base/map.h"
#include "report/export.h"
#include "report/html.h"

enum {
	BLOCK = 2048,             /* slices of one row that are written together */
	PENDING_MAX = 1 << 18,    /* slices of all rows in memory */
	ROWS_MAX = 1 << 14,
	DEPTH_MAX = 160,
	LABELS_MAX = 50000,
	LABEL_COLUMNS = 160,
	SAMPLED_LANES = 1 << 20,  /* of threads whose calls were never traced: a number beyond those of lanes */
	SLICE_BYTES = 13,         /* a slice before compression, on the large side */
	LENGTHS = 64,
};
#define NO_NAME UINT32_MAX

struct slice { uint64_t start_ns, end_ns, bytes /* of gaps: ns that are due to the cause */, flow; uint32_t name; };
struct pending { LIST(struct slice) slices; uint64_t last_ns; };

struct slices {
	const struct report *report;
	struct pack *pack;
	uint64_t limit;
	LIST(struct slice_row) rows;
	LIST(struct pending) pending; /* by row */
	struct map index;
	struct map lanes;         /* thread to the first lane that has calls of it */
	uint32_t *scopes;         /* function to its label + 1, of those whose calls are requests */
	struct strings *labels;
	size_t pending_count;
	uint64_t lengths[2][LENGTHS]; /* how many calls, others, of 2^i ns and more */
	uint64_t least_ns[2];
	struct slices_said said;
	bool failed;
};

static bool is_call(const struct interval *interval)
{
	return interval->kind == EVENT_PY_ENTER || interval->kind == EVENT_C_ENTER;
}

static unsigned length_class(uint64_t ns)
{
	return ns ? 63 - (unsigned)__builtin_clzll(ns) : 0;
}

static bool is_shown(const struct interval *interval)
{
	return interval->kind != EVENT_SCOPE_EXIT && interval->kind != EVENT_MEMORY_FREE && interval->kind != EVENT_MEMORY_ALLOC;
}

static bool count_interval(void *context, const struct interval *interval)
{
	struct slices *slices = context;

	if (is_shown(interval) && (!is_call(interval) || interval->depth < DEPTH_MAX))
		slices->lengths[!is_call(interval)][length_class(interval->end_ns - interval->start_ns)]++;
	return true;
}

/* The least length with which no more than ROOM are left. */
static uint64_t choose_least(const uint64_t lengths[LENGTHS], uint64_t room, uint64_t *left)
{
	unsigned class_ = LENGTHS;

	for (*left = 0; class_ && *left + lengths[class_ - 1] <= room; class_--)
		*left += lengths[class_ - 1];
	return class_ ? 1ull << (class_ < LENGTHS ? class_ : LENGTHS - 1) : 0;
}

/* What the device did and what the program says of itself come first: they are few, and all the reader may have. */
static int choose_lengths(struct slices *slices, struct error *err)
{
	uint64_t room = slices->limit / SLICE_BYTES, left;

	if (slices->report->timeline->quality.events <= room)
		return 0;
	if (timeline_intervals(slices->report->timeline, slices->report->trace, count_interval, slices, err) < 0)
		return -1;
	slices->least_ns[1] = choose_least(slices->lengths[1], room, &left);
	slices->least_ns[0] = choose_least(slices->lengths[0], room - left, &left);
	return 0;
}

static void write_column(struct slices *slices, const struct pending *pending, bool flow)
{
	for (size_t i = 0; i < pending->slices.count; i++)
		pack_number(slices->pack, flow ? pending->slices.items[i].flow : pending->slices.items[i].bytes);
}

static void write_row(struct slices *slices, uint32_t row)
{
	struct pending *pending = &slices->pending.items[row];
	enum slice_group group = slices->rows.items[row].group;
	bool device = group == SLICES_STREAM || group == SLICES_COPIES || group == SLICES_API, bytes = group == SLICES_COPIES || group == SLICES_IDLE;
	size_t count = pending->slices.count;

	if (!count)
		return;
	pack_number(slices->pack, PACK_SLICES);
	pack_number(slices->pack, row);
	pack_number(slices->pack, count);
	pack_number(slices->pack, (device ? 1 : 0) | (bytes ? 2 : 0));
	for (size_t i = 0; i < count; i++) {
		pack_signed(slices->pack, (int64_t)(pending->slices.items[i].start_ns - pending->last_ns));
		pending->last_ns = pending->slices.items[i].end_ns;
	}
	for (size_t i = 0; i < count; i++)
		pack_number(slices->pack, pending->slices.items[i].end_ns - pending->slices.items[i].start_ns);
	for (size_t i = 0; i < count; i++)
		pack_number(slices->pack, pending->slices.items[i].name);
	if (device)
		write_column(slices, pending, true);
	if (bytes)
		write_column(slices, pending, false);
	slices->pending_count -= count;
	pending->slices.count = 0;
}

static void write_rows(struct slices *slices)
{
	for (uint32_t row = 0; row < slices->rows.count; row++) {
		write_row(slices, row);
		list_done(&slices->pending.items[row].slices);
	}
}

static uint32_t row_of(struct slices *slices, struct slice_row wanted)
{
	uint64_t key = mix64(mix64(mix64((uint64_t)wanted.a << 32 | wanted.b) ^ ((uint64_t)wanted.group << 32 | wanted.depth)) ^ wanted.process);
	uint32_t row = map_get(&slices->index, key);

	if (row != MAP_ABSENT)
		return row;
	struct slice_row *added = list_add_or_fail(&slices->rows, ROWS_MAX, &slices->failed);

	if (!added || !list_add_or_fail(&slices->pending, ROWS_MAX, &slices->failed))
		return MAP_ABSENT;
	*added = wanted;
	row = (uint32_t)slices->rows.count - 1;
	slices->failed |= !map_put(&slices->index, key, row);
	return row;
}

static bool add_slice(struct slices *slices, struct slice_row wanted, struct slice slice)
{
	uint32_t row = slices->pack->bytes + slices->pending_count * SLICE_BYTES < slices->limit ? row_of(slices, wanted) : MAP_ABSENT;
	struct slice *added = row == MAP_ABSENT ? NULL : list_add_or_fail(&slices->pending.items[row].slices, BLOCK, &slices->failed);

	if (!added)
		return false;
	*added = slice;
	slices->pending_count++;
	if (slices->pending.items[row].slices.count == BLOCK)
		write_row(slices, row);
	if (slices->pending_count >= PENDING_MAX)
		write_rows(slices);
	return true;
}

static uint32_t add_label(struct slices *slices, const char *name)
{
	struct text label;
	uint32_t id;

	if (strings_count(slices->labels) >= LABELS_MAX)
		return 0;
	text_init(&label);
	name_add(&label, name, LABEL_COLUMNS, 0);
	id = strings_add(slices->labels, text_string(&label), label.length);
	slices->failed |= label.failed || id == NO_NAME;
	text_done(&label);
	return id == NO_NAME ? 0 : id;
}

static struct slice_row row_wanted(const struct interval *interval)
{
	uint32_t direction = interval->kind == EVENT_H2D_COPY ? 0 : interval->kind == EVENT_D2H_COPY ? 1 : 2;

	switch (interval->kind) {
	case EVENT_SCOPE_ENTER:
		return (struct slice_row){ SLICES_SCOPES, interval->thread, 0, 0, 0 };
	case EVENT_INSTANT:
		return (struct slice_row){ SLICES_MARKS, interval->thread, 0, 0, 0 };
	case EVENT_CPU_SYSCALL:
		return (struct slice_row){ SLICES_SYSCALLS, interval->thread, 0, 0, 0 };
	case EVENT_GC:
		return (struct slice_row){ SLICES_COLLECTIONS, interval->thread, 0, 0, 0 };
	case EVENT_GPU_API:
		return (struct slice_row){ SLICES_API, interval->thread, 0, 0, 0 };
	case EVENT_GPU_SYNC:
		return (struct slice_row){ SLICES_SYNC, interval->device, interval->stream, 0, interval->process };
	case EVENT_H2D_COPY:
	case EVENT_D2H_COPY:
	case EVENT_D2D_COPY:
		return (struct slice_row){ SLICES_COPIES, interval->device, direction, 0, 0 };
	default:
		return (struct slice_row){ SLICES_STREAM, interval->device, interval->stream, 0, interval->process };
	}
}

static bool take_interval(void *context, const struct interval *interval)
{
	struct slices *slices = context;
	struct slice slice = { interval->start_ns, interval->end_ns, interval->bytes, interval->flow, interval->function };
	bool call = is_call(interval), added = false;

	if (!is_shown(interval))
		return true;
	*(call ? &slices->said.calls : &slices->said.others) += 1;
	if (interval->end_ns - interval->start_ns >= slices->least_ns[!call]) {
		if (!call)
			slice.name = add_label(slices, export_label(interval));
		else if (slice.name >= slices->report->function_count)
			slice.name = (uint32_t)slices->report->function_count;
		if (call && slices->scopes && interval->function < slices->report->timeline->function_count && slices->scopes[interval->function])
			add_slice(slices, (struct slice_row){ SLICES_SCOPES, interval->thread, 0, 0, 0 }, (struct slice){ interval->start_ns, interval->end_ns, 0, slices->scopes[interval->function] - 1, 0 });
		if (call && map_get(&slices->lanes, interval->thread) == MAP_ABSENT)
			slices->failed |= !map_put(&slices->lanes, interval->thread, interval->lane);
		if (!call || interval->depth < DEPTH_MAX)
			added = add_slice(slices, call ? (struct slice_row){ SLICES_CALLS, interval->thread, interval->lane, interval->depth, 0 } : row_wanted(interval), slice);
	}
	if (!added)
		*(call ? &slices->said.calls_left_out : &slices->said.others_left_out) += 1;
	return !slices->failed && !sink_failed(slices->pack->sink);
}

/* Thread states, and who held the GIL while another one waited for it. */
static void take_moments(struct slices *slices)
{
	const struct timeline *timeline = slices->report->timeline;

	for (size_t i = 0; i < timeline->moment_count; i++) {
		const struct moment *moment = &timeline->moments[i];

		add_slice(slices, (struct slice_row){ SLICES_STATES, moment->thread, 0, 0, 0 }, (struct slice){ moment->start_ns, moment->end_ns, 0, moment->state, 0 });
		if (moment->holder < timeline->thread_count)
			add_slice(slices, (struct slice_row){ SLICES_GIL, moment->thread, 0, 0, 0 }, (struct slice){ moment->start_ns, moment->end_ns, 0, moment->holder, 0 });
	}
}

/* Why devices had nothing to do; of too many gaps the longer ones. What stood on the stack meanwhile is told by its innermost function. */
static void take_idle(struct slices *slices)
{
	const struct timeline *timeline = slices->report->timeline;
	uint64_t lengths[LENGTHS] = { 0 }, least, left;

	for (size_t i = 0; i < timeline->gpu.idle_gap_count; i++)
		lengths[length_class(timeline->gpu.idle_gaps[i].time_ns)]++;
	least = choose_least(lengths, slices->limit / SLICE_BYTES / 4, &left);
	for (size_t i = 0; i < timeline->gpu.idle_gap_count; i++) {
		const struct gpu_idle_gap *gap = &timeline->gpu.idle_gaps[i];
		uint32_t function = gap->node < timeline->node_count ? timeline->nodes[gap->node].function : NO_NAME, names = (uint32_t)slices->report->function_count;
		bool added = gap->time_ns >= least && add_slice(slices, (struct slice_row){ SLICES_IDLE, gap->device, gap->cause, 0, 0 },
								(struct slice){ gap->start_ns, gap->end_ns, gap->time_ns, function < names ? function : names, 0 });

		slices->said.others++;
		slices->said.others_left_out += !added;
	}
}

struct sampled { uint32_t nodes[DEPTH_MAX + 1]; uint64_t starts[DEPTH_MAX + 1]; uint32_t depth; uint64_t end_ns; };

/* Closes the frames from DEPTH on: each was in all samples since its start. */
static void close_sampled(struct slices *slices, struct sampled *open, uint32_t thread, uint32_t depth)
{
	const struct timeline *timeline = slices->report->timeline;
	uint32_t lane = map_get(&slices->lanes, thread);

	for (; open->depth > depth; open->depth--) {
		uint32_t at = open->depth - 1, name = timeline->nodes[open->nodes[at]].function;

		add_slice(slices, (struct slice_row){ SLICES_CALLS, thread, lane == MAP_ABSENT ? SAMPLED_LANES + thread : lane, at, 0 },
			  (struct slice){ open->starts[at], open->end_ns, 0, name < slices->report->function_count ? name : (uint32_t)slices->report->function_count, 0 });
	}
}

static bool hooks_on(const struct timeline *timeline, size_t *window, const struct moment *moment)
{
	while (*window < timeline->window_count && timeline->windows[*window].end_ns <= moment->start_ns)
		++*window;
	return *window < timeline->window_count && timeline->windows[*window].start_ns < moment->end_ns;
}

/* The frames of NODE, outermost first; how many, or 0 when they are too many. */
static uint32_t path_of(const struct timeline *timeline, uint32_t node, uint32_t path[DEPTH_MAX + 1])
{
	uint32_t depth = 0, at = node;

	for (; at && at < timeline->node_count; at = timeline->nodes[at].parent)
		if (++depth > DEPTH_MAX)
			return 0;
	at = node;
	for (uint32_t i = depth; i-- > 0; at = timeline->nodes[at].parent)
		path[i] = at;
	return depth;
}

/* While hooks were off, samples tell which calls there were: those in samples that follow one another are one call, for all we know. */
static void take_sampled(struct slices *slices)
{
	const struct timeline *timeline = slices->report->timeline;
	struct sampled open = { .depth = 0 };
	size_t window = 0;

	for (size_t i = 0; i < timeline->moment_count; i++) {
		const struct moment *moment = &timeline->moments[i];
		uint32_t path[DEPTH_MAX + 1], depth, same = 0;

		if (i && moment[-1].thread != moment->thread) {
			close_sampled(slices, &open, moment[-1].thread, 0);
			window = 0;
		}
		depth = hooks_on(timeline, &window, moment) ? 0 : path_of(timeline, moment->node, path);
		while (moment->start_ns == open.end_ns && same < depth && same < open.depth && path[same] == open.nodes[same])
			same++;
		close_sampled(slices, &open, moment->thread, same);
		for (; open.depth < depth; open.depth++) {
			open.nodes[open.depth] = path[open.depth];
			open.starts[open.depth] = moment->start_ns;
		}
		open.end_ns = moment->end_ns;
	}
	if (timeline->moment_count)
		close_sampled(slices, &open, timeline->moments[timeline->moment_count - 1].thread, 0);
}

/* Functions whose calls are requests (--scope). */
static bool find_scopes(struct slices *slices)
{
	const struct timeline *timeline = slices->report->timeline;

	for (size_t i = 0; i < timeline->scope_count; i++) {
		const struct scope_latency *scope = &timeline->scopes[i];
		uint32_t label;

		if (scope->function >= timeline->function_count)
			continue;
		if (!slices->scopes && !(slices->scopes = calloc(timeline->function_count, sizeof *slices->scopes)))
			return false;
		label = add_label(slices, scope->name);
		slices->scopes[scope->function] = label + 1;
	}
	return true;
}

struct slices *slices_write(const struct report *report, struct pack *pack, uint64_t limit, struct slices_said *said, struct error *err)
{
	struct slices *slices = calloc(1, sizeof *slices);

	if (!slices || !(slices->labels = strings_new())) {
		slices_free(slices);
		fail(err, ERR_MEMORY, "writing the report");
		return NULL;
	}
	slices->report = report;
	slices->failed |= !find_scopes(slices);
	slices->pack = pack;
	slices->limit = limit;
	take_moments(slices);
	take_idle(slices);
	if (report->trace && (choose_lengths(slices, err) < 0 || timeline_intervals(report->timeline, report->trace, take_interval, slices, err) < 0)) {
		slices_free(slices);
		return NULL;
	}
	take_sampled(slices);
	write_rows(slices);
	if (slices->failed) {
		slices_free(slices);
		fail(err, ERR_MEMORY, "writing the report");
		return NULL;
	}
	slices->said.rows = slices->rows.items;
	slices->said.row_count = slices->rows.count;
	slices->said.labels = slices->labels;
	slices->said.label_count = strings_count(slices->labels);
	slices->said.least_ns = slices->least_ns[0];
	slices->said.depth_max = DEPTH_MAX;
	*said = slices->said;
	return slices;
}

void slices_free(struct slices *slices)
{
	if (!slices)
		return;
	for (size_t i = 0; i < slices->pending.count; i++)
		list_done(&slices->pending.items[i].slices);
	list_done(&slices->pending);
	list_done(&slices->rows);
	map_done(&slices->index);
	map_done(&slices->lanes);
	free(slices->scopes);
	strings_free(slices->labels);
	free(slices);
}
