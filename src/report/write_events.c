/*
 * Every call and event with its times: inferscope.events/1, one event per line. They come from the trace by lane in order of their ends; a
 * reader wants them by start. So they are held as small records and sorted; when there are too many for that, a second pass takes those
 * before the moment up to which all of them fit, and the document says that it was cut and where.
 */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/export.h"

enum { EVENTS_MAX = 4000000, BUCKETS = 4096 };

/* What is written of an interval: 48 bytes. */
struct record {
	uint64_t start_ns, end_ns;
	uint32_t kind;
	uint32_t thread;   /* index or UINT32_MAX */
	uint32_t function; /* index or UINT32_MAX; of scopes: which one, from 1 */
	uint32_t name;     /* string id, when there is no function */
	uint32_t extra;    /* of scopes: string id of the metadata; of the device: index into extras; UINT32_MAX = none */
	uint32_t order;    /* as it came: equal times stay in order */
};

struct device_extra { uint32_t device, grid[3], block[3]; uint64_t bytes; };

struct collection {
	struct record *records;
	size_t count, capacity, limit;
	struct device_extra *extras;
	size_t extra_count, extra_capacity;
	struct strings *strings;
	uint64_t buckets[BUCKETS];
	uint64_t duration_ns;
	uint64_t before_ns; /* only what starts before this */
	uint64_t offered;
	uint32_t scope;     /* that was taken last: its beginning, then its end */
	bool failed;
};

static const struct { uint8_t kind; const char *type; bool device, copy, point; } TYPES[] = {
	{ EVENT_PY_ENTER, "cpu_call", false, false, false },
	{ EVENT_C_ENTER, "cpu_call", false, false, false },
	{ EVENT_CPU_SYSCALL, "cpu_syscall", false, false, false },
	{ EVENT_MEMORY_ALLOC, "memory_alloc", false, false, false },
	{ EVENT_MEMORY_FREE, "memory_free", false, false, false },
	{ EVENT_GPU_KERNEL, "gpu_kernel", true, false, false },
	{ EVENT_H2D_COPY, "h2d_copy", true, true, false },
	{ EVENT_D2H_COPY, "d2h_copy", true, true, false },
	{ EVENT_D2D_COPY, "d2d_copy", true, true, false },
	{ EVENT_GPU_MEMSET, "gpu_memset", true, true, false },
	{ EVENT_GPU_SYNC, "gpu_sync", true, false, false },
	{ EVENT_GPU_API, "gpu_api", false, false, false },
	{ EVENT_SCOPE_ENTER, "scope_enter", false, false, true },
	{ EVENT_SCOPE_EXIT, "scope_exit", false, false, true },
	{ EVENT_INSTANT, "instant", false, false, true },
};

static int type_of(uint32_t kind)
{
	for (size_t i = 0; i < sizeof TYPES / sizeof *TYPES; i++)
		if (TYPES[i].kind == kind)
			return (int)i;
	return -1;
}

static size_t bucket_of(const struct collection *all, uint64_t ns)
{
	uint64_t at = all->duration_ns ? (uint64_t)((unsigned __int128)ns * BUCKETS / all->duration_ns) : 0;

	return at < BUCKETS ? (size_t)at : BUCKETS - 1;
}

static bool grow(void **array, size_t count, size_t *capacity, size_t size)
{
	size_t wanted = *capacity ? *capacity * 2 : 1024;
	void *bigger;

	if (count < *capacity)
		return true;
	bigger = realloc(*array, wanted * size);
	if (!bigger)
		return false;
	*array = bigger;
	*capacity = wanted;
	return true;
}

static uint32_t keep_string(struct collection *all, const char *string)
{
	uint32_t id = strings_add(all->strings, string, strlen(string));

	if (id == UINT32_MAX)
		all->failed = true;
	return id;
}

static bool is_scope(uint32_t kind)
{
	return kind == EVENT_SCOPE_ENTER || kind == EVENT_SCOPE_EXIT;
}

static void keep(struct collection *all, const struct interval *interval, uint32_t kind, uint64_t start_ns, uint64_t end_ns, int type)
{
	struct record *record;

	all->buckets[bucket_of(all, start_ns)]++;
	all->offered++;
	if (all->count >= all->limit || start_ns >= all->before_ns)
		return;
	if (!grow((void **)&all->records, all->count, &all->capacity, sizeof *all->records)) {
		all->failed = true;
		return;
	}
	record = &all->records[all->count];
	*record = (struct record){ .start_ns = start_ns, .end_ns = end_ns, .kind = kind, .thread = interval->thread, .function = interval->function, .extra = UINT32_MAX, .order = (uint32_t)all->count };
	record->name = interval->name ? keep_string(all, interval->name) : 0;
	if (is_scope(kind))
		record->function = all->scope;
	if (TYPES[type].point && interval->metadata && *interval->metadata)
		record->extra = keep_string(all, interval->metadata);
	if (TYPES[type].device) {
		if (!grow((void **)&all->extras, all->extra_count, &all->extra_capacity, sizeof *all->extras)) {
			all->failed = true;
			return;
		}
		record->extra = (uint32_t)all->extra_count;
		all->extras[all->extra_count++] = (struct device_extra){ interval->device, { interval->grid[0], interval->grid[1], interval->grid[2] }, { interval->block[0], interval->block[1], interval->block[2] }, interval->bytes };
	}
	all->count++;
}

static bool take(void *context, const struct interval *interval)
{
	struct collection *all = context;
	int type = type_of(interval->kind);

	if (type < 0)
		return true;
	if (!TYPES[type].point) {
		keep(all, interval, interval->kind, interval->start_ns, interval->end_ns, type);
	} else if (interval->kind == EVENT_SCOPE_ENTER) {
		/* From its beginning to its end; the end comes again as SCOPE_EXIT. */
		all->scope++;
		if (!interval->open_start)
			keep(all, interval, EVENT_SCOPE_ENTER, interval->start_ns, interval->start_ns, type);
	} else {
		keep(all, interval, interval->kind, interval->end_ns, interval->end_ns, type);
	}
	return !all->failed;
}

/* Starts before it are at most LIMIT. */
static uint64_t cut_moment(const struct collection *all)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < BUCKETS; i++) {
		sum += all->buckets[i];
		if (sum > all->limit)
			return (uint64_t)((unsigned __int128)all->duration_ns * i / BUCKETS);
	}
	return UINT64_MAX;
}

static bool is_point(const struct record *record)
{
	return TYPES[type_of(record->kind)].point;
}

/* By start; of equal starts the longer first, so that a caller stands before what it calls. What has no length comes after what has, and in the order of the trace: a scope's beginning before its end. */
static int by_start(const void *a, const void *b)
{
	const struct record *x = a, *y = b;

	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	if (x->end_ns != y->end_ns)
		return x->end_ns > y->end_ns ? -1 : 1;
	if (is_point(x) != is_point(y))
		return is_point(x) ? 1 : -1;
	return is_point(x) == (x->order > y->order) ? 1 : -1; /* of calls with equal ends the later one is the outer */
}

static void add_us(struct text *line, const char *key, uint64_t ns)
{
	text_printf(line, ",\"%s\":%llu.%03llu", key, (unsigned long long)(ns / 1000), (unsigned long long)(ns % 1000));
}

static void add_string(struct text *line, const char *string)
{
	text_add(line, "\"", 1);
	text_add_json(line, string, strlen(string));
	text_add(line, "\"", 1);
}

/* cJSON prints fifteen digits: larger numbers would come out as others. */
static bool numbers_kept(const cJSON *item)
{
	for (; item; item = item->next)
		if ((cJSON_IsNumber(item) && fabs(item->valuedouble) >= 1e15) || !numbers_kept(item->child))
			return false;
	return true;
}

/* Metadata is JSON when scope() or mark_event() made it: then it goes in as the object that it is. Anything else is a string. */
static void add_metadata(struct text *line, const char *metadata)
{
	size_t length = strlen(metadata);
	bool valid = *metadata == '{';
	cJSON *object = NULL;
	char *printed = NULL;

	for (size_t at = 0, step; valid && at < length; at += step) {
		step = utf8_length(metadata + at, length - at);
		valid = step > 0;
	}
	if (valid)
		object = cJSON_ParseWithOpts(metadata, NULL, true);
	if (object && numbers_kept(object))
		printed = cJSON_PrintUnformatted(object);
	if (printed)
		text_add_string(line, printed);
	else
		add_string(line, metadata);
	cJSON_free(printed);
	cJSON_Delete(object);
}

static void add_record(struct text *line, const struct report *report, const struct collection *all, const struct record *record)
{
	const struct timeline *timeline = report->timeline;
	int type = type_of(record->kind);

	text_printf(line, "{\"event_type\":\"%s\",\"name\":", TYPES[type].type);
	if (!is_scope(record->kind) && record->function < timeline->function_count)
		add_string(line, timeline->functions[record->function].name);
	else
		add_string(line, record->name ? strings_get(all->strings, record->name) : TYPES[type].type);
	add_us(line, "start_us", record->start_ns);
	add_us(line, "end_us", record->end_ns);
	if (record->thread < timeline->thread_count)
		text_printf(line, ",\"thread_id\":%u,\"cpu_id\":null", timeline->threads[record->thread].tid);
	else
		text_add_string(line, ",\"thread_id\":null,\"cpu_id\":null");
	if (TYPES[type].device && record->extra < all->extra_count) {
		const struct device_extra *extra = &all->extras[record->extra];

		text_printf(line, ",\"device_id\":%u", extra->device);
		if (TYPES[type].copy)
			text_printf(line, ",\"bytes\":%llu", (unsigned long long)extra->bytes);
		if (!TYPES[type].copy || extra->grid[0])
			text_printf(line, ",\"grid_dim\":[%u,%u,%u],\"block_dim\":[%u,%u,%u]", extra->grid[0], extra->grid[1], extra->grid[2], extra->block[0], extra->block[1], extra->block[2]);
	}
	if (is_scope(record->kind))
		text_printf(line, ",\"scope_id\":%u", record->function);
	if (TYPES[type].point) {
		text_add_string(line, ",\"metadata\":");
		if (record->extra == UINT32_MAX)
			text_add_string(line, "null");
		else
			add_metadata(line, strings_get(all->strings, record->extra));
	}
	text_add_string(line, "}");
}

static int write_records(const struct report *report, const struct collection *all, struct sink *sink, struct error *err)
{
	struct text line;
	int result = 0;

	text_init(&line);
	sink_puts(sink, "{\"schema\":\"inferscope.events/1\",\"events\":[\n");
	for (size_t i = 0; i < all->count && !line.failed && !sink_failed(sink); i++) {
		text_clear(&line);
		add_record(&line, report, all, &all->records[i]);
		text_add_string(&line, i + 1 < all->count ? ",\n" : "\n");
		if (!line.failed)
			sink_write(sink, line.data, line.length);
	}
	sink_printf(sink, "],\"start_unix_ns\":\"%llu\",\"cut_count\":%llu", (unsigned long long)report->timeline->start_unix_ns, (unsigned long long)(all->offered - all->count));
	if (all->offered > all->count)
		sink_printf(sink, ",\"complete_until_us\":%llu.%03llu", (unsigned long long)(all->before_ns / 1000), (unsigned long long)(all->before_ns % 1000));
	sink_puts(sink, "}\n");
	if (line.failed)
		result = fail(err, ERR_MEMORY, "writing events");
	text_done(&line);
	return result;
}

static int collect(const struct report *report, struct collection *all, struct error *err)
{
	if (timeline_intervals(report->timeline, report->trace, take, all, err) < 0)
		return -1;
	return all->failed ? fail(err, ERR_MEMORY, "sorting %llu events", (unsigned long long)all->offered) : 0;
}

int write_events(const struct report *report, struct sink *sink, struct error *err)
{
	struct collection *all = calloc(1, sizeof *all);
	int result = -1;

	if (!all)
		return fail(err, ERR_MEMORY, "writing events");
	all->limit = EVENTS_MAX;
	all->before_ns = UINT64_MAX;
	all->duration_ns = report->timeline->duration_ns;
	all->strings = strings_new();
	if (!all->strings) {
		fail(err, ERR_MEMORY, "writing events");
		goto out;
	}
	if (export_trace(report, "events", err) < 0 || collect(report, all, err) < 0)
		goto out;
	if (all->offered > all->count) {
		uint64_t before_ns = cut_moment(all);

		all->before_ns = before_ns;
		all->count = all->extra_count = 0;
		all->offered = 0;
		all->scope = 0;
		if (collect(report, all, err) < 0)
			goto out;
	}
	if (all->count)
		qsort(all->records, all->count, sizeof *all->records, by_start);
	result = write_records(report, all, sink, err);
out:
	free(all->records);
	free(all->extras);
	strings_free(all->strings);
	free(all);
	return result;
}
