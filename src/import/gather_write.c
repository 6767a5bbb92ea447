/* What was gathered, put into order and written as a trace of ours. */
#include <stdio.h>

#include "base/sort.h"
#include "import/gather_private.h"

enum { CHUNK_BYTES = 1 << 20, PLAIN_BYTES_MAX = 256 << 20 };

/* ---- lanes ---- */

void lane_begin(struct gather *gather, struct lane *lane, uint32_t process, uint32_t tid, uint32_t kind)
{
	*lane = (struct lane){ .number = gather->lane_count++, .process = process_number(gather, process), .tid = tid, .kind = kind };
	event_builder_init(&lane->events);
}

/* What is read again soon is not worth packing while it fits the page cache. */
static void lane_flush(struct gather *gather, struct lane *lane)
{
	struct chunk chunk = { .process = lane->process, .lane = lane->number, .tid = lane->tid, .lane_kind = lane->kind, .sequence = ++lane->sequence,
		.clock = clock_map_monotonic(), .events = lane->events.bytes, .size = lane->events.size };

	gather->failed |= lane->events.failed;
	trace_writer_pack(gather->writer, trace_writer_bytes(gather->writer) > PLAIN_BYTES_MAX);
	if (lane->events.size && trace_writer_add(gather->writer, &chunk, &gather->error) == 0)
		event_builder_clear(&lane->events);
}

void lane_keep_small(struct gather *gather, struct lane *lane)
{
	if (lane->events.size >= CHUNK_BYTES)
		lane_flush(gather, lane);
}

static void lane_end(struct gather *gather, struct lane *lane)
{
	lane_flush(gather, lane);
	event_builder_done(&lane->events);
}

/* ---- putting in order ---- */

/* Of two that begin together the outer one first, then the one that came first. */
static int compare_rows(const void *left, const void *right, const void *context)
{
	const struct row *a = left, *b = right;

	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	if (a->end_ns != b->end_ns)
		return a->end_ns > b->end_ns ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

static void put_begin(const struct gather *gather, struct lane *lane, const struct row *row)
{
	uint64_t at = ticks_of(row->start_ns);

	if (row->kind == ROW_SCOPE)
		event_add(&lane->events, at, EVENT_SCOPE_ENTER, 0, 0, (uint64_t)row->order, string_of(gather, row->ref), string_of(gather, row->extra));
	else if (row->kind == ROW_INSTANT)
		event_add(&lane->events, at, EVENT_INSTANT, 0, 0, string_of(gather, row->ref), string_of(gather, row->extra));
	else
		event_add(&lane->events, at, row->kind == ROW_PYTHON ? EVENT_PY_ENTER : EVENT_C_ENTER, row->ref + 1, 0);
}

static void put_end(struct lane *lane, const struct row *row)
{
	uint64_t at = ticks_of(row->end_ns);

	if (row->kind == ROW_SCOPE)
		event_add(&lane->events, at, EVENT_SCOPE_EXIT, 0, 0, (uint64_t)row->order);
	else
		event_add(&lane->events, at, row->kind == ROW_PYTHON ? EVENT_PY_LEAVE : EVENT_C_LEAVE, row->ref + 1, 0);
}

/* Scopes by their ends; of those that end together the first to begin first: the others may not have begun. */
static int compare_ends(const void *left, const void *right, const void *context)
{
	const struct row *a = *(const struct row *const *)left, *b = *(const struct row *const *)right;

	if (a->end_ns != b->end_ns)
		return a->end_ns < b->end_ns ? -1 : 1;
	return a < b ? -1 : a > b;
}

/*
 * A thread's rows on their way into its lane. Calls nest: those that are open are a stack. Scopes end by their own number, whatever else is open then; those whose end is not told do not end.
 */
struct put {
	struct gather *gather;
	struct lane lane;
	LIST(const struct row *) open, scopes; /* calls, the innermost last; all scopes by their ends */
	size_t scopes_ended;
};

/* All that ends up to ROW, which begins next; NULL: all. */
static void put_ends(struct put *put, const struct row *row)
{
	for (;;) {
		const struct row *call = put->open.count ? put->open.items[put->open.count - 1] : NULL;
		const struct row *scope = put->scopes_ended < put->scopes.count ? put->scopes.items[put->scopes_ended] : NULL;

		if (row && call && call->end_ns > row->start_ns)
			call = NULL;
		if (row && scope && (scope->end_ns > row->start_ns || scope >= row))
			scope = NULL;
		if (!call && !scope)
			break;
		if (call && (!scope || call->end_ns <= scope->end_ns)) {
			put->open.count--;
			put_end(&put->lane, call);
		} else {
			put->scopes_ended++;
			put_end(&put->lane, scope);
		}
		lane_keep_small(put->gather, &put->lane);
	}
}

static void put_call(struct put *put, struct row *row)
{
	const struct row *outer = put->open.count ? put->open.items[put->open.count - 1] : NULL, **slot;

	if (outer && row->end_ns > outer->end_ns) {
		put->gather->totals.cut++;
		put->gather->totals.cut_ns += (uint64_t)row->end_ns - (uint64_t)outer->end_ns;
		row->end_ns = outer->end_ns;
	}
	slot = list_add_or_fail(&put->open, OPEN_MAX, &put->gather->failed);
	if (!slot) {
		put->gather->totals.left_out++;
		return;
	}
	*slot = row;
	put_begin(put->gather, &put->lane, row);
}

/* Begins and ends of a thread's rows, in the order of time. */
static void put_thread(struct gather *gather, struct thread *thread)
{
	struct put put = { .gather = gather };

	lane_begin(gather, &put.lane, thread->process, thread->number, LANE_THREAD);
	for (size_t i = 0; i < thread->rows.count; i++)
		if (thread->rows.items[i].end_ns == GATHER_OPEN && thread->rows.items[i].kind != ROW_SCOPE)
			thread->rows.items[i].end_ns = gather->last_ns;
	gather->failed |= !sort_runs(thread->rows.items, thread->rows.count, sizeof *thread->rows.items, compare_rows, NULL);
	for (size_t i = 0; i < thread->rows.count; i++) {
		const struct row **slot = NULL;

		if (thread->rows.items[i].kind == ROW_SCOPE && thread->rows.items[i].end_ns != GATHER_OPEN)
			slot = list_add_or_fail(&put.scopes, GATHER_ROWS_MAX, &gather->failed);
		if (slot)
			*slot = &thread->rows.items[i];
	}
	gather->failed |= !sort_runs(put.scopes.items, put.scopes.count, sizeof *put.scopes.items, compare_ends, NULL);
	for (size_t i = 0; i < thread->rows.count; i++) {
		struct row *row = &thread->rows.items[i];

		put_ends(&put, row);
		if (row->kind == ROW_PYTHON || row->kind == ROW_C)
			put_call(&put, row);
		else
			put_begin(gather, &put.lane, row);
		lane_keep_small(gather, &put.lane);
	}
	put_ends(&put, NULL);
	list_done(&put.open);
	list_done(&put.scopes);
	list_done(&thread->rows);
	lane_end(gather, &put.lane);
}

static void put_names(struct gather *gather, struct lane *lane, uint32_t process, uint64_t at)
{
	for (size_t i = 0; i < gather->functions.count; i++) {
		const struct function *function = &gather->functions.items[i];
		const char *name = string_of(gather, function->name), *file = string_of(gather, function->file);

		if (function->process != process)
			continue;
		if (function->python)
			event_add(&lane->events, at, EVENT_CODE, (uint32_t)i + 1, 0, (uint64_t)0, function->line, (uint32_t)0, name, name, file);
		else
			event_add(&lane->events, at, EVENT_C_FUNCTION, (uint32_t)i + 1, 0, (uint64_t)0, name, file);
		lane_keep_small(gather, lane);
	}
}

static void put_facts(const struct gather *gather, struct lane *lane, const struct device *device, uint64_t at)
{
	if (!*string_of(gather, device->name) && !*string_of(gather, device->uuid))
		return;
	event_add(&lane->events, at, EVENT_GPU_DEVICE, device->number, 0, device->memory_bytes, (uint64_t)0, device->multiprocessors, device->compute, string_of(gather, device->name), string_of(gather, device->uuid), "");
}

/* Process, names and the window, for each process; what is known of devices with the first one. */
static void put_process(struct gather *gather, uint32_t index)
{
	const struct process *process = &gather->processes.items[index];
	uint64_t at = ticks_of(gather->first_ns);
	const char *name = string_of(gather, process->name);
	struct lane lane;

	lane_begin(gather, &lane, index, 0, LANE_META);
	event_add(&lane.events, at, EVENT_PROCESS, process->shown, 0, (uint32_t)0, (uint64_t)0, name, name, "");
	event_add(&lane.events, at, EVENT_WINDOW_ON, 0, 0, (uint32_t)WINDOW_ARM);
	for (size_t i = 0; process->number == 0 && i < gather->devices.count; i++)
		put_facts(gather, &lane, &gather->devices.items[i], at);
	put_names(gather, &lane, index, at);
	event_add(&lane.events, ticks_of(gather->last_ns), EVENT_WINDOW_OFF, 0, 0, (uint32_t)WINDOW_ARM);
	lane_end(gather, &lane);
}

/* One that has no name, nor its own number, is called after what the file calls it. */
static void put_thread_name(struct gather *gather, struct lane *lane, const struct thread *thread)
{
	const struct process *process = &gather->processes.items[thread->process];
	char told[128];

	if (process->word)
		snprintf(told, sizeof told, "thread %lld of %.60s", (long long)thread->tid, string_of(gather, process->name));
	else
		snprintf(told, sizeof told, "thread %lld of %lld", (long long)thread->tid, (long long)process->pid);
	if (thread->name || thread->number != thread->tid)
		event_add(&lane->events, ticks_of(gather->first_ns), EVENT_THREAD, thread->number, 0, (uint64_t)0, thread->name ? string_of(gather, thread->name) : told);
	lane_keep_small(gather, lane);
}

/* After their lanes: only a thread that is known gets a name. */
static void put_thread_names(struct gather *gather, uint32_t index)
{
	struct lane lane;

	lane_begin(gather, &lane, index, 0, LANE_META);
	for (size_t i = 0; i < gather->threads.count; i++)
		if (gather->threads.items[i].process == index)
			put_thread_name(gather, &lane, &gather->threads.items[i]);
	lane_end(gather, &lane);
}

static void put_number(struct lane *lane, uint64_t at, const char *key, struct number number)
{
	char digits[24];

	snprintf(digits, sizeof digits, "%lld", (long long)number.value);
	if (number.known)
		event_add(&lane->events, at, EVENT_CAPTURE, 0, 0, key, digits);
}

static void put_captures(struct gather *gather, const char *broken)
{
	const struct { const char *name; uint64_t value; } rows[] = {
		{ "import.events", gather->totals.events }, { "import.ignored", gather->totals.ignored }, { "import.bad", gather->totals.bad }, { "import.left_out", gather->totals.left_out },
		{ "import.cut", gather->totals.cut }, { "import.cut_ns", gather->totals.cut_ns }, { "import.unowned", gather->totals.unowned }, { "import.shared_devices", gather->totals.shared_devices },
	};
	uint64_t at = ticks_of(gather->last_ns);
	struct lane lane;

	lane_begin(gather, &lane, UINT32_MAX, 0, LANE_SESSION);
	event_add(&lane.events, at, EVENT_CAPTURE, 0, 0, "mode", "import");
	event_add(&lane.events, at, EVENT_CAPTURE, 0, 0, "format", gather->format);
	if (broken)
		event_add(&lane.events, at, EVENT_CAPTURE, 0, 0, "import.broken", broken);
	for (size_t i = 0; i < ABOUT_ROWS; i++)
		put_number(&lane, at, about_rows[i].key, gather->about.numbers[i]);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		event_add(&lane.events, at, EVENT_COUNTER, 0, 0, rows[i].name, (int64_t)rows[i].value);
	lane_end(gather, &lane);
}

int gather_finish(struct gather *gather, const char *broken, struct error *err)
{
	if (!gather->totals.events && !gather->failed)
		return fail(err, ERR_TRACE_FOREIGN, "the document holds no events that could be used%s%s", broken ? ": " : "", broken ? broken : "");
	if (!gather->processes.count)
		gather_process(gather, 0);
	owners_settle(gather);
	if (!gather->process_count)
		process_number(gather, 0);
	for (uint32_t i = 0; i < gather->processes.count; i++)
		if (gather->processes.items[i].numbered)
			put_process(gather, i);
	for (size_t i = 0; i < gather->threads.count; i++)
		if (gather->threads.items[i].rows.count)
			put_thread(gather, &gather->threads.items[i]);
	for (uint32_t i = 0; i < gather->processes.count; i++)
		if (gather->processes.items[i].numbered)
			put_thread_names(gather, i);
	for (size_t i = 0; i < gather->streams.count; i++)
		lane_flush(gather, &gather->streams.items[i]->lane);
	put_captures(gather, broken);
	if (gather->failed)
		return fail(err, ERR_MEMORY, "importing a trace");
	if (gather->error.code) {
		*err = gather->error;
		return -1;
	}
	return sink_flush(gather->sink, err);
}
