/*
 * Profiles as OpenTelemetry's collectors take them: an ExportProfilesServiceRequest of opentelemetry-proto (profiles v1development, as of 1.9), packed as gzip. A
 * profile for each kind of value; tables begin with an empty row, which stands for nothing.
 */
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "report/export.h"
#include "report/gzip.h"
#include "report/proto.h"

enum request_field { REQUEST_RESOURCES = 1, REQUEST_DICTIONARY = 2 };
enum dictionary_field { TABLE_MAPPING = 1, TABLE_LOCATION = 2, TABLE_FUNCTION = 3, TABLE_LINK = 4, TABLE_STRING = 5, TABLE_ATTRIBUTE = 6, TABLE_STACK = 7 };
enum resource_field { RESOURCE_RESOURCE = 1, RESOURCE_SCOPES = 2 };
enum scope_field { SCOPE_SCOPE = 1, SCOPE_PROFILES = 2 };
enum profile_field { PROFILE_TYPE = 1, PROFILE_SAMPLES = 2, PROFILE_TIME = 3, PROFILE_DURATION = 4, PROFILE_PERIOD_TYPE = 5, PROFILE_PERIOD = 6 };
enum sample_field { SAMPLE_STACK = 1, SAMPLE_ATTRIBUTES = 2, SAMPLE_VALUES = 4 };

/* The table's first strings: these, and two for each kind of value; then two for each function, and the executable's. */
enum fixed_string { STRING_EMPTY, STRING_THREAD, STRING_VALUES };
static const char *const STRINGS[] = { "", "thread.name" };

struct otlp {
	const struct report *report;
	const struct timeline *timeline;
	struct text dictionary, resource, scope, profile, message, inner, list, name;
};

static uint64_t value_string(size_t value, bool unit)
{
	return STRING_VALUES + 2 * (uint64_t)value + unit;
}

static uint64_t function_string(uint32_t function, bool file)
{
	return value_string(EXPORT_VALUE_COUNT, false) + 2 * (uint64_t)function + file;
}

static void add_packed(struct text *list, uint64_t value)
{
	unsigned char bytes[PROTO_FIELD_BYTES];

	text_add(list, bytes, (size_t)(proto_varint(bytes, value) - bytes));
}

/* A row of a table; where MESSAGE is all->message, that is empty afterwards. */
static void add_row(struct otlp *all, enum dictionary_field table)
{
	proto_add_message(&all->dictionary, table, &all->message);
	text_clear(&all->message);
}

static void add_string(struct otlp *all)
{
	proto_add_bytes(&all->dictionary, TABLE_STRING, text_string(&all->name), all->name.length);
}

/* ---- the dictionary ---- */

static void add_strings(struct otlp *all)
{
	const struct process *process = all->timeline->process_count ? &all->timeline->processes[0] : NULL;

	for (size_t i = 0; i < STRING_VALUES; i++) {
		text_clear(&all->name);
		text_add_string(&all->name, STRINGS[i]);
		add_string(all);
	}
	for (size_t i = 0; i < 2 * EXPORT_VALUE_COUNT; i++) {
		export_string(i % 2 ? EXPORT_VALUES[i / 2].unit : EXPORT_VALUES[i / 2].type, &all->name);
		add_string(all);
	}
	for (uint32_t i = 0; i < all->timeline->function_count; i++) {
		export_name(all->timeline, i, &all->name);
		add_string(all);
		export_file(all->timeline, i, &all->name);
		add_string(all);
	}
	export_string(process && *process->executable ? process->executable : "python", &all->name);
	add_string(all);
}

static void add_functions(struct otlp *all)
{
	add_row(all, TABLE_FUNCTION);
	add_row(all, TABLE_LOCATION);
	for (uint32_t i = 0; i < all->timeline->function_count; i++) {
		uint32_t line = all->timeline->functions[i].line;

		proto_add_number(&all->message, 1, function_string(i, false));
		proto_add_number(&all->message, 3, function_string(i, true));
		proto_add_number(&all->message, 4, line);
		add_row(all, TABLE_FUNCTION);
		text_clear(&all->inner);
		proto_add_number(&all->inner, 1, (uint64_t)i + 1);
		proto_add_number(&all->inner, 2, line);
		proto_add_number(&all->message, 1, 1);
		proto_add_message(&all->message, 3, &all->inner);
		add_row(all, TABLE_LOCATION);
	}
}

/* An attribute for each thread. */
static void add_threads(struct otlp *all)
{
	add_row(all, TABLE_ATTRIBUTE);
	for (uint32_t i = 0; i < all->timeline->thread_count; i++) {
		export_thread(all->timeline, i, &all->name);
		text_clear(&all->inner);
		proto_add_message(&all->inner, 1, &all->name);
		proto_add_number(&all->message, 1, STRING_THREAD);
		proto_add_message(&all->message, 2, &all->inner);
		add_row(all, TABLE_ATTRIBUTE);
	}
}

/* Those that have a value, innermost function first. */
static void add_stacks(struct otlp *all)
{
	const struct tree_node *nodes = all->timeline->nodes;

	add_row(all, TABLE_STACK);
	for (uint32_t i = 1; i < all->timeline->node_count; i++) {
		if (!export_has_value(&nodes[i]))
			continue;
		text_clear(&all->list);
		for (uint32_t at = i; at; at = nodes[at].parent)
			add_packed(&all->list, (uint64_t)nodes[at].function + 1);
		proto_add_message(&all->message, 1, &all->list);
		add_row(all, TABLE_STACK);
	}
}

static void add_dictionary(struct otlp *all)
{
	add_row(all, TABLE_MAPPING);
	proto_add_number(&all->message, 4, function_string((uint32_t)all->timeline->function_count, false));
	add_row(all, TABLE_MAPPING);
	add_functions(all);
	add_row(all, TABLE_LINK);
	add_strings(all);
	add_threads(all);
	add_stacks(all);
}

/* ---- profiles ---- */

static void add_value_type(struct otlp *all, enum profile_field field, size_t value)
{
	text_clear(&all->message);
	proto_add_number(&all->message, 1, value_string(value, false));
	proto_add_number(&all->message, 2, value_string(value, true));
	proto_add_message(&all->profile, field, &all->message);
	text_clear(&all->message);
}

static void add_sample(struct otlp *all, const struct tree_node *node, uint64_t stack, size_t value)
{
	proto_add_number(&all->message, SAMPLE_STACK, stack);
	if (node->thread < all->timeline->thread_count) {
		text_clear(&all->list);
		add_packed(&all->list, (uint64_t)node->thread + 1);
		proto_add_message(&all->message, SAMPLE_ATTRIBUTES, &all->list);
	}
	text_clear(&all->list);
	add_packed(&all->list, export_value(node, value));
	proto_add_message(&all->message, SAMPLE_VALUES, &all->list);
	proto_add_message(&all->profile, PROFILE_SAMPLES, &all->message);
	text_clear(&all->message);
}

static void add_profile(struct otlp *all, size_t value)
{
	const struct timeline *timeline = all->timeline;
	unsigned char time[PROTO_FIELD_BYTES];
	uint64_t stack = 0;

	text_clear(&all->profile);
	add_value_type(all, PROFILE_TYPE, value);
	for (uint32_t i = 1; i < timeline->node_count; i++) {
		stack += export_has_value(&timeline->nodes[i]);
		if (export_value(&timeline->nodes[i], value))
			add_sample(all, &timeline->nodes[i], stack, value);
	}
	text_add(&all->profile, time, (size_t)(proto_fixed64(time, PROFILE_TIME, timeline->start_unix_ns) - time));
	proto_add_number(&all->profile, PROFILE_DURATION, timeline->duration_ns);
	add_value_type(all, PROFILE_PERIOD_TYPE, value);
	proto_add_number(&all->profile, PROFILE_PERIOD, 1);
	proto_add_message(&all->scope, SCOPE_PROFILES, &all->profile);
}

/* ---- the resource ---- */

static void add_attribute(struct otlp *all, const char *key, const struct text *string, uint64_t number)
{
	text_clear(&all->inner);
	if (string)
		proto_add_message(&all->inner, 1, string);
	else
		proto_add_number(&all->inner, 3, number);
	text_clear(&all->list);
	proto_add_string(&all->list, 1, key);
	proto_add_message(&all->list, 2, &all->inner);
	proto_add_message(&all->message, 1, &all->list);
}

static void add_resource(struct otlp *all)
{
	const char *service = all->report->options.service;

	export_string(service ? service : "unknown_service:python", &all->name);
	add_attribute(all, "service.name", &all->name, 0);
	add_attribute(all, "process.pid", NULL, export_pid(all->report));
	export_process(all->report, 0, &all->name);
	add_attribute(all, "process.command_line", &all->name, 0);
	export_quality(all->report, &all->name);
	add_attribute(all, "inferscope.quality", &all->name, 0);
	proto_add_message(&all->resource, RESOURCE_RESOURCE, &all->message);
	text_clear(&all->message);
	proto_add_string(&all->message, 1, "inferscope");
	proto_add_string(&all->message, 2, PACKAGE_VERSION);
	proto_add_message(&all->scope, SCOPE_SCOPE, &all->message);
	text_clear(&all->message);
	for (size_t i = 0; i < EXPORT_VALUE_COUNT; i++)
		if (EXPORT_VALUES[i].known(all->timeline))
			add_profile(all, i);
	proto_add_message(&all->resource, RESOURCE_SCOPES, &all->scope);
}

static void put(struct gzip *gzip, enum request_field field, const struct text *message)
{
	unsigned char head[PROTO_FIELD_BYTES];

	gzip_add(gzip, head, (size_t)(proto_head(head, field, message->length) - head));
	gzip_add(gzip, message->data, message->length);
}

int write_otlp(const struct report *report, struct sink *sink, struct error *err)
{
	struct otlp *all = calloc(1, sizeof *all);
	struct gzip *gzip = malloc(sizeof *gzip);
	bool written = false;

	if (all && gzip && gzip_begin(gzip, sink)) {
		all->report = report;
		all->timeline = report->timeline;
		add_dictionary(all);
		add_resource(all);
		written = !all->dictionary.failed && !all->resource.failed;
		if (written) {
			put(gzip, REQUEST_RESOURCES, &all->resource);
			put(gzip, REQUEST_DICTIONARY, &all->dictionary);
		}
		written &= gzip_end(gzip);
	}
	if (all) {
		struct text *texts[] = { &all->dictionary, &all->resource, &all->scope, &all->profile, &all->message, &all->inner, &all->list, &all->name };

		for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
			text_done(texts[i]);
	}
	free(gzip);
	free(all);
	return written ? 0 : fail(err, ERR_MEMORY, "writing the profiles");
}
