/*
 * Chrome's trace JSON in the dialect of Kineto (PyTorch's profiler), which Perfetto, chrome://tracing, TensorBoard and HolisticTraceAnalysis read. A
 * slice is written when it ends, in the order of nesting.h.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/export.h"
#include "report/export_counters.h"
#include "report/nesting.h"
#include "report/rows.h"

#define FIRST_ROW_TID 4194305u /* the kernel numbers no thread or process so high */

struct chrome {
	const struct report *report;
	const struct timeline *timeline;
	struct sink *sink;
	struct rows *rows;
	struct nesting *nesting;
	char **labels;         /* of functions, made at their first use, inside JSON quotes */
	uint32_t *pids, next_tid, *row_tids; /* pids: of processes, by index */
	size_t row_capacity;
	struct text line, name, other;
	const char *counter;   /* whose values come */
	bool failed, any;
};

static void begin_line(struct chrome *all)
{
	text_clear(&all->line);
	text_add_string(&all->line, all->any ? ",\n{" : "{");
	all->any = true;
}

static void end_line(struct chrome *all)
{
	text_add(&all->line, "}", 1);
	all->failed |= all->line.failed || all->name.failed || all->other.failed;
	if (!all->failed)
		sink_write(all->sink, all->line.data, all->line.length);
}

static void add_quoted(struct text *line, const struct text *string)
{
	text_add(line, "\"", 1);
	text_add_json(line, text_string(string), string->length);
	text_add(line, "\"", 1);
}

/* Decimal digits without printf: this is most of the file. */
static char *digits(char *end, uint64_t value, unsigned at_least)
{
	for (; value || at_least; value /= 10) {
		*--end = (char)('0' + value % 10);
		at_least -= at_least > 0;
	}
	return end;
}

/* KEY, microseconds with three decimals: exact. */
static void add_us(struct text *line, const char *key, uint64_t ns)
{
	char number[40], *end = number + sizeof number, *at = digits(end, ns % 1000, 3);

	*--at = '.';
	at = digits(at, ns / 1000, 1);
	text_add_string(line, key);
	text_add(line, at, (size_t)(end - at));
}

static void add_u32(struct text *line, const char *key, uint32_t value)
{
	char number[16], *end = number + sizeof number, *at = digits(end, value, 1);

	text_add_string(line, key);
	text_add(line, at, (size_t)(end - at));
}

static void put_meta(struct chrome *all, const char *what, uint32_t pid, uint32_t tid, const char *key, const struct text *value)
{
	begin_line(all);
	text_printf(&all->line, "\"ph\":\"M\",\"name\":\"%s\",\"pid\":%u,\"tid\":%u,\"ts\":0,\"args\":{\"%s\":", what, pid, tid, key);
	add_quoted(&all->line, value);
	text_add_string(&all->line, "}");
	end_line(all);
}

static void put_sort_index(struct chrome *all, const char *what, uint32_t pid, uint32_t tid, uint32_t index)
{
	begin_line(all);
	text_printf(&all->line, "\"ph\":\"M\",\"name\":\"%s\",\"pid\":%u,\"tid\":%u,\"ts\":0,\"args\":{\"sort_index\":%u}", what, pid, tid, index);
	end_line(all);
}

static void put_process(struct chrome *all, uint32_t process)
{
	export_process(all->report, process, &all->name);
	put_meta(all, "process_name", all->pids[process], 0, "name", &all->name);
	text_clear(&all->name);
	text_add_string(&all->name, "CPU");
	put_meta(all, "process_labels", all->pids[process], 0, "labels", &all->name);
	put_sort_index(all, "process_sort_index", all->pids[process], 0, process);
}

static void put_device(struct chrome *all, uint32_t device, uint32_t index)
{
	text_clear(&all->name);
	text_printf(&all->name, "GPU %u", device);
	put_meta(all, "process_name", device, 0, "name", &all->name);
	put_meta(all, "process_labels", device, 0, "labels", &all->name);
	put_sort_index(all, "process_sort_index", device, 0, index);
}

static uint32_t thread_pid(const struct chrome *all, uint32_t thread)
{
	return all->pids[export_process_of(all->timeline, thread)];
}

static void put_processes(struct chrome *all)
{
	uint32_t count = 1;

	put_process(all, 0);
	for (; count < all->timeline->process_count; count++)
		put_process(all, count);
	for (uint32_t i = 0; i < all->timeline->device_count; i++)
		put_device(all, all->timeline->devices[i].id, count + i);
	for (uint32_t i = 0; i < all->timeline->thread_count; i++) {
		export_thread(all->timeline, i, &all->name);
		put_meta(all, "thread_name", thread_pid(all, i), all->timeline->threads[i].tid, "name", &all->name);
		put_sort_index(all, "thread_sort_index", thread_pid(all, i), all->timeline->threads[i].tid, 16 * i);
	}
}

static bool on_device(const struct row *row)
{
	return row->group == ROWS_STREAM || row->group == ROWS_SYNC;
}

static uint32_t row_pid(const struct chrome *all, const struct row *row)
{
	return on_device(row) ? row->a : thread_pid(all, row->a);
}

/* The first row of a thread or stream has its number, the others get numbers of their own and a name. */
static uint32_t row_tid(struct chrome *all, const struct row *row, bool fresh)
{
	uint32_t tid, *bigger;

	if (!fresh)
		return all->row_tids[row->id];
	if (row->id >= all->row_capacity) {
		bigger = realloc(all->row_tids, (row->id + (size_t)256) * sizeof *bigger);
		if (!bigger) {
			all->failed = true;
			return 0;
		}
		all->row_tids = bigger;
		all->row_capacity = row->id + (size_t)256;
	}
	if (row->group == ROWS_CALLS && !row->number && row->a < all->timeline->thread_count) {
		tid = all->timeline->threads[row->a].tid;
	} else {
		bool shared = on_device(row) && *export_stream_owner(all->timeline, row->a, row->b, row->process, "#").text;

		tid = row->group == ROWS_STREAM && !row->number && !shared && row->b < FIRST_ROW_TID ? row->b : all->next_tid++;
		row_name(row, all->timeline, &all->name);
		put_meta(all, "thread_name", row_pid(all, row), tid, "name", &all->name);
		put_sort_index(all, "thread_sort_index", row_pid(all, row), tid, on_device(row) ? row->b : 16 * row->a + row->group);
	}
	all->row_tids[row->id] = tid;
	return tid;
}

/* "server.py(88): handle", as torch writes it. */
static const char *label_of(struct chrome *all, uint32_t function)
{
	struct text label;

	if (function >= all->timeline->function_count)
		return "(unknown)";
	if (all->labels[function])
		return all->labels[function];
	text_init(&label);
	export_file(all->timeline, function, &all->other);
	if (all->other.length) {
		text_add_json(&label, all->other.data, all->other.length);
		if (all->timeline->functions[function].line)
			text_printf(&label, "(%u)", all->timeline->functions[function].line);
		text_add_string(&label, ": ");
	}
	export_name(all->timeline, function, &all->other);
	text_add_json(&label, text_string(&all->other), all->other.length);
	all->failed |= label.failed;
	all->labels[function] = label.failed ? NULL : label.data;
	return label.failed ? "" : label.data;
}

/* ph, cat and the name's key; the name and the rest follow. */
static void begin_event(struct chrome *all, char phase, unsigned kind)
{
	begin_line(all);
	text_add_string(&all->line, "\"ph\":\"");
	text_add(&all->line, &phase, 1);
	text_add_string(&all->line, "\",\"cat\":\"");
	text_add_string(&all->line, EXPORT_KINDS[export_kind(kind)].category);
	text_add_string(&all->line, "\",\"name\":\"");
}

static void add_place(struct chrome *all, uint32_t pid, uint32_t tid, uint64_t at_ns)
{
	add_u32(&all->line, ",\"pid\":", pid);
	add_u32(&all->line, ",\"tid\":", tid);
	add_us(&all->line, ",\"ts\":", at_ns);
}

static void put_call(void *context, const struct nested_call *call)
{
	struct chrome *all = context;
	bool fresh;
	const struct row *row = rows_of_calls(all->rows, call->lane, call->thread, &fresh);

	begin_event(all, 'X', call->kind);
	text_add_string(&all->line, label_of(all, call->function));
	text_add(&all->line, "\"", 1);
	add_place(all, thread_pid(all, call->thread), row_tid(all, row, fresh), call->start_ns);
	add_us(&all->line, ",\"dur\":", call->end_ns - call->start_ns);
	if (call->open_start || call->open_end || call->exception)
		text_printf(&all->line, ",\"args\":{\"began_before\":%s,\"ended_after\":%s,\"exception\":%s}", call->open_start ? "true" : "false",
			call->open_end ? "true" : "false", call->exception ? "true" : "false");
	end_line(all);
}

static bool call_begins(void *context, const struct interval *call)
{
	struct chrome *all = context;
	bool fresh;
	const struct row *row = rows_of_calls(all->rows, call->lane, call->thread, &fresh);

	if (row) {
		row_tid(all, row, fresh); /* its name comes before its first slice */
		all->failed |= !nesting_begin(all->nesting, call);
	}
	return !all->failed && !sink_failed(all->sink);
}

static void call_ends(struct chrome *all, const struct interval *call)
{
	bool fresh;

	if (rows_of_calls(all->rows, call->lane, call->thread, &fresh))
		all->failed |= !nesting_end(all->nesting, call);
}

/* A wait of the host is no work of the stream: with the stream's number HolisticTraceAnalysis would count it as busy time. */
static void add_device(struct chrome *all, const struct interval *interval)
{
	if (interval->kind == EVENT_GPU_SYNC) {
		text_printf(&all->line, "\"device\":%u,\"stream\":-1,\"wait_on_stream\":%u,\"correlation\":%u", interval->device, interval->stream, interval->correlation);
		return;
	}
	text_printf(&all->line, "\"device\":%u,\"stream\":%u,\"correlation\":%u", interval->device, interval->stream, interval->correlation);
	if (interval->kind == EVENT_GPU_KERNEL)
		text_printf(&all->line, ",\"grid\":[%u,%u,%u],\"block\":[%u,%u,%u]", interval->grid[0], interval->grid[1], interval->grid[2], interval->block[0], interval->block[1], interval->block[2]);
	if (interval->bytes)
		text_printf(&all->line, ",\"bytes\":%llu", (unsigned long long)interval->bytes);
}

static void add_arguments(struct chrome *all, const struct interval *interval)
{
	text_add_string(&all->line, ",\"args\":{");
	if (*interval->metadata) {
		export_string(interval->metadata, &all->other);
		text_add_string(&all->line, "\"metadata\":");
		add_quoted(&all->line, &all->other);
	} else if (interval->kind == EVENT_GPU_API) {
		add_u32(&all->line, "\"correlation\":", interval->correlation);
	} else if (interval->kind >= EVENT_GPU_KERNEL && interval->kind <= EVENT_GPU_SYNC) {
		add_device(all, interval);
	} else if (interval->bytes) {
		text_printf(&all->line, "\"Bytes\":%llu", (unsigned long long)interval->bytes);
	}
	text_add_string(&all->line, "}");
}

/* An arrow from the call that asked to the work of the device. */
static void put_flow(struct chrome *all, const struct interval *interval, uint32_t pid, uint32_t tid)
{
	begin_line(all);
	text_add_string(&all->line, interval->kind == EVENT_GPU_API ? "\"ph\":\"s\"" : "\"ph\":\"f\",\"bp\":\"e\"");
	text_printf(&all->line, ",\"id\":%" PRIu64, interval->flow);
	add_place(all, pid, tid, interval->start_ns);
	text_add_string(&all->line, ",\"cat\":\"ac2g\",\"name\":\"ac2g\"");
	end_line(all);
}

static void put_slice(struct chrome *all, const struct interval *interval)
{
	bool fresh;
	struct row *row = rows_place(all->rows, interval, &fresh);
	uint32_t tid;

	if (!row)
		return;
	tid = row_tid(all, row, fresh);
	begin_event(all, 'X', interval->kind);
	export_string(export_label(interval), &all->name);
	text_add_json(&all->line, text_string(&all->name), all->name.length);
	text_add(&all->line, "\"", 1);
	add_place(all, row_pid(all, row), tid, interval->start_ns);
	add_us(&all->line, ",\"dur\":", interval->end_ns - interval->start_ns);
	add_arguments(all, interval);
	end_line(all);
	if (export_flows(interval))
		put_flow(all, interval, row_pid(all, row), tid);
}

static void put_instant(struct chrome *all, const struct interval *interval)
{
	bool thread = interval->thread < all->timeline->thread_count;

	begin_event(all, 'i', interval->kind);
	export_string(export_label(interval), &all->name);
	text_add_json(&all->line, text_string(&all->name), all->name.length);
	text_add_string(&all->line, thread ? "\",\"s\":\"t\"" : "\",\"s\":\"p\"");
	add_place(all, thread_pid(all, interval->thread), thread ? all->timeline->threads[interval->thread].tid : all->pids[0], interval->start_ns);
	add_arguments(all, interval);
	end_line(all);
}

static bool interval_ends(void *context, const struct interval *interval)
{
	struct chrome *all = context;

	switch (interval->kind) {
	case EVENT_PY_ENTER:
	case EVENT_C_ENTER:
		call_ends(all, interval);
		break;
	case EVENT_SCOPE_EXIT:
		break;
	case EVENT_INSTANT:
	case EVENT_MEMORY_ALLOC:
	case EVENT_MEMORY_FREE:
		put_instant(all, interval);
		break;
	default:
		put_slice(all, interval);
	}
	return !all->failed && !sink_failed(all->sink);
}

static void put_loads(struct chrome *all)
{
	for (size_t i = 0; i < all->timeline->slot_count && !sink_failed(all->sink); i++) {
		const struct load_slot *slot = &all->timeline->slots[i];

		begin_line(all);
		add_u32(&all->line, "\"ph\":\"C\",\"name\":\"threads\",\"pid\":", all->pids[0]);
		add_us(&all->line, ",\"ts\":", slot->start_ns);
		text_add_string(&all->line, ",\"args\":{");
		for (size_t load = 0; load < EXPORT_LOAD_COUNT; load++) {
			uint64_t milli = export_load_milli(slot, EXPORT_LOADS[load].state);

			text_printf(&all->line, "%s\"%s\":%llu.%03llu", load ? "," : "", EXPORT_LOADS[load].name, (unsigned long long)(milli / 1000), (unsigned long long)(milli % 1000));
		}
		text_add_string(&all->line, "}");
		end_line(all);
	}
}

static void begin_counter(void *context, const char *name)
{
	struct chrome *all = context;

	all->counter = name;
}

static void put_point(void *context, uint64_t at_ns, double value)
{
	struct chrome *all = context;

	begin_line(all);
	text_printf(&all->line, "\"ph\":\"C\",\"name\":\"%s\"", all->counter);
	add_u32(&all->line, ",\"pid\":", all->pids[0]);
	add_us(&all->line, ",\"ts\":", at_ns);
	text_printf(&all->line, ",\"args\":{\"value\":%s}", quantity_plain(value, 3).text);
	end_line(all);
}

/* Which process of a job it is, where that is known: who reads several traces tells them apart by it. */
static void write_job(struct chrome *all)
{
	const char *rank = timeline_capture(all->timeline, "rank"), *world = timeline_capture(all->timeline, "rank.world");

	if (!world)
		world = timeline_capture(all->timeline, "world_size"); /* of a trace of torch's */
	if (!rank || !isdigit((unsigned char)*rank))
		return;
	sink_printf(all->sink, "\"distributedInfo\":{\"rank\":%ld", strtol(rank, NULL, 10));
	if (world && isdigit((unsigned char)*world))
		sink_printf(all->sink, ",\"world_size\":%ld", strtol(world, NULL, 10));
	sink_puts(all->sink, "},");
}

static void write_head(struct chrome *all)
{
	const struct timeline *timeline = all->timeline;

	sink_puts(all->sink, "{\"schema\":\"inferscope.chrome/1\",\"schemaVersion\":1,\"displayTimeUnit\":\"ns\",\"deviceProperties\":[");
	for (size_t i = 0; i < timeline->device_count; i++) {
		const struct device *device = &timeline->devices[i];

		text_clear(&all->line);
		text_clear(&all->name);
		text_printf(&all->name, "GPU %u", device->id);
		text_printf(&all->line, "%s{\"id\":%u,\"name\":\"", i ? "," : "", device->id);
		text_add_json(&all->line, *device->name ? device->name : text_string(&all->name), *device->name ? strlen(device->name) : all->name.length);
		text_add_string(&all->line, "\"");
		if (device->multiprocessors)
			text_printf(&all->line, ",\"numSms\":%u", device->multiprocessors);
		text_add_string(&all->line, "}");
		all->failed |= all->line.failed || all->name.failed;
		if (!all->failed)
			sink_write(all->sink, all->line.data, all->line.length);
	}
	sink_puts(all->sink, "],");
	write_job(all);
	sink_printf(all->sink, "\"baseTimeNanoseconds\":%llu,\"inferscope\":{\"quality\":", (unsigned long long)timeline->start_unix_ns);
	export_quality(all->report, &all->name);
	text_clear(&all->line);
	add_quoted(&all->line, &all->name);
	sink_write(all->sink, all->line.data ? all->line.data : "\"\"", all->line.data ? all->line.length : 2);
	sink_puts(all->sink, "},\"traceEvents\":[\n");
}

static int write_all(struct chrome *all, struct error *err)
{
	write_head(all);
	put_processes(all);
	put_loads(all);
	export_counters(all->timeline, &(struct counter_sink){ all, begin_counter, put_point });
	if (timeline_walk(all->timeline, all->report->trace, call_begins, interval_ends, all, err) < 0)
		return -1;
	if (all->failed || rows_failed(all->rows))
		return fail(err, ERR_MEMORY, "writing the Chrome trace");
	sink_printf(all->sink, "\n],\"notShown\":%llu}\n", (unsigned long long)rows_refused(all->rows));
	return 0;
}

int write_chrome(const struct report *report, struct sink *sink, struct error *err)
{
	const struct timeline *timeline = report->timeline;
	struct chrome all = { .report = report, .timeline = timeline, .sink = sink, .next_tid = FIRST_ROW_TID };
	int result = -1;

	if (export_trace(report, "chrome", err) < 0)
		return -1;
	all.pids = export_pids(report, true);
	all.rows = rows_new();
	all.nesting = nesting_new(put_call, &all);
	all.labels = calloc(timeline->function_count + 1, sizeof *all.labels);
	if (!all.pids || !all.rows || !all.nesting || !all.labels)
		fail(err, ERR_MEMORY, "writing the Chrome trace");
	else
		result = write_all(&all, err);
	for (size_t i = 0; all.labels && i < timeline->function_count; i++)
		free(all.labels[i]);
	free(all.labels);
	free(all.pids);
	free(all.row_tids);
	nesting_free(all.nesting);
	rows_free(all.rows);
	text_done(&all.line);
	text_done(&all.name);
	text_done(&all.other);
	return result;
}
