#include "import/gather.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/list.h"
#include "base/map.h"
#include "base/sink.h"
#include "base/text.h"
#include "trace/writer.h"

enum { CHUNK_BYTES = 1 << 20, PROCESSES_MAX = 4096, OPEN_MAX = 1 << 16, NAMES_MAX = 1 << 22, PYTHON_REF = 0, NO_THREAD = UINT32_MAX };

struct row {
	int64_t start_ns, end_ns;
	uint32_t ref;   /* function id; of scopes and instants the name, a string id */
	uint32_t extra; /* of scopes and instants the metadata, a string id */
	uint32_t order : 30, kind : 2; /* as it came: equal ones stay in order */
};

struct function { uint32_t process, name, file, line, python; };
struct process { int64_t pid; uint32_t name; };
struct thread { uint32_t process, name; int64_t tid; LIST(struct row) rows; LIST(uint32_t) open; /* rows without an end, innermost last */ };

/* Events of one lane on their way into the trace. */
struct lane { struct event_builder events; uint32_t number, process, tid, kind; uint64_t sequence; };
struct stream { uint64_t key; struct lane lane; };

struct gather {
	struct sink *sink;
	struct trace_writer *writer;
	const char *format;
	struct gather_about about;
	struct strings *strings;
	struct map functions_by_key, threads_by_key, processes_by_pid, streams_by_key;
	LIST(struct function) functions;
	LIST(struct process) processes;
	LIST(struct thread) threads;
	LIST(struct stream *) streams;
	size_t row_count;
	int64_t first_ns, last_ns;
	uint32_t lane_count;
	struct gather_totals totals;
	bool failed; /* out of memory */
	struct error error;
};

static bool lane_flush(struct gather *gather, struct lane *lane);

static uint32_t string_id(struct gather *gather, const char *text)
{
	uint32_t id = strings_add(gather->strings, text ? text : "", text ? strlen(text) : 0);

	gather->failed |= id == UINT32_MAX;
	return id == UINT32_MAX ? 0 : id;
}

static const char *string_of(const struct gather *gather, uint32_t id)
{
	return strings_get(gather->strings, id);
}

int gather_open(int fd, const char *format, struct gather **out, struct error *err)
{
	struct gather *gather = calloc(1, sizeof *gather);

	if (!gather || !(gather->strings = strings_new())) {
		free(gather);
		return fail(err, ERR_MEMORY, "importing a trace");
	}
	gather->format = format;
	gather->first_ns = INT64_MAX;
	gather->last_ns = INT64_MIN;
	gather->lane_count = 1; /* 0 is the session's */
	if (sink_open_fd(fd, &gather->sink, err) < 0 || trace_writer_open(gather->sink, CODEC_DELTA_ZSTD, 0, &gather->writer, err) < 0) {
		gather_close(gather);
		return -1;
	}
	*out = gather;
	return 0;
}

void gather_close(struct gather *gather)
{
	if (!gather)
		return;
	for (size_t i = 0; i < gather->threads.count; i++) {
		list_done(&gather->threads.items[i].rows);
		list_done(&gather->threads.items[i].open);
	}
	for (size_t i = 0; i < gather->streams.count; i++) {
		event_builder_done(&gather->streams.items[i]->lane.events);
		free(gather->streams.items[i]);
	}
	list_done(&gather->threads);
	list_done(&gather->streams);
	list_done(&gather->functions);
	list_done(&gather->processes);
	map_done(&gather->functions_by_key);
	map_done(&gather->threads_by_key);
	map_done(&gather->processes_by_pid);
	map_done(&gather->streams_by_key);
	if (gather->writer)
		trace_writer_close(gather->writer);
	sink_discard(gather->sink);
	strings_free(gather->strings);
	free(gather);
}

void gather_set_about(struct gather *gather, const struct gather_about *about)
{
	gather->about = *about;
}

struct gather_totals *gather_totals(struct gather *gather)
{
	return &gather->totals;
}

/* ---- who ---- */

static uint32_t process_of(struct gather *gather, int64_t pid)
{
	uint32_t index = map_get(&gather->processes_by_pid, (uint64_t)pid);
	struct process *process;

	if (index != MAP_ABSENT)
		return index;
	process = list_add(&gather->processes, PROCESSES_MAX);
	if (!process)
		return NO_THREAD;
	process->pid = pid;
	index = (uint32_t)gather->processes.count - 1;
	gather->failed |= !map_put(&gather->processes_by_pid, (uint64_t)pid, index);
	return index;
}

uint32_t gather_thread(struct gather *gather, int64_t pid, int64_t tid)
{
	uint32_t process = process_of(gather, pid), index;
	uint64_t key = mix64((uint64_t)tid) * 31 + process;
	struct thread *thread;

	if (process == NO_THREAD)
		return NO_THREAD;
	index = map_get(&gather->threads_by_key, key);
	if (index != MAP_ABSENT)
		return index;
	thread = list_add(&gather->threads, GATHER_THREADS_MAX);
	if (!thread)
		return NO_THREAD;
	thread->process = process;
	thread->tid = tid;
	index = (uint32_t)gather->threads.count - 1;
	gather->failed |= !map_put(&gather->threads_by_key, key, index);
	return index;
}

void gather_thread_name(struct gather *gather, uint32_t thread, const char *name)
{
	if (thread < gather->threads.count)
		gather->threads.items[thread].name = string_id(gather, name);
}

void gather_process_name(struct gather *gather, int64_t pid, const char *name)
{
	uint32_t process = process_of(gather, pid);

	if (process != NO_THREAD)
		gather->processes.items[process].name = string_id(gather, name);
}

/* ---- what ---- */

static bool take_time(struct gather *gather, int64_t start_ns, int64_t end_ns)
{
	if (end_ns < start_ns) {
		gather->totals.bad++;
		return false;
	}
	if (start_ns < gather->first_ns)
		gather->first_ns = start_ns;
	if (end_ns == GATHER_OPEN)
		end_ns = start_ns;
	if (end_ns > gather->last_ns)
		gather->last_ns = end_ns;
	gather->totals.events++;
	return true;
}

static uint32_t function_of(struct gather *gather, uint32_t process, bool python, const char *name, const char *file, uint32_t line)
{
	struct function wanted = { process, string_id(gather, name), string_id(gather, file), line, python };
	uint64_t key = mix64((uint64_t)wanted.name << 32 | wanted.file) ^ mix64((uint64_t)process << 32 | line << 1 | python);
	uint32_t index;
	struct function *function;

	/* Another function with the same key: the next key. */
	for (;; key++) {
		index = map_get(&gather->functions_by_key, key);
		if (index == MAP_ABSENT)
			break;
		function = &gather->functions.items[index];
		if (memcmp(function, &wanted, sizeof wanted) == 0)
			return index;
	}
	function = list_add(&gather->functions, NAMES_MAX);
	if (!function)
		return 0;
	*function = wanted;
	index = (uint32_t)gather->functions.count - 1;
	gather->failed |= !map_put(&gather->functions_by_key, key, index);
	return index;
}

/* The newest row of THREAD waits for its end; without room for that it lasts to the end of the trace. */
static void open_add(struct gather *gather, struct thread *thread)
{
	uint32_t *slot = list_add(&thread->open, OPEN_MAX);

	if (slot)
		*slot = (uint32_t)thread->rows.count - 1;
	else
		gather->totals.bad++;
}

void gather_row(struct gather *gather, uint32_t thread, enum row_kind kind, const char *name, const char *file, uint32_t line, int64_t start_ns, int64_t end_ns)
{
	bool call = kind == ROW_PYTHON || kind == ROW_C;
	struct row *row = NULL;

	if (!*name) {
		gather->totals.bad++;
		return;
	}
	if (thread < gather->threads.count && gather->row_count < GATHER_ROWS_MAX)
		row = list_add(&gather->threads.items[thread].rows, GATHER_ROWS_MAX);
	if (!row) {
		gather->totals.left_out++;
		return;
	}
	if (!take_time(gather, start_ns, end_ns)) {
		gather->threads.items[thread].rows.count--;
		return;
	}
	*row = (struct row){ .start_ns = start_ns, .end_ns = end_ns, .kind = kind, .order = (uint32_t)gather->row_count & 0x3fffffff };
	row->ref = call ? function_of(gather, gather->threads.items[thread].process, kind == ROW_PYTHON, name, file, line) : string_id(gather, name);
	row->extra = call ? 0 : string_id(gather, file);
	gather->row_count++;
	if (end_ns == GATHER_OPEN)
		open_add(gather, &gather->threads.items[thread]);
}

void gather_end(struct gather *gather, uint32_t thread, int64_t end_ns)
{
	struct thread *of = thread < gather->threads.count ? &gather->threads.items[thread] : NULL;
	struct row *row = of && of->open.count ? &of->rows.items[of->open.items[of->open.count - 1]] : NULL;

	if (!row || end_ns < row->start_ns) {
		gather->totals.bad++;
		return;
	}
	of->open.count--;
	row->end_ns = end_ns;
	if (end_ns > gather->last_ns)
		gather->last_ns = end_ns;
}

/* ---- lanes ---- */

static void lane_begin(struct gather *gather, struct lane *lane, uint32_t process, uint32_t tid, uint32_t kind)
{
	*lane = (struct lane){ .number = gather->lane_count++, .process = process, .tid = tid, .kind = kind };
	event_builder_init(&lane->events);
}

/* Puts what the lane has into the trace. */
static bool lane_flush(struct gather *gather, struct lane *lane)
{
	struct chunk chunk = { .process = lane->process, .lane = lane->number, .tid = lane->tid, .lane_kind = lane->kind, .sequence = ++lane->sequence,
		.clock = clock_map_monotonic(), .events = lane->events.bytes, .size = lane->events.size };

	gather->failed |= lane->events.failed;
	if (lane->events.size && trace_writer_add(gather->writer, &chunk, &gather->error) < 0)
		return false;
	event_builder_clear(&lane->events);
	return true;
}

static void lane_keep_small(struct gather *gather, struct lane *lane)
{
	if (lane->events.size >= CHUNK_BYTES)
		lane_flush(gather, lane);
}

static void lane_end(struct gather *gather, struct lane *lane)
{
	lane_flush(gather, lane);
	event_builder_done(&lane->events);
}

/* Foreign clocks may be negative; ours begins at 1 or later. */
static uint64_t ticks_of(int64_t ns)
{
	return ns > 0 ? (uint64_t)ns : 1;
}

static struct lane *stream_lane(struct gather *gather, uint32_t device, uint32_t stream)
{
	uint64_t key = (uint64_t)device << 32 | stream;
	uint32_t index = map_get(&gather->streams_by_key, key);
	struct stream **slot, *made;

	if (index != MAP_ABSENT)
		return &gather->streams.items[index]->lane;
	made = calloc(1, sizeof *made);
	slot = made ? list_add(&gather->streams, GATHER_STREAMS_MAX) : NULL;
	if (!slot) {
		free(made);
		return NULL;
	}
	*slot = made;
	made->key = key;
	lane_begin(gather, &made->lane, 0, 0, LANE_GPU);
	gather->failed |= !map_put(&gather->streams_by_key, key, (uint32_t)gather->streams.count - 1);
	return &made->lane;
}

void gather_device(struct gather *gather, const struct device_work *work)
{
	struct lane *lane = stream_lane(gather, work->device, work->stream);
	uint64_t start = ticks_of(work->start_ns), duration = (uint64_t)(work->end_ns - work->start_ns);

	if (!lane) {
		gather->totals.left_out++;
		return;
	}
	if (!take_time(gather, work->start_ns, work->end_ns))
		return;
	switch (work->kind) {
	case EVENT_GPU_KERNEL:
		event_add(&lane->events, start, EVENT_GPU_KERNEL, 0, 0, duration, work->correlation, work->device, work->stream, work->grid[0], work->grid[1], work->grid[2], work->block[0], work->block[1],
		          work->block[2], work->name);
		break;
	case EVENT_GPU_MEMSET:
		event_add(&lane->events, start, EVENT_GPU_MEMSET, 0, 0, duration, work->correlation, work->device, work->stream, work->bytes);
		break;
	case EVENT_GPU_SYNC:
		event_add(&lane->events, start, EVENT_GPU_SYNC, 0, 0, duration, work->correlation, work->device, work->stream, work->detail);
		break;
	default:
		event_add(&lane->events, start, work->kind, 0, 0, duration, work->correlation, work->device, work->stream, work->bytes, work->detail);
	}
	lane_keep_small(gather, lane);
}

void gather_api(struct gather *gather, uint32_t thread, const char *name, int64_t start_ns, int64_t end_ns, uint32_t correlation)
{
	struct lane *lane;

	gather_row(gather, thread, ROW_C, name, "", 0, start_ns, end_ns);
	if (thread >= gather->threads.count || end_ns < start_ns)
		return;
	lane = stream_lane(gather, UINT32_MAX, gather->threads.items[thread].process);
	if (!lane)
		return;
	lane->process = gather->threads.items[thread].process;
	event_add(&lane->events, ticks_of(start_ns), EVENT_GPU_API, 0, 0, (uint64_t)(end_ns - start_ns), correlation, (uint32_t)gather->threads.items[thread].tid, name);
	lane_keep_small(gather, lane);
}

/* ---- putting in order ---- */

static int compare_rows(const void *left, const void *right)
{
	const struct row *a = left, *b = right;

	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	if (a->end_ns != b->end_ns)
		return a->end_ns > b->end_ns ? -1 : 1; /* the outer one first */
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

/* Begins and ends of a thread's rows, in the order of time. */
static void put_thread(struct gather *gather, struct thread *thread)
{
	LIST(const struct row *) open = { 0 };
	struct lane lane;

	lane_begin(gather, &lane, thread->process, (uint32_t)thread->tid, LANE_THREAD);
	for (size_t i = 0; i < thread->rows.count; i++)
		if (thread->rows.items[i].end_ns == GATHER_OPEN)
			thread->rows.items[i].end_ns = gather->last_ns;
	if (thread->rows.count)
		qsort(thread->rows.items, thread->rows.count, sizeof *thread->rows.items, compare_rows);
	for (size_t i = 0; i < thread->rows.count; i++) {
		struct row *row = &thread->rows.items[i];
		const struct row **slot;

		while (open.count && open.items[open.count - 1]->end_ns <= row->start_ns)
			put_end(&lane, open.items[--open.count]);
		if (open.count && row->end_ns > open.items[open.count - 1]->end_ns) {
			row->end_ns = open.items[open.count - 1]->end_ns;
			gather->totals.cut++;
		}
		slot = row->kind == ROW_INSTANT ? NULL : list_add(&open, OPEN_MAX);
		if (slot)
			*slot = row;
		if (slot || row->kind == ROW_INSTANT)
			put_begin(gather, &lane, row);
		else
			gather->totals.left_out++;
		lane_keep_small(gather, &lane);
	}
	while (open.count)
		put_end(&lane, open.items[--open.count]);
	list_done(&open);
	list_done(&thread->rows);
	lane_end(gather, &lane);
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

/* Process, names and the window, for each process. */
static void put_process(struct gather *gather, uint32_t index)
{
	const struct process *process = &gather->processes.items[index];
	uint64_t at = ticks_of(gather->first_ns);
	const char *name = string_of(gather, process->name);
	struct lane lane;

	lane_begin(gather, &lane, index, 0, LANE_META);
	event_add(&lane.events, at, EVENT_PROCESS, (uint32_t)process->pid, 0, (uint32_t)0, (uint64_t)0, name, name, "");
	event_add(&lane.events, at, EVENT_WINDOW_ON, 0, 0, (uint32_t)WINDOW_ARM);
	put_names(gather, &lane, index, at);
	event_add(&lane.events, ticks_of(gather->last_ns), EVENT_WINDOW_OFF, 0, 0, (uint32_t)WINDOW_ARM);
	lane_end(gather, &lane);
}

/* After their lanes: only a thread that is known gets a name. */
static void put_thread_names(struct gather *gather, uint32_t index)
{
	uint64_t at = ticks_of(gather->first_ns);
	struct lane lane;

	lane_begin(gather, &lane, index, 0, LANE_META);
	for (size_t i = 0; i < gather->threads.count; i++) {
		const struct thread *thread = &gather->threads.items[i];

		if (thread->process == index && thread->name)
			event_add(&lane.events, at, EVENT_THREAD, (uint32_t)thread->tid, 0, (uint64_t)0, string_of(gather, thread->name));
		lane_keep_small(gather, &lane);
	}
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
		{ "import.cut", gather->totals.cut },
	};
	uint64_t at = ticks_of(gather->last_ns);
	struct lane lane;

	lane_begin(gather, &lane, 0, 0, LANE_SESSION);
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
	if (!gather->totals.events)
		return fail(err, ERR_TRACE_FOREIGN, "the document holds no events that could be used%s%s", broken ? ": " : "", broken ? broken : "");
	if (!gather->processes.count)
		process_of(gather, 0);
	for (uint32_t i = 0; i < gather->processes.count; i++)
		put_process(gather, i);
	for (size_t i = 0; i < gather->threads.count; i++)
		put_thread(gather, &gather->threads.items[i]);
	for (uint32_t i = 0; i < gather->processes.count; i++)
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
