/* Rows as the importers bring them: who, what, when. */
#include <stdlib.h>
#include <string.h>

#include "import/gather_private.h"

enum { PROCESSES_MAX = 4096, DEVICES_MAX = 1024, NAMES_MAX = 1 << 22, NO_THREAD = UINT32_MAX };

uint32_t string_id(struct gather *gather, const char *text)
{
	uint32_t id = strings_add(gather->strings, text ? text : "", text ? strlen(text) : 0);

	gather->failed |= id == UINT32_MAX;
	return id == UINT32_MAX ? 0 : id;
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
	map_done(&gather->threads_by_number);
	map_done(&gather->processes_by_pid);
	map_done(&gather->streams_by_key);
	map_done(&gather->devices_by_identity);
	map_done(&gather->devices_by_number);
	list_done(&gather->devices);
	owners_done(&gather->owners);
	pairs_done(&gather->pairs);
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

void gather_fail(struct gather *gather)
{
	gather->failed = true;
}

/* ---- who ---- */

uint32_t gather_process(struct gather *gather, int64_t pid)
{
	uint32_t index = map_get(&gather->processes_by_pid, (uint64_t)pid);
	struct process *process;

	if (index != MAP_ABSENT)
		return index;
	process = list_add_or_fail(&gather->processes, PROCESSES_MAX, &gather->failed);
	if (!process)
		return NO_THREAD;
	process->pid = pid;
	process->shown = (uint32_t)pid;
	index = (uint32_t)gather->processes.count - 1;
	gather->failed |= !map_put(&gather->processes_by_pid, (uint64_t)pid, index);
	return index;
}

uint32_t process_number(struct gather *gather, uint32_t index)
{
	struct process *process = index < gather->processes.count ? &gather->processes.items[index] : NULL;

	if (!process)
		return 0;
	if (!process->numbered)
		process->number = gather->process_count++;
	process->numbered = true;
	return process->number;
}

static uint64_t thread_key(uint32_t process, int64_t tid)
{
	return mix64((uint64_t)tid) * 31 + process;
}

uint32_t gather_known_thread(const struct gather *gather, int64_t pid, int64_t tid)
{
	uint32_t process = map_get(&gather->processes_by_pid, (uint64_t)pid);

	return process == MAP_ABSENT ? NO_THREAD : map_get(&gather->threads_by_key, thread_key(process, tid));
}

/* The thread's own where that is free: each process of a foreign trace may have a thread 1, and an id may have more than 32 bits. */
static uint32_t free_number(struct gather *gather, int64_t tid)
{
	uint32_t number = (uint32_t)tid;

	while (map_get(&gather->threads_by_number, number) != MAP_ABSENT)
		number = UINT32_MAX - ++gather->numbers_taken;
	return number;
}

static uint32_t find_thread(struct gather *gather, int64_t pid, int64_t tid)
{
	uint32_t process = gather_process(gather, pid), index;
	uint64_t key = thread_key(process, tid);
	struct thread *thread;

	if (process == NO_THREAD)
		return NO_THREAD;
	index = map_get(&gather->threads_by_key, key);
	if (index != MAP_ABSENT)
		return index;
	thread = list_add_or_fail(&gather->threads, GATHER_THREADS_MAX, &gather->failed);
	if (!thread)
		return NO_THREAD;
	thread->process = process;
	thread->tid = tid;
	thread->number = free_number(gather, tid);
	index = (uint32_t)gather->threads.count - 1;
	gather->failed |= !map_put(&gather->threads_by_key, key, index) || !map_put(&gather->threads_by_number, thread->number, index);
	return index;
}

uint32_t gather_thread(struct gather *gather, int64_t pid, int64_t tid)
{
	if (!gather->asked.known || gather->asked.pid != pid || gather->asked.tid != tid) {
		gather->asked.thread = find_thread(gather, pid, tid);
		gather->asked.pid = pid;
		gather->asked.tid = tid;
		gather->asked.known = true;
	}
	return gather->asked.thread;
}

void gather_thread_name(struct gather *gather, uint32_t thread, const char *name)
{
	if (thread < gather->threads.count)
		gather->threads.items[thread].name = string_id(gather, name);
}

void gather_process_name(struct gather *gather, int64_t pid, const char *name)
{
	uint32_t process = gather_process(gather, pid);

	if (process != NO_THREAD && !gather->processes.items[process].word)
		gather->processes.items[process].name = string_id(gather, name);
}

void gather_process_word(struct gather *gather, int64_t pid, const char *word, uint32_t number)
{
	uint32_t process = gather_process(gather, pid);

	if (process == NO_THREAD || gather->processes.items[process].word)
		return;
	gather->processes.items[process].word = true;
	gather->processes.items[process].shown = number;
	gather->processes.items[process].name = string_id(gather, word);
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
	function = list_add_or_fail(&gather->functions, NAMES_MAX, &gather->failed);
	if (!function)
		return 0;
	*function = wanted;
	index = (uint32_t)gather->functions.count - 1;
	gather->failed |= !map_put(&gather->functions_by_key, key, index);
	return index;
}

/* ROW, the newest of THREAD, waits for its end where that is not known; without room for that it lasts to the end of the trace. */
static void open_add(struct gather *gather, uint32_t number, const struct row *row)
{
	struct thread *thread = &gather->threads.items[number];
	uint32_t *slot;

	if (row->end_ns != GATHER_OPEN)
		return;
	slot = list_add_or_fail(&thread->open, OPEN_MAX, &gather->failed);

	if (slot)
		*slot = (uint32_t)thread->rows.count - 1;
	else
		gather->totals.bad++;
}

/* NULL: it was counted as what could not be taken. */
static struct row *row_add(struct gather *gather, uint32_t thread, enum row_kind kind, int64_t start_ns, int64_t end_ns)
{
	struct row *row = NULL;
	struct process *process;

	if (thread < gather->threads.count && gather->row_count < GATHER_ROWS_MAX)
		row = list_add_or_fail(&gather->threads.items[thread].rows, GATHER_ROWS_MAX, &gather->failed);
	if (!row) {
		gather->totals.left_out++;
		return NULL;
	}
	if (!take_time(gather, start_ns, end_ns)) {
		gather->threads.items[thread].rows.count--;
		return NULL;
	}
	*row = (struct row){ .start_ns = start_ns, .end_ns = end_ns, .kind = kind, .order = (uint32_t)gather->row_count & 0x3fffffff };
	gather->row_count++;
	process_number(gather, gather->threads.items[thread].process);
	process = &gather->processes.items[gather->threads.items[thread].process];
	process->first = process->first ? process->first : (uint32_t)gather->row_count;
	process->last = (uint32_t)gather->row_count;
	return row;
}

uint32_t gather_process_of(const struct gather *gather, uint32_t thread)
{
	return thread < gather->threads.count ? gather->threads.items[thread].process : UINT32_MAX;
}

uint32_t gather_function(struct gather *gather, uint32_t thread, bool python, const char *name, const char *file, uint32_t line)
{
	return thread < gather->threads.count ? function_of(gather, gather->threads.items[thread].process, python, name, file, line) : 0;
}

void gather_call(struct gather *gather, uint32_t thread, uint32_t function, int64_t start_ns, int64_t end_ns)
{
	bool python = function < gather->functions.count && gather->functions.items[function].python;
	struct row *row = row_add(gather, thread, python ? ROW_PYTHON : ROW_C, start_ns, end_ns);

	if (!row)
		return;
	row->ref = function;
	open_add(gather, thread, row);
}

void gather_row(struct gather *gather, uint32_t thread, enum row_kind kind, const char *name, const char *file, uint32_t line, int64_t start_ns, int64_t end_ns)
{
	struct row *row;

	if (!*name) {
		gather->totals.bad++;
		return;
	}
	row = row_add(gather, thread, kind, start_ns, end_ns);
	if (!row)
		return;
	if (kind == ROW_PYTHON || kind == ROW_C) {
		row->ref = gather_function(gather, thread, kind == ROW_PYTHON, name, file, line);
	} else {
		row->ref = string_id(gather, name);
		row->extra = string_id(gather, file);
	}
	open_add(gather, thread, row);
}

void gather_scope_begin(struct gather *gather, uint32_t thread, const char *name, const char *metadata, int64_t id, int64_t start_ns)
{
	struct row *row = *name ? row_add(gather, thread, ROW_SCOPE, start_ns, GATHER_OPEN) : NULL;

	gather->totals.bad += !*name;
	if (!row)
		return;
	row->ref = string_id(gather, name);
	row->extra = string_id(gather, metadata);
	pairs_begin(&gather->pairs, &(struct pair_names){ thread, row->ref, row->extra, id }, (uint32_t)gather->threads.items[thread].rows.count - 1, &gather->failed);
}

static void end_row(struct gather *gather, struct row *row, int64_t end_ns)
{
	row->end_ns = end_ns;
	if (end_ns > gather->last_ns)
		gather->last_ns = end_ns;
}

void gather_scope_end(struct gather *gather, uint32_t thread, const char *name, const char *metadata, int64_t id, int64_t end_ns)
{
	struct pair *pair = pairs_find(&gather->pairs, &(struct pair_names){ thread, string_id(gather, name), string_id(gather, metadata), id });
	struct row *row = pair ? &gather->threads.items[thread].rows.items[pair->row] : NULL;

	if (!row || end_ns < row->start_ns) {
		gather->totals.bad++;
		return;
	}
	pair->ended = true;
	end_row(gather, row, end_ns);
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
	end_row(gather, row, end_ns);
}

/* ---- devices ---- */

static struct lane *stream_lane(struct gather *gather, uint32_t process, uint32_t device, uint32_t stream)
{
	uint64_t key = mix64((uint64_t)device << 32 | stream) * 31 + process;
	uint32_t index = map_get(&gather->streams_by_key, key);
	struct stream **slot, *made;

	if (index != MAP_ABSENT)
		return &gather->streams.items[index]->lane;
	made = calloc(1, sizeof *made);
	gather->failed |= !made;
	slot = made ? list_add_or_fail(&gather->streams, GATHER_STREAMS_MAX, &gather->failed) : NULL;
	if (!slot) {
		free(made);
		return NULL;
	}
	*slot = made;
	lane_begin(gather, &made->lane, process, 0, LANE_GPU);
	gather->failed |= !map_put(&gather->streams_by_key, key, (uint32_t)gather->streams.count - 1);
	return &made->lane;
}

void put_device(struct gather *gather, const struct device_work *work)
{
	struct lane *lane = stream_lane(gather, work->owner - 1, work->device, work->stream);
	uint64_t start = ticks_of(work->start_ns), duration = ticks_of(work->end_ns) - start; /* taken only where it is none below zero */

	if (!lane) {
		gather->totals.left_out++;
		return;
	}
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

void gather_device(struct gather *gather, const struct device_work *work)
{
	if (!take_time(gather, work->start_ns, work->end_ns))
		return;
	if (work->owner)
		put_device(gather, work);
	else
		owners_keep(gather, work);
}

uint32_t gather_device_known(const struct gather *gather, uint64_t identity)
{
	return map_get(&gather->devices_by_identity, identity);
}

static uint64_t known_or_0(struct number number, int64_t most)
{
	return number.known && number.value > 0 && number.value <= most ? (uint64_t)number.value : 0;
}

struct device_facts gather_described(const struct gather *gather, uint32_t id)
{
	const struct described_device *found = NULL;

	for (size_t i = 0; i < gather->about.device_count; i++) {
		const struct described_device *device = &gather->about.devices[i];

		if (device->id.value != id)
			continue;
		if (found && strcmp(found->name, device->name) != 0)
			return (struct device_facts){ .name = "", .uuid = "" };
		found = device;
	}
	if (!found)
		return (struct device_facts){ .name = "", .uuid = "" };
	return (struct device_facts){ known_or_0(found->memory_bytes, INT64_MAX), (uint32_t)known_or_0(found->multiprocessors, INT32_MAX),
		(uint32_t)(known_or_0(found->compute_major, 1000) * 10 + known_or_0(found->compute_minor, 9)), found->name, "" };
}

uint32_t gather_device_add(struct gather *gather, uint64_t identity, uint32_t wanted, const struct device_facts *facts)
{
	struct device *device = list_add_or_fail(&gather->devices, DEVICES_MAX, &gather->failed);
	uint32_t number = wanted;

	if (!device)
		return wanted; /* a lying trace: all that is left over by what it calls them */
	for (uint32_t free = 0; map_get(&gather->devices_by_number, number) != MAP_ABSENT; free++)
		number = free;
	*device = (struct device){ number, string_id(gather, facts->name), string_id(gather, facts->uuid), facts->multiprocessors, facts->compute, facts->memory_bytes };
	gather->failed |= !map_put(&gather->devices_by_identity, identity, number) || !map_put(&gather->devices_by_number, number, 0);
	return number;
}

void gather_api(struct gather *gather, uint32_t thread, const char *name, int64_t start_ns, int64_t end_ns, uint32_t correlation)
{
	struct lane *lane;

	gather_row(gather, thread, ROW_C, name, "", 0, start_ns, end_ns);
	if (thread >= gather->threads.count || end_ns < start_ns)
		return;
	owners_call(gather, gather->threads.items[thread].process, correlation);
	lane = stream_lane(gather, gather->threads.items[thread].process, UINT32_MAX, 0);
	if (!lane)
		return;
	event_add(&lane->events, ticks_of(start_ns), EVENT_GPU_API, 0, 0, ticks_of(end_ns) - ticks_of(start_ns), correlation, gather->threads.items[thread].number, name);
	lane_keep_small(gather, lane);
}
