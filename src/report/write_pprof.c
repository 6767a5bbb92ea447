/*
 * A profile as google/pprof reads it: profile.proto, packed as gzip. A sample is a distinct stack of a thread with its calls, samples, wall and
 * CPU self time, the time it held the GIL and that of the device's work it asked for. Messages may come in any order, so stacks are written while they are found and the tables after them; string n of the
 * table is known beforehand, and nothing is kept.
 */
#include <stdlib.h>

#include "report/export.h"
#include "report/gzip.h"
#include "report/proto.h"

enum profile_field { PROFILE_TYPE = 1, PROFILE_SAMPLE = 2, PROFILE_MAPPING = 3, PROFILE_LOCATION = 4, PROFILE_FUNCTION = 5, PROFILE_STRING = 6, PROFILE_TIME = 9, PROFILE_DURATION = 10, PROFILE_PERIOD_TYPE = 11, PROFILE_PERIOD = 12, PROFILE_COMMENT = 13, PROFILE_DEFAULT = 14 };

/* The table's first strings: these, and two for each kind of value; then two for each function, one for each thread, and the process's three. */
enum fixed_string { STRING_EMPTY, STRING_THREAD, STRING_VALUES };
static const char *const STRINGS[] = { "", "thread" };
enum process_string { STRING_EXECUTABLE, STRING_QUALITY, STRING_COMMAND };

struct pprof {
	const struct report *report;
	const struct timeline *timeline;
	struct sink *sink;
	struct gzip gzip;
	bool failed;
	struct text message, inner, list, name;
};

/* Writes all->message as FIELD of the profile. */
static void put_message(struct pprof *all, enum profile_field field)
{
	unsigned char head[PROTO_FIELD_BYTES];

	all->failed |= all->message.failed || all->inner.failed || all->list.failed || all->name.failed;
	if (all->failed)
		return;
	gzip_add(&all->gzip, head, (size_t)(proto_head(head, field, all->message.length) - head));
	gzip_add(&all->gzip, all->message.data, all->message.length);
}

static void put_number(struct pprof *all, enum profile_field field, uint64_t value)
{
	unsigned char bytes[PROTO_FIELD_BYTES];

	gzip_add(&all->gzip, bytes, (size_t)(proto_number(bytes, field, value) - bytes));
}

static uint64_t value_string(size_t value, bool unit)
{
	return STRING_VALUES + 2 * (uint64_t)value + unit;
}

static uint64_t function_string(uint32_t function, bool file)
{
	return value_string(EXPORT_VALUE_COUNT, false) + 2 * (uint64_t)function + file;
}

static uint64_t thread_string(const struct pprof *all, uint32_t thread)
{
	return function_string((uint32_t)all->timeline->function_count, false) + thread;
}

static uint64_t process_string(const struct pprof *all, enum process_string string)
{
	return thread_string(all, (uint32_t)all->timeline->thread_count) + string;
}

static void put_value_type(struct pprof *all, enum profile_field field, size_t value)
{
	text_clear(&all->message);
	proto_add_number(&all->message, 1, value_string(value, false));
	proto_add_number(&all->message, 2, value_string(value, true));
	put_message(all, field);
}

static void add_packed(struct pprof *all, uint64_t value)
{
	unsigned char bytes[PROTO_FIELD_BYTES];

	text_add(&all->list, bytes, (size_t)(proto_varint(bytes, value) - bytes));
}

static void put_sample(struct pprof *all, uint32_t index)
{
	const struct tree_node *node = &all->timeline->nodes[index];

	text_clear(&all->message);
	text_clear(&all->list);
	for (uint32_t at = index; at; at = all->timeline->nodes[at].parent)
		add_packed(all, (uint64_t)all->timeline->nodes[at].function + 1);
	proto_add_message(&all->message, 1, &all->list);
	text_clear(&all->list);
	for (size_t i = 0; i < EXPORT_VALUE_COUNT; i++)
		if (EXPORT_VALUES[i].known(all->timeline))
			add_packed(all, export_value(node, i));
	proto_add_message(&all->message, 2, &all->list);
	if (node->thread < all->timeline->thread_count) {
		text_clear(&all->inner);
		proto_add_number(&all->inner, 1, STRING_THREAD);
		proto_add_number(&all->inner, 2, thread_string(all, node->thread));
		proto_add_message(&all->message, 3, &all->inner);
	}
	put_message(all, PROFILE_SAMPLE);
}

static void put_mapping(struct pprof *all)
{
	text_clear(&all->message);
	proto_add_number(&all->message, 1, 1);
	proto_add_number(&all->message, 5, process_string(all, STRING_EXECUTABLE));
	for (unsigned has = 7; has <= 9; has++) /* functions, file names, lines: nothing is left to look up */
		proto_add_number(&all->message, has, 1);
	put_message(all, PROFILE_MAPPING);
}

static void put_function(struct pprof *all, uint32_t function)
{
	uint32_t line = all->timeline->functions[function].line;

	text_clear(&all->message);
	text_clear(&all->inner);
	proto_add_number(&all->inner, 1, (uint64_t)function + 1);
	proto_add_number(&all->inner, 2, line);
	proto_add_number(&all->message, 1, (uint64_t)function + 1);
	proto_add_number(&all->message, 2, 1);
	proto_add_message(&all->message, 4, &all->inner);
	put_message(all, PROFILE_LOCATION);
	text_clear(&all->message);
	proto_add_number(&all->message, 1, (uint64_t)function + 1);
	proto_add_number(&all->message, 2, function_string(function, false));
	/* A system name like the name would be taken for a mangled one, and "<module>" for a template's arguments. */
	proto_add_number(&all->message, 3, function_string(function, true));
	proto_add_number(&all->message, 4, function_string(function, true));
	proto_add_number(&all->message, 5, line);
	put_message(all, PROFILE_FUNCTION);
}

static void put_string(struct pprof *all, const struct text *string)
{
	text_clear(&all->message);
	text_add(&all->message, text_string(string), string->length);
	put_message(all, PROFILE_STRING);
}

static void put_strings(struct pprof *all)
{
	const struct process *process = all->timeline->process_count ? &all->timeline->processes[0] : NULL;

	for (size_t i = 0; i < STRING_VALUES; i++) {
		text_clear(&all->name);
		text_add_string(&all->name, STRINGS[i]);
		put_string(all, &all->name);
	}
	for (size_t i = 0; i < EXPORT_VALUE_COUNT; i++) {
		export_string(EXPORT_VALUES[i].type, &all->name);
		put_string(all, &all->name);
		export_string(EXPORT_VALUES[i].unit, &all->name);
		put_string(all, &all->name);
	}
	for (uint32_t i = 0; i < all->timeline->function_count; i++) {
		export_name(all->timeline, i, &all->name);
		put_string(all, &all->name);
		export_file(all->timeline, i, &all->name);
		put_string(all, &all->name);
	}
	for (uint32_t i = 0; i < all->timeline->thread_count; i++) {
		export_thread(all->timeline, i, &all->name);
		put_string(all, &all->name);
	}
	export_string(process && *process->executable ? process->executable : "python", &all->name);
	put_string(all, &all->name);
	export_quality(all->report, &all->name);
	put_string(all, &all->name);
	export_process(all->report, 0, &all->name);
	put_string(all, &all->name);
}

static void put_all(struct pprof *all)
{
	const struct timeline *timeline = all->timeline;

	for (size_t i = 0; i < EXPORT_VALUE_COUNT; i++)
		if (EXPORT_VALUES[i].known(timeline))
			put_value_type(all, PROFILE_TYPE, i);
	for (uint32_t i = 1; i < timeline->node_count && !sink_failed(all->sink); i++)
		if (export_has_value(&timeline->nodes[i]))
			put_sample(all, i);
	put_mapping(all);
	for (uint32_t i = 0; i < timeline->function_count && !sink_failed(all->sink); i++)
		put_function(all, i);
	put_strings(all);
	put_number(all, PROFILE_TIME, timeline->start_unix_ns);
	put_number(all, PROFILE_DURATION, timeline->duration_ns);
	put_value_type(all, PROFILE_PERIOD_TYPE, EXPORT_VALUE_WALL);
	put_number(all, PROFILE_PERIOD, 1);
	put_number(all, PROFILE_COMMENT, process_string(all, STRING_COMMAND));
	put_number(all, PROFILE_COMMENT, process_string(all, STRING_QUALITY));
	put_number(all, PROFILE_DEFAULT, value_string(EXPORT_VALUE_WALL, false));
}

int write_pprof(const struct report *report, struct sink *sink, struct error *err)
{
	struct pprof *all = calloc(1, sizeof *all);
	bool written = false;

	if (all && gzip_begin(&all->gzip, sink)) {
		all->report = report;
		all->timeline = report->timeline;
		all->sink = sink;
		put_all(all);
		written = gzip_end(&all->gzip) && !all->failed;
		text_done(&all->message);
		text_done(&all->inner);
		text_done(&all->list);
		text_done(&all->name);
	}
	free(all);
	return written ? 0 : fail(err, ERR_MEMORY, "writing the pprof profile");
}
