#include "import/chrome.h"

#include <ctype.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { NAME_BYTES = 1024, WORD_BYTES = 48 };

struct number { int64_t value; bool known; };

/* One event as it stands in the file; its fields come in any order. */
struct event_fields {
	char phase;
	char category[WORD_BYTES], name[NAME_BYTES], kind[WORD_BYTES], given_name[NAME_BYTES];
	struct number pid, tid, start_ns, duration_ns;
	struct number device, stream, correlation, bytes;
	int64_t grid[3], block[3];
};

static bool is_scalar(enum json_token token)
{
	return token == JSON_NUMBER || token == JSON_STRING;
}

static void take_whole(struct number *out, const struct json *json, enum json_token token)
{
	out->known = is_scalar(token) && json_whole(json, &out->value);
}

static void take_us(struct number *out, const struct json *json, enum json_token token)
{
	out->known = is_scalar(token) && json_thousandths(json, &out->value);
}

/* The args of an event. */
static bool read_args(struct json *json, struct event_fields *event)
{
	enum json_token token;

	while ((token = json_next(json)) == JSON_KEY) {
		const struct { const char *key; struct number *out; } numbers[] = {
			{ "stream", &event->stream }, { "device", &event->device }, { "correlation", &event->correlation }, { "bytes", &event->bytes },
		};
		struct number *number = NULL;
		char key[WORD_BYTES];

		json_text(json, key, sizeof key);
		for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
			if (strcmp(numbers[i].key, key) == 0)
				number = numbers[i].out;
		token = json_next(json);
		if (number)
			take_whole(number, json, token);
		if (strcmp(key, "kind") == 0 && token == JSON_STRING)
			json_text(json, event->kind, sizeof event->kind);
		else if (strcmp(key, "name") == 0 && token == JSON_STRING)
			json_text(json, event->given_name, sizeof event->given_name);
		if (strcmp(key, "grid") == 0 || strcmp(key, "block") == 0) {
			if (!json_three(json, token, key[0] == 'g' ? event->grid : event->block))
				return false;
		} else if (!json_skip(json, token)) {
			return false;
		}
	}
	return token == JSON_OBJECT_END;
}

static bool read_fields(struct json *json, struct event_fields *event)
{
	enum json_token token;

	while ((token = json_next(json)) == JSON_KEY) {
		char key[WORD_BYTES];

		json_text(json, key, sizeof key);
		token = json_next(json);
		if (strcmp(key, "args") == 0 && token == JSON_OBJECT) {
			if (!read_args(json, event))
				return false;
			continue;
		}
		if (strcmp(key, "ph") == 0 && token == JSON_STRING)
			event->phase = json->text[0];
		else if (strcmp(key, "name") == 0 && is_scalar(token))
			json_text(json, event->name, sizeof event->name);
		else if (strcmp(key, "cat") == 0 && token == JSON_STRING)
			json_text(json, event->category, sizeof event->category);
		else if (strcmp(key, "ts") == 0)
			take_us(&event->start_ns, json, token);
		else if (strcmp(key, "dur") == 0)
			take_us(&event->duration_ns, json, token);
		else if (strcmp(key, "pid") == 0)
			take_whole(&event->pid, json, token);
		else if (strcmp(key, "tid") == 0)
			take_whole(&event->tid, json, token);
		if (!json_skip(json, token))
			return false;
	}
	return token == JSON_OBJECT_END;
}

/* ---- what the events mean ---- */

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

static uint32_t bounded(int64_t value)
{
	return value > 0 && value <= UINT32_MAX ? (uint32_t)value : 0;
}

/* False when it is no work of a device. */
static bool take_device(struct gather *gather, const struct event_fields *event)
{
	static const struct { const char *category; enum event_kind kind; } categories[] = {
		{ "kernel", EVENT_GPU_KERNEL }, { "gpu_memcpy", EVENT_H2D_COPY }, { "gpu_memset", EVENT_GPU_MEMSET }, { "cuda_sync", EVENT_GPU_SYNC },
		{ "memcpy", EVENT_H2D_COPY }, { "memset", EVENT_GPU_MEMSET }, /* before PyTorch 1.12 */
	};
	struct device_work work = { .name = event->name, .start_ns = event->start_ns.value, .end_ns = event->start_ns.value + event->duration_ns.value, .device = small(event->device),
		.stream = small(event->stream), .correlation = small(event->correlation), .bytes = event->bytes.known && event->bytes.value > 0 ? (uint64_t)event->bytes.value : 0 };
	size_t i = 0;

	while (i < sizeof categories / sizeof *categories && strcasecmp(categories[i].category, event->category) != 0)
		i++;
	if (i == sizeof categories / sizeof *categories)
		return false;
	work.kind = categories[i].kind == EVENT_H2D_COPY ? copy_kind(event) : categories[i].kind;
	if (work.kind != EVENT_GPU_SYNC && (!event->stream.known || event->stream.value < 0)) {
		gather_totals(gather)->bad++; /* on no stream: Kineto's own marks */
		return true;
	}
	if (work.kind >= EVENT_H2D_COPY && work.kind <= EVENT_D2D_COPY)
		work.detail = memory_kinds(event->name);
	for (i = 0; i < 3; i++) {
		work.grid[i] = bounded(event->grid[i]);
		work.block[i] = bounded(event->block[i]);
	}
	gather_device(gather, &work);
	return true;
}

/* "file.py(12): function" of Kineto, "function (file.py:12)" of viztracer. False when it is neither. NAME is cut into its parts. */
static bool split_python(char *name, const char **function, const char **file, uint32_t *line)
{
	char *colon = strstr(name, "): "), *open, *end;

	if (colon) {
		*colon = '\0';
		open = strrchr(name, '(');
		if (open && isdigit((unsigned char)open[1])) {
			*open = '\0';
			*line = (uint32_t)strtoul(open + 1, NULL, 10);
			*file = name;
			*function = colon + 3;
			return **function != '\0';
		}
		*colon = ')';
	}
	open = strrchr(name, '(');
	if (!open || open == name || open[-1] != ' ' || !(colon = strrchr(open, ':')) || !isdigit((unsigned char)colon[1]))
		return false;
	*line = (uint32_t)strtoul(colon + 1, &end, 10);
	if (strcmp(end, ")") != 0)
		return false;
	open[-1] = *colon = '\0';
	*function = name;
	*file = open + 1;
	return true;
}

/* "<built-in method acquire of _thread.lock object at 0x7f…>" is a C function. False when it is none. NAME is cut into its parts. */
static bool split_builtin(char *name, const char **function, const char **module)
{
	static const char *const starts[] = { "<built-in method ", "<built-in function " };

	for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
		char *of, *end;

		if (strncmp(name, starts[i], strlen(starts[i])) != 0)
			continue;
		*function = name + strlen(starts[i]);
		*module = "";
		of = strstr(*function, " of ");
		end = of ? strstr(of + 4, " object at ") : strrchr(*function, '>');
		if (of) {
			*of = '\0';
			*module = of + 4;
		}
		if (end)
			*end = '\0';
		return **function != '\0';
	}
	return false;
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

static void take_call(struct gather *gather, char *name, const char *category, uint32_t thread, int64_t start_ns, int64_t end_ns, uint32_t correlation)
{
	const char *function, *file;
	uint32_t line;
	bool api = strcasecmp(category, "cuda_runtime") == 0 || strcasecmp(category, "cuda_driver") == 0 || strcasecmp(category, "runtime") == 0;

	if (api && end_ns != GATHER_OPEN)
		gather_api(gather, thread, name, start_ns, end_ns, correlation);
	else if (strcasecmp(category, "user_annotation") == 0)
		gather_row(gather, thread, ROW_SCOPE, name, split_number(name), 0, start_ns, end_ns);
	else if (split_builtin(name, &function, &file))
		gather_row(gather, thread, ROW_C, function, file, 0, start_ns, end_ns);
	else if (split_python(name, &function, &file, &line))
		gather_row(gather, thread, ROW_PYTHON, function, file, line, start_ns, end_ns);
	else
		gather_row(gather, thread, strcasecmp(category, "python_function") == 0 ? ROW_PYTHON : ROW_C, name, category, 0, start_ns, end_ns);
}

/* ---- one event ---- */

static void take_named(struct gather *gather, const struct event_fields *event)
{
	if (!event->pid.known)
		gather_totals(gather)->ignored++;
	else if (strcmp(event->name, "process_name") == 0)
		gather_process_name(gather, event->pid.value, event->given_name);
	else if (strcmp(event->name, "thread_name") == 0 && event->tid.known)
		gather_thread_name(gather, gather_thread(gather, event->pid.value, event->tid.value), event->given_name);
}

static bool can_add(int64_t a, int64_t b)
{
	int64_t sum;

	return !__builtin_add_overflow(a, b, &sum);
}

static void take_event(struct gather *gather, struct event_fields *event)
{
	static const char *const useless[] = { "Trace", "gpu_user_annotation", "overhead" };
	uint32_t thread;

	if (event->phase == 'M') {
		take_named(gather, event);
		return;
	}
	for (size_t i = 0; i < sizeof useless / sizeof *useless; i++) {
		if (strcmp(event->category, useless[i]) == 0) {
			gather_totals(gather)->ignored++;
			return;
		}
	}
	if (!event->phase || !strchr("XBEiI", event->phase)) {
		gather_totals(gather)->ignored++; /* arrows, counters, asynchronous ones */
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
	if (event->phase == 'B')
		take_call(gather, event->name, event->category, thread, event->start_ns.value, GATHER_OPEN, 0);
	else if (event->phase == 'E')
		gather_end(gather, thread, event->start_ns.value);
	else if (event->phase == 'X')
		take_call(gather, event->name, event->category, thread, event->start_ns.value, event->start_ns.value + event->duration_ns.value, small(event->correlation));
	else
		gather_row(gather, thread, ROW_INSTANT, event->name, "", 0, event->start_ns.value, event->start_ns.value);
}

bool chrome_events(struct json *json, struct gather *gather)
{
	struct event_fields event;
	enum json_token token;

	while ((token = json_next(json)) == JSON_OBJECT) {
		event.phase = event.category[0] = event.name[0] = event.kind[0] = event.given_name[0] = '\0';
		memset(&event.pid, 0, sizeof event - offsetof(struct event_fields, pid));
		if (!read_fields(json, &event))
			return false;
		take_event(gather, &event);
	}
	return token == JSON_ARRAY_END;
}
