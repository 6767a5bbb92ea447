#include "import/event_json.h"

#include <string.h>

#include "base/text.h"

enum { NAME_BYTES = 1024, TYPE_BYTES = 32, METADATA_BYTES = 1000 /* as the Python package cuts it */ };

struct fields {
	char type[TYPE_BYTES], name[NAME_BYTES];
	struct number start_ns, end_ns, thread, device;
	int64_t grid[3], block[3], bytes, stream, correlation, scope_id;
	struct text *metadata;
};

static const struct { const char *type; enum event_kind kind; } types[] = {
	{ "cpu_call", EVENT_C_ENTER }, { "cpu_syscall", EVENT_CPU_SYSCALL }, { "gpu_kernel", EVENT_GPU_KERNEL }, { "h2d_copy", EVENT_H2D_COPY }, { "d2h_copy", EVENT_D2H_COPY },
	{ "d2d_copy", EVENT_D2D_COPY }, { "gpu_memset", EVENT_GPU_MEMSET }, { "gpu_sync", EVENT_GPU_SYNC }, { "gpu_api", EVENT_GPU_API },
	{ "scope_enter", EVENT_SCOPE_ENTER }, { "scope_exit", EVENT_SCOPE_EXIT }, { "instant", EVENT_INSTANT },
};

/* The token as JSON again. */
static void add_token(const struct json *json, enum json_token token, struct text *out)
{
	static const char *const words[] = {
		[JSON_OBJECT] = "{", [JSON_OBJECT_END] = "}", [JSON_ARRAY] = "[", [JSON_ARRAY_END] = "]", [JSON_TRUE] = "true", [JSON_FALSE] = "false", [JSON_NULL] = "null",
	};

	if (token == JSON_NUMBER) {
		text_add(out, json->text, json->length);
	} else if (token == JSON_KEY || token == JSON_STRING) {
		text_add(out, "\"", 1);
		text_add_json(out, json->text, json->length);
		text_add(out, token == JSON_KEY ? "\":" : "\"", token == JSON_KEY ? 2 : 1);
	} else {
		text_add_string(out, words[token]);
	}
}

/* A string is the metadata itself, null is none, anything else stays JSON. What is longer than METADATA_BYTES is cut. False when it broke. */
static bool read_metadata(struct json *json, enum json_token token, struct text *out)
{
	unsigned depth = 0;
	bool comma = false;

	text_clear(out);
	if (token == JSON_STRING)
		text_add(out, json->text, json->length < METADATA_BYTES ? json->length : METADATA_BYTES);
	if (token == JSON_STRING || token == JSON_NULL)
		return true;
	for (;; token = json_next(json)) {
		bool end = token == JSON_OBJECT_END || token == JSON_ARRAY_END, begin = token == JSON_OBJECT || token == JSON_ARRAY;

		if (token == JSON_BAD || token == JSON_END)
			return false;
		if (out->length < METADATA_BYTES) {
			if (comma && !end)
				text_add(out, ",", 1);
			add_token(json, token, out);
		}
		comma = !begin && token != JSON_KEY;
		depth += begin;
		depth -= end;
		if (!depth)
			break;
	}
	if (out->length > METADATA_BYTES)
		out->data[out->length = METADATA_BYTES] = '\0';
	return true;
}

static bool read_field(struct json *json, const char *key, enum json_token token, struct fields *out)
{
	if (strcmp(key, "grid_dim") == 0 || strcmp(key, "block_dim") == 0)
		return json_three(json, token, key[0] == 'g' ? out->grid : out->block);
	if (strcmp(key, "metadata") == 0)
		return read_metadata(json, token, out->metadata);
	if (token == JSON_STRING && strcmp(key, "event_type") == 0)
		json_text(json, out->type, sizeof out->type);
	else if (token == JSON_STRING && strcmp(key, "name") == 0)
		json_text(json, out->name, sizeof out->name);
	else if (token == JSON_NUMBER && (strcmp(key, "start_us") == 0 || strcmp(key, "time") == 0 || strcmp(key, "time_us") == 0))
		out->start_ns = json_number(json, true);
	else if (token == JSON_NUMBER && strcmp(key, "end_us") == 0)
		out->end_ns = json_number(json, true);
	else if (token == JSON_NUMBER && strcmp(key, "thread_id") == 0)
		out->thread = json_number(json, false);
	else if (token == JSON_NUMBER && strcmp(key, "device_id") == 0)
		out->device = json_number(json, false);
	else if (token == JSON_NUMBER && strcmp(key, "bytes") == 0)
		json_whole(json, &out->bytes);
	else if (token == JSON_NUMBER && strcmp(key, "stream") == 0)
		json_whole(json, &out->stream);
	else if (token == JSON_NUMBER && strcmp(key, "scope_id") == 0)
		json_whole(json, &out->scope_id);
	else if (token == JSON_NUMBER && strcmp(key, "correlation") == 0)
		json_whole(json, &out->correlation);
	return json_skip(json, token);
}

static void take_device(struct gather *gather, enum event_kind kind, const struct fields *event)
{
	struct device_work work = { .kind = kind, .name = event->name, .start_ns = event->start_ns.value, .end_ns = event->end_ns.value, .device = (uint32_t)event->device.value,
		.stream = (uint32_t)event->stream, .correlation = (uint32_t)event->correlation, .bytes = event->bytes > 0 ? (uint64_t)event->bytes : 0 };

	for (size_t i = 0; i < 3; i++) {
		work.grid[i] = (uint32_t)event->grid[i];
		work.block[i] = (uint32_t)event->block[i];
	}
	gather_device(gather, &work);
}

static bool is_moment(enum event_kind kind)
{
	return kind == EVENT_SCOPE_ENTER || kind == EVENT_SCOPE_EXIT || kind == EVENT_INSTANT;
}

static void take_event(struct gather *gather, const struct fields *event)
{
	const char *metadata = event->metadata->length ? event->metadata->data : "";
	struct gather_totals *totals = gather_totals(gather);
	uint32_t thread;
	size_t i = 0;

	while (i < sizeof types / sizeof *types && strcmp(types[i].type, event->type) != 0)
		i++;
	if (i == sizeof types / sizeof *types) {
		totals->ignored++; /* memory_alloc, memory_free, and what nobody asked for */
		return;
	}
	if (!event->start_ns.known || (!event->end_ns.known && !is_moment(types[i].kind))) {
		totals->bad++;
		return;
	}
	if (types[i].kind >= EVENT_GPU_KERNEL && types[i].kind <= EVENT_GPU_SYNC) {
		take_device(gather, types[i].kind, event);
		return;
	}
	thread = gather_thread(gather, 0, event->thread.value);
	if (types[i].kind == EVENT_SCOPE_ENTER)
		gather_scope_begin(gather, thread, event->name, metadata, event->scope_id, event->start_ns.value);
	else if (types[i].kind == EVENT_SCOPE_EXIT)
		gather_scope_end(gather, thread, event->name, metadata, event->scope_id, event->start_ns.value);
	else if (types[i].kind == EVENT_INSTANT)
		gather_row(gather, thread, ROW_INSTANT, event->name, metadata, 0, event->start_ns.value, event->start_ns.value);
	else if (types[i].kind == EVENT_GPU_API)
		gather_api(gather, thread, event->name, event->start_ns.value, event->end_ns.value, (uint32_t)event->correlation);
	else
		gather_row(gather, thread, ROW_C, event->name, "", 0, event->start_ns.value, event->end_ns.value);
}

static bool read_events(struct json *json, struct gather *gather, struct text *metadata)
{
	struct fields event;
	enum json_token token;
	char key[TYPE_BYTES];

	while ((token = json_next(json)) == JSON_OBJECT) {
		memset(&event, 0, sizeof event);
		text_clear(metadata);
		event.metadata = metadata;
		while ((token = json_next(json)) == JSON_KEY) {
			json_text(json, key, sizeof key);
			if (!read_field(json, key, json_next(json), &event))
				return false;
		}
		if (token != JSON_OBJECT_END)
			return false;
		take_event(gather, &event);
	}
	return token == JSON_ARRAY_END;
}

bool event_json_events(struct json *json, struct gather *gather)
{
	struct text metadata;
	bool whole;

	text_init(&metadata);
	whole = read_events(json, gather, &metadata);
	if (metadata.failed)
		gather_fail(gather);
	text_done(&metadata);
	return whole;
}
