#include "import/chrome.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/map.h"
#include "import/ahead.h"
#include "import/chrome_names.h"

enum { NAME_BYTES = 1024, WORD_BYTES = 48 };

/* What an event is about, by its category: CATEGORY(enumerator, "as it stands in the file, in any case"). */
#define CATEGORIES(CATEGORY) \
	CATEGORY(KERNEL, "kernel") CATEGORY(COPY, "gpu_memcpy") CATEGORY(SET, "gpu_memset") CATEGORY(SYNC, "cuda_sync") \
	CATEGORY(OLD_COPY, "memcpy") CATEGORY(OLD_SET, "memset") /* before PyTorch 1.12 */ \
	CATEGORY(RUNTIME, "cuda_runtime") CATEGORY(DRIVER, "cuda_driver") CATEGORY(OLD_RUNTIME, "runtime") \
	CATEGORY(ANNOTATION, "user_annotation") CATEGORY(PYTHON, "python_function") \
	CATEGORY(TRACE, "Trace") CATEGORY(GPU_ANNOTATION, "gpu_user_annotation") CATEGORY(OVERHEAD, "overhead") \
	CATEGORY(ARROW, "ac2g") CATEGORY(OLD_ARROW, "async_gpu") CATEGORY(OLDER_ARROW, "async_cpu_to_gpu") /* from a call to a device's work */

enum category {
#define CATEGORY(id, word) CATEGORY_##id,
	CATEGORIES(CATEGORY)
#undef CATEGORY
	CATEGORY_OTHER
};

/* One event as it stands in the file; its fields come in any order. What is text stands behind it, in SIZE bytes with it. */
struct event_fields {
	size_t size;
	char phase;
	char *category, *name, *kind, *given_name, *process; /* process: its pid, when that is a word */
	enum category about;
	struct number id, pid, tid, start_ns, duration_ns;
	struct number device, stream, correlation, bytes;
	int64_t grid[3], block[3];
};
enum { ALIGNMENT = _Alignof(struct event_fields), EVENT_BYTES_MAX = sizeof(struct event_fields) + 2 * NAME_BYTES + 3 * WORD_BYTES + 1 + ALIGNMENT };

enum value_form { FORM_WHOLE, FORM_KEY, FORM_US, FORM_TEXT, FORM_CATEGORY, FORM_THREE, FORM_PHASE, FORM_ARGS };
struct field { const char *key; uint8_t length, form; uint16_t offset, size; /* of text: most bytes */ struct json_word word; };
#define FIELD(key, form, member) { key, sizeof key - 1, form, offsetof(struct event_fields, member), 0, JSON_WORD(key) }
#define TEXT_FIELD(key, member, size) { key, sizeof key - 1, FORM_TEXT, offsetof(struct event_fields, member), size, JSON_WORD(key) }

static const struct field event_table[] = {
	FIELD("ph", FORM_PHASE, phase), { "cat", 3, FORM_CATEGORY, offsetof(struct event_fields, category), WORD_BYTES, JSON_WORD("cat") }, TEXT_FIELD("name", name, NAME_BYTES), FIELD("pid", FORM_KEY, pid), FIELD("tid", FORM_WHOLE, tid),
	FIELD("ts", FORM_US, start_ns), FIELD("dur", FORM_US, duration_ns), { "args", 4, FORM_ARGS, 0, 0, JSON_WORD("args") },
	FIELD("id", FORM_KEY, id), /* last: events of other phases have none */
};
static const struct field args_table[] = {
	FIELD("stream", FORM_WHOLE, stream), FIELD("device", FORM_WHOLE, device), FIELD("correlation", FORM_WHOLE, correlation), FIELD("bytes", FORM_WHOLE, bytes),
	TEXT_FIELD("kind", kind, WORD_BYTES), TEXT_FIELD("name", given_name, NAME_BYTES), FIELD("grid", FORM_THREE, grid), FIELD("block", FORM_THREE, block),
};
/* What arrows begin with, as Kineto writes them. */
static const struct field arrow_table[] = {
	FIELD("id", FORM_KEY, id), FIELD("pid", FORM_KEY, pid), FIELD("tid", FORM_WHOLE, tid), FIELD("ts", FORM_US, start_ns), { "cat", 3, FORM_CATEGORY, offsetof(struct event_fields, category), WORD_BYTES, JSON_WORD("cat") },
};
enum { ARROW_FIELDS = sizeof arrow_table / sizeof *arrow_table };
enum { EVENT_FIELDS = sizeof event_table / sizeof *event_table, ARGS_FIELDS = sizeof args_table / sizeof *args_table };

/* Of keys: too short for a call of memcmp. */
static inline bool same_bytes(const char *a, const char *b, size_t length)
{
	size_t i = 0;

	while (i < length && a[i] == b[i])
		i++;
	return i == length;
}

/* From NEXT on: fields come mostly in the order of their table. */
static const struct field *field_of(const struct field *table, size_t count, size_t *next, const struct json *json)
{
	for (size_t i = 0; i < count; i++) {
		const struct field *field = &table[*next + i < count ? *next + i : *next + i - count];

		if (field->length == json->length && same_bytes(field->key, json->text, field->length)) {
			*next = (size_t)(field - table) + 1;
			return field;
		}
	}
	return NULL;
}

static bool read_args(struct json *json, struct event_fields *event);

static enum category category_of(const char *word)
{
	static const struct { const char *word; size_t length; } words[] = {
#define CATEGORY(id, word) { word, sizeof word - 1 },
		CATEGORIES(CATEGORY)
#undef CATEGORY
	};
	size_t length = strlen(word);

	for (int i = 0; i < CATEGORY_OTHER; i++)
		if (words[i].length == length && (words[i].word[0] | 32) == (word[0] | 32) && strcasecmp(words[i].word, word) == 0)
			return (enum category)i;
	return CATEGORY_OTHER;
}

static bool is_arrow(enum category about)
{
	return about == CATEGORY_ARROW || about == CATEGORY_OLD_ARROW || about == CATEGORY_OLDER_ARROW;
}

static bool is_flow(char phase)
{
	return phase == 's' || phase == 'f';
}

/* Nobody asks what else stands there: counters, asynchronous ones, arrows between others; arrows of which all is known. */
static bool is_read(const struct event_fields *event)
{
	if (is_flow(event->phase))
		return *event->category && (!is_arrow(event->about) || (event->id.known && event->pid.known && event->tid.known && event->start_ns.known));
	return event->phase && !strchr("XBEiIM", event->phase);
}

/* Work of devices has its stream there, calls of the runtime what they asked for, names the name. */
static bool wants_args(const struct event_fields *event)
{
	return event->phase != 'X' || !*event->category || event->about <= CATEGORY_OLD_RUNTIME;
}

/* A text that comes twice in one event may find no room: then the first one stays. */
static void take_text(struct json *json, const struct field *field, struct event_fields *event)
{
	char *text = (char *)event + event->size;

	if (EVENT_BYTES_MAX - ALIGNMENT - event->size < field->size)
		return;
	event->size += json_text(json, text, field->size) + 1;
	*(char **)((char *)event + field->offset) = text;
}

/* Merged traces put words before pids, "[TP01] 4711": whoever has a number at its end is a process, the profiler's own "Spans" and "Traces" are none. */
static void take_key(struct json *json, enum json_token token, const struct field *field, struct event_fields *event, struct number *out)
{
	static const struct field word = TEXT_FIELD("pid", process, WORD_BYTES);
	uint64_t sum = json->length;

	*out = json_number(json, false);
	if (out->known || token != JSON_STRING || !json->length || json->text[json->length - 1] < '0' || json->text[json->length - 1] > '9')
		return;
	for (size_t i = 0; i < json->length; i++)
		sum = mix64(sum + (unsigned char)json->text[i]);
	*out = (struct number){ (int64_t)(sum | 1ull << 63), true }; /* no pid is below 0 */
	if (field->offset == offsetof(struct event_fields, pid))
		take_text(json, &word, event);
}

static void take_category(struct json *json, const struct field *field, struct event_fields *event)
{
	take_text(json, field, event);
	event->about = category_of(event->category);
}

/* The value of FIELD, that TOKEN begins. False when the document broke. */
static bool take_field(struct json *json, enum json_token token, const struct field *field, struct event_fields *event)
{
	void *out = (char *)event + field->offset;

	if (field->form == FORM_ARGS && token == JSON_OBJECT)
		return wants_args(event) || !json_leave(json) ? read_args(json, event) : true;
	if (field->form == FORM_THREE)
		return json_three(json, token, out);
	if (token == JSON_NUMBER || token == JSON_STRING) {
		if (field->form == FORM_WHOLE)
			*(struct number *)out = json_number(json, false);
		else if (field->form == FORM_KEY)
			take_key(json, token, field, event, out);
		else if (field->form == FORM_US)
			*(struct number *)out = json_number(json, true);
		else if (field->form == FORM_TEXT)
			take_text(json, field, event);
		else if (field->form == FORM_CATEGORY)
			take_category(json, field, event);
		else if (field->form == FORM_PHASE && token == JSON_STRING)
			event->phase = json->text[0];
	}
	return json_skip(json, token);
}

/* Most of what is wanted are numbers. */
static bool take_value(struct json *json, const struct field *field, struct event_fields *event)
{
	struct number *number = (struct number *)(void *)((char *)event + field->offset);

	if (field->form <= FORM_US && json_take_number(json, field->form == FORM_US, number))
		return true;
	if (field->form == FORM_PHASE && json_take_letter(json, &event->phase))
		return true;
	return take_field(json, json_next(json), field, event);
}

/* The field whose key is next and was read, NULL of a key that nobody wants. *TOKEN: that key, the object's end, or broken. */
static const struct field *next_field(struct json *json, const struct field *table, size_t count, size_t *next, enum json_token *token)
{
	const struct field *field = &table[*next < count ? *next : 0];

	*token = JSON_KEY;
	if (json_take_key(json, &field->word)) {
		*next = (size_t)(field - table) + 1;
		return field;
	}
	*token = json_key(json);
	return *token == JSON_KEY ? field_of(table, count, next, json) : NULL;
}

static bool read_table(struct json *json, const struct field *table, size_t count, struct event_fields *event)
{
	enum json_token token;
	size_t next = 0;

	for (;;) {
		const struct field *field = next_field(json, table, count, &next, &token);

		if (token != JSON_KEY)
			return token == JSON_OBJECT_END;
		if (!(field ? take_value(json, field, event) : json_pass(json)))
			return false;
		if (!field || (field->form != FORM_PHASE && field->form != FORM_CATEGORY))
			continue;
		if (is_read(event) && json_leave(json))
			return true;
		if (field->form == FORM_PHASE && is_flow(event->phase)) {
			table = arrow_table;
			count = ARROW_FIELDS;
			next = 0;
		}
	}
}

/* Its args: never args of args. */
static bool read_args(struct json *json, struct event_fields *event)
{
	return read_table(json, args_table, ARGS_FIELDS, event);
}

/* ---- what the events mean ---- */

struct chrome { struct gather *gather; struct chrome_names *names; };

static uint32_t small(struct number number)
{
	return number.known ? (uint32_t)number.value : 0;
}

/* What "Memcpy HtoD (Pageable -> Device)" or kind "HtoD" says. */
static enum event_kind copy_kind(const struct event_fields *event)
{
	const char *text = event->kind[0] ? event->kind : event->name;

	if (strstr(text, "HtoD"))
		return EVENT_H2D_COPY;
	return strstr(text, "DtoH") ? EVENT_D2H_COPY : EVENT_D2D_COPY;
}

/* Of "(Pageable -> Device)". */
static uint32_t memory_kinds(const char *name)
{
	static const char *const kinds[] = {
#define MEMORY(number, name) [number] = name,
#include "abi/memory.def"
#undef MEMORY
	};
	const char *open = strchr(name, '('), *arrow = open ? strstr(open, " -> ") : NULL, *close = arrow ? strchr(arrow, ')') : NULL;
	uint32_t found = 0;

	for (uint32_t i = 0; close && i < sizeof kinds / sizeof *kinds; i++) {
		size_t length = strlen(kinds[i]);

		if ((size_t)(arrow - open - 1) == length && memcmp(open + 1, kinds[i], length) == 0)
			found |= i;
		if ((size_t)(close - arrow - 4) == length && memcmp(arrow + 4, kinds[i], length) == 0)
			found |= i << 8;
	}
	return found | (strstr(name, "PtoP") ? 1u << 16 : 0);
}

/* Where a device's work stands in the file: what arrows end at. */
static uint64_t place_of(const struct event_fields *event)
{
	if (!event->pid.known || !event->tid.known || !event->start_ns.known)
		return 0;
	return mix64(mix64((uint64_t)event->pid.value) + (uint64_t)event->tid.value) + (uint64_t)event->start_ns.value;
}

/*
 * A merged trace that gave its processes other pids did so with devices, which stand at a pid of their own: then the same number at another pid is another device. Where nobody did, the pid is the
 * device's number, and what several processes call device 0 is one device: nothing tells whether it is.
 */
static uint32_t device_of(struct gather *gather, const struct event_fields *event)
{
	uint32_t told = small(event->device);
	bool moved = event->pid.known && event->device.known && event->pid.value != told;
	uint64_t identity = moved ? mix64((uint64_t)event->pid.value) + told : told;
	uint32_t number = gather_device_known(gather, identity);
	struct device_facts facts;
	char name[160], place[48];

	if (number != UINT32_MAX)
		return number;
	facts = gather_described(gather, told);
	snprintf(place, sizeof place, "device %u of %lld", told, (long long)event->pid.value);
	snprintf(name, sizeof name, "%s%s%s", facts.name, *facts.name ? ", " : "", *event->process ? event->process : place);
	if (moved)
		facts.name = name;
	return gather_device_add(gather, identity, told, &facts);
}

static uint32_t bounded(int64_t value)
{
	return value > 0 && value <= UINT32_MAX ? (uint32_t)value : 0;
}

/* False when it is no work of a device. */
static bool take_device(struct gather *gather, const struct event_fields *event)
{
	static const uint8_t kinds[CATEGORY_OTHER + 1] = {
		[CATEGORY_KERNEL] = EVENT_GPU_KERNEL, [CATEGORY_COPY] = EVENT_H2D_COPY, [CATEGORY_OLD_COPY] = EVENT_H2D_COPY, [CATEGORY_SET] = EVENT_GPU_MEMSET,
		[CATEGORY_OLD_SET] = EVENT_GPU_MEMSET, [CATEGORY_SYNC] = EVENT_GPU_SYNC,
	};
	struct device_work work = { .kind = (enum event_kind)kinds[event->about], .name = event->name, .start_ns = event->start_ns.value, .end_ns = event->start_ns.value + event->duration_ns.value, .pid = event->pid, .place = place_of(event),
		.stream = small(event->stream), .correlation = small(event->correlation), .bytes = event->bytes.known && event->bytes.value > 0 ? (uint64_t)event->bytes.value : 0 };

	if (!kinds[event->about])
		return false;
	if (work.kind == EVENT_H2D_COPY)
		work.kind = copy_kind(event);
	if (work.kind != EVENT_GPU_SYNC && (!event->stream.known || event->stream.value < 0)) {
		gather_totals(gather)->bad++; /* on no stream: Kineto's own marks */
		return true;
	}
	if (work.kind >= EVENT_H2D_COPY && work.kind <= EVENT_D2D_COPY)
		work.detail = memory_kinds(event->name);
	for (size_t i = 0; i < 3; i++) {
		work.grid[i] = bounded(event->grid[i]);
		work.block[i] = bounded(event->block[i]);
	}
	work.device = device_of(gather, event);
	gather_device(gather, &work);
	return true;
}

/* "ProfilerStep#12": the twelfth scope of that name. Returns the number, "" when there is none. */
static const char *split_number(char *name)
{
	char *mark = strrchr(name, '#');

	if (!mark || mark == name || !mark[1] || mark[1 + strspn(mark + 1, "0123456789")])
		return "";
	*mark = '\0';
	return mark + 1;
}

static void take_call(struct chrome *chrome, struct event_fields *event, uint32_t thread, int64_t start_ns, int64_t end_ns)
{
	enum category about = event->about;
	bool api = about == CATEGORY_RUNTIME || about == CATEGORY_DRIVER || about == CATEGORY_OLD_RUNTIME;
	struct gather *gather = chrome->gather;

	if (!*event->name)
		gather_totals(gather)->bad++;
	else if (api && end_ns != GATHER_OPEN)
		gather_api(gather, thread, event->name, start_ns, end_ns, small(event->correlation));
	else if (about == CATEGORY_ANNOTATION)
		gather_row(gather, thread, ROW_SCOPE, event->name, split_number(event->name), 0, start_ns, end_ns);
	else
		gather_call(gather, thread, chrome_function(chrome->names, thread, event->name, event->category, about == CATEGORY_PYTHON), start_ns, end_ns);
}

/* ---- one event ---- */

/* By the number at its end. */
static void take_process_word(struct gather *gather, const struct event_fields *event)
{
	const char *digits = event->process + strlen(event->process);

	if (!*event->process)
		return;
	while (digits > event->process && digits[-1] >= '0' && digits[-1] <= '9')
		digits--;
	gather_process_word(gather, event->pid.value, event->process, (uint32_t)strtoull(digits, NULL, 10));
}

static void take_named(struct gather *gather, const struct event_fields *event)
{
	if (!event->pid.known) {
		gather_totals(gather)->ignored++;
	} else if (strcmp(event->name, "process_name") == 0) {
		gather_process_name(gather, event->pid.value, event->given_name);
		take_process_word(gather, event);
	} else if (strcmp(event->name, "thread_name") == 0 && event->tid.known) {
		gather_thread_name(gather, gather_thread(gather, event->pid.value, event->tid.value), event->given_name);
		take_process_word(gather, event);
	}
}

static void take_arrow(struct gather *gather, const struct event_fields *event)
{
	if (!event->id.known || !event->pid.known)
		gather_totals(gather)->ignored++;
	else if (event->phase == 's')
		gather_flow_begin(gather, (uint64_t)event->id.value, event->pid.value);
	else
		gather_flow_end(gather, (uint64_t)event->id.value, place_of(event));
}

static bool can_add(int64_t a, int64_t b)
{
	int64_t sum;

	return !__builtin_add_overflow(a, b, &sum);
}

static void take_event(struct chrome *chrome, struct event_fields *event)
{
	struct gather *gather = chrome->gather;
	uint32_t thread;

	if (event->phase == 'M') {
		take_named(gather, event);
		return;
	}
	if (is_flow(event->phase) && is_arrow(event->about)) {
		take_arrow(gather, event);
		return;
	}
	if (event->about == CATEGORY_TRACE || event->about == CATEGORY_GPU_ANNOTATION || event->about == CATEGORY_OVERHEAD || !event->phase || !strchr("XBEiI", event->phase)) {
		gather_totals(gather)->ignored++; /* marks of the profiler's own; arrows, counters, asynchronous ones */
		return;
	}
	if (!event->start_ns.known || (event->duration_ns.known && event->duration_ns.value < 0) || !can_add(event->start_ns.value, event->duration_ns.value)) {
		gather_totals(gather)->bad++;
		return;
	}
	if (event->phase == 'X' && take_device(gather, event))
		return;
	if (!event->pid.known || !event->tid.known) {
		gather_totals(gather)->ignored++; /* marks of the whole trace stand at a "pid" that is a word */
		return;
	}
	thread = gather_thread(gather, event->pid.value, event->tid.value);
	take_process_word(gather, event);
	if (event->phase == 'B')
		take_call(chrome, event, thread, event->start_ns.value, GATHER_OPEN);
	else if (event->phase == 'E')
		gather_end(gather, thread, event->start_ns.value);
	else if (event->phase == 'X')
		take_call(chrome, event, thread, event->start_ns.value, event->start_ns.value + event->duration_ns.value);
	else
		gather_row(gather, thread, ROW_INSTANT, event->name, "", 0, event->start_ns.value, event->start_ns.value);
}

/* ---- all events ---- */

/* Reads events in a thread of its own, while those before are gathered. */
struct reading { struct json *json; bool ended, whole; };

static size_t read_events(void *context, unsigned char *out, size_t size)
{
	struct reading *reading = context;
	size_t at = 0;

	while (!reading->ended && size - at >= EVENT_BYTES_MAX) {
		struct event_fields *event = (struct event_fields *)(void *)(out + at);
		enum json_token token = json_next(reading->json);

		memset(event, 0, sizeof *event + 1);
		event->size = sizeof *event + 1;
		event->category = event->name = event->kind = event->given_name = event->process = (char *)(event + 1);
		event->about = CATEGORY_OTHER;
		reading->whole = token == JSON_ARRAY_END;
		reading->ended = token != JSON_OBJECT || !read_table(reading->json, event_table, EVENT_FIELDS, event);
		if (reading->ended)
			break;
		event->size = (event->size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
		at += event->size;
	}
	return at;
}

bool chrome_events(struct json *json, struct gather *gather)
{
	struct reading reading = { .json = json };
	struct chrome chrome = { gather, chrome_names_new(gather) };
	struct ahead *ahead = chrome.names ? ahead_start(read_events, &reading) : NULL;
	size_t length = ahead ? 1 : 0;

	if (!ahead)
		gather_fail(gather);
	while (length) {
		unsigned char *events = ahead_take(ahead, &length);

		for (size_t at = 0; at < length; at += ((struct event_fields *)(void *)(events + at))->size)
			take_event(&chrome, (struct event_fields *)(void *)(events + at));
	}
	ahead_stop(ahead);
	chrome_names_free(chrome.names);
	return reading.whole;
}
