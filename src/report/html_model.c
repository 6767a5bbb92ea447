/* What the page's script is told besides slices: names, threads, rows, hooks on and off, as JSON; and the call tree, as columns. */
#include <stdlib.h>

#include "report/export.h"
#include "report/html.h"

enum { NAME_COLUMNS = 240, FILE_COLUMNS = 160, FUNCTIONS_BYTES = 2 << 20, LABELS_BYTES = 1 << 20, NODES_SHOWN = 120000, WINDOWS_SHOWN = 4000, LENGTHS = 64 };

static const enum part STATE_PARTS[THREAD_STATES] = {
	[THREAD_UNKNOWN] = PART_UNKNOWN, [THREAD_PYTHON] = PART_PYTHON, [THREAD_NATIVE] = PART_NATIVE, [THREAD_GIL_WAIT] = PART_GIL, [THREAD_LOCK_WAIT] = PART_LOCK,
	[THREAD_IO_WAIT] = PART_IO, [THREAD_GPU_WAIT] = PART_GPU, [THREAD_SLEEP] = PART_SLEEP, [THREAD_RUNNABLE] = PART_RUNNABLE, [THREAD_IDLE] = PART_IDLE,
};

void html_add_json(struct text *out, const char *string, size_t columns, unsigned flags)
{
	struct text shown, json;

	text_init(&shown);
	text_init(&json);
	name_add(&shown, string ? string : "", columns, flags);
	text_add_json(&json, text_string(&shown), shown.length);
	text_add(out, "\"", 1);
	for (size_t at = 0, from = 0; at <= json.length && json.data; at++)
		if (at == json.length || json.data[at] == '<' || json.data[at] == '>') {
			text_add(out, json.data + from, at - from);
			text_add_string(out, at == json.length ? "" : json.data[at] == '<' ? "\\u003c" : "\\u003e");
			from = at + 1;
		}
	text_add(out, "\"", 1);
	out->failed |= shown.failed || json.failed;
	text_end(&shown, out);
	text_end(&json, out);
}

void html_add_function(struct text *out, const char *name, const char *file, uint32_t line, int kind, bool waiter)
{
	text_add(out, "[", 1);
	html_add_json(out, name, NAME_COLUMNS, 0);
	text_add(out, ",", 1);
	html_add_json(out, file, FILE_COLUMNS, NAME_PATH);
	text_printf(out, ",%u,%d,%d]", line, kind, waiter);
}

/* As many as fit; the largest come first. */
static void add_functions(struct text *out, const struct report *report)
{
	size_t from = out->length;

	text_add_string(out, "\"functions\":[");
	for (size_t i = 0; i < report->function_count && out->length - from < FUNCTIONS_BYTES; i++) {
		const struct function *function = &report->timeline->functions[i];

		text_add_string(out, i ? ",\n" : "\n");
		html_add_function(out, function->name, function->file, function->line, function->kind, function->waiter);
	}
	text_add_string(out, "]");
}

static void add_labels(struct text *out, const struct slices_said *said)
{
	size_t from = out->length;

	text_add_string(out, ",\n\"labels\":[");
	for (uint32_t i = 0; i < said->label_count && out->length - from < LABELS_BYTES; i++) {
		text_add_string(out, i ? "," : "");
		html_add_json(out, strings_get(said->labels, i), NAME_COLUMNS, 0);
	}
	text_add_string(out, "]");
}

static void add_threads(struct text *out, const struct report *report)
{
	const struct timeline *timeline = report->timeline;

	text_add_string(out, ",\n\"threads\":[");
	for (size_t i = 0; i < timeline->thread_count; i++) {
		const struct thread *thread = &timeline->threads[i];

		text_printf(out, "%s[%u,", i ? "," : "", thread->tid);
		html_add_json(out, *thread->name ? thread->name : "thread", 80, 0);
		text_printf(out, ",%llu,%llu,%llu]", (unsigned long long)thread->cpu_ns, (unsigned long long)thread->first_ns, (unsigned long long)thread->last_ns);
	}
	text_add_string(out, "],\n\"devices\":[");
	for (size_t i = 0; i < timeline->device_count; i++)
		text_printf(out, "%s%u", i ? "," : "", timeline->devices[i].id);
	text_add_string(out, "]");
}

/* A stream of a number that several processes have on the device says whose it is. */
static void add_rows(struct text *out, const struct timeline *timeline, const struct slices_said *said)
{
	text_add_string(out, ",\n\"rows\":[");
	for (size_t i = 0; i < said->row_count; i++) {
		const struct slice_row *row = &said->rows[i];
		struct export_owner owner = { "" };

		if (row->group == SLICES_STREAM || row->group == SLICES_SYNC)
			owner = export_stream_owner(timeline, row->a, row->b, row->process, " of process ");
		text_printf(out, "%s[%d,%u,%u,%u", i ? "," : "", row->group, row->a, row->b, row->depth);
		if (*owner.text)
			text_printf(out, ",\"%s\"", owner.text);
		text_add_string(out, "]");
	}
	text_printf(out, "],\n\"thinned\":{\"calls\":%llu,\"calls_left_out\":%llu,\"others\":%llu,\"others_left_out\":%llu,\"least_ns\":%llu,\"depth_max\":%u}",
		    (unsigned long long)said->calls, (unsigned long long)said->calls_left_out, (unsigned long long)said->others, (unsigned long long)said->others_left_out,
		    (unsigned long long)said->least_ns, said->depth_max);
}

/* How many threads were in which state, in thousandths. */
static void add_loads(struct text *out, const struct timeline *timeline)
{
	text_add_string(out, ",\n\"slots\":[");
	for (size_t i = 0; i < timeline->slot_count; i++) {
		const struct load_slot *slot = &timeline->slots[i];

		text_printf(out, "%s[%llu", i ? "," : "", (unsigned long long)slot->start_ns);
		for (size_t load = 0; load < EXPORT_LOAD_COUNT; load++)
			text_printf(out, ",%llu", (unsigned long long)export_load_milli(slot, EXPORT_LOADS[load].state));
		text_add_string(out, "]");
	}
	text_add_string(out, "],\n\"loads\":[");
	for (size_t load = 0; load < EXPORT_LOAD_COUNT; load++)
		text_printf(out, "%s%d", load ? "," : "", EXPORT_LOADS[load].state);
	text_add_string(out, "],\n\"windows\":[");
	for (size_t i = 0; i < timeline->window_count && timeline->window_count <= WINDOWS_SHOWN; i++)
		text_printf(out, "%s[%llu,%llu]", i ? "," : "", (unsigned long long)timeline->windows[i].start_ns, (unsigned long long)timeline->windows[i].end_ns);
	text_add_string(out, "]");
}

static void add_states(struct text *out)
{
	text_add_string(out, ",\n\"states\":[");
	for (int state = 0; state < THREAD_STATES; state++) {
		const struct part_info *part = &PARTS[STATE_PARTS[state]];

		text_printf(out, "%s{\"key\":\"%s\",\"label\":\"%s\",\"colour\":\"%s\",\"pattern\":\"%s\"}", state ? "," : "", part->key, part->label, part->colour, part->pattern);
	}
	text_add_string(out, "]");
}

/* Why devices idled; what calls are for, and which label is the name of which kind of call. */
static void add_gpu_words(struct text *out, const struct slices_said *said)
{
	text_add_string(out, ",\n\"causes\":[");
	for (int cause = 0; cause < GPU_IDLE_CAUSES; cause++)
		text_printf(out, "%s{\"label\":\"%s\",\"colour\":\"%s\",\"pattern\":\"%s\",\"meaning\":\"%s\"}", cause ? "," : "", HTML_IDLE_CAUSES[cause].label, HTML_IDLE_CAUSES[cause].colour, HTML_IDLE_CAUSES[cause].pattern,
			    HTML_IDLE_CAUSES[cause].meaning);
	text_add_string(out, "],\n\"call_classes\":[");
	for (int class_ = 0; class_ < GPU_CALL_CLASSES; class_++)
		text_printf(out, "%s\"%s\"", class_ ? "," : "", GPU_CALL_LABELS[class_]);
	text_add_string(out, "],\n\"label_classes\":\"");
	for (uint32_t i = 0; i < said->label_count; i++)
		text_printf(out, "%u", (unsigned)gpu_call_class_of(strings_get(said->labels, i)));
	text_add_string(out, "\"");
}

void html_add_model(struct text *out, const struct report *report, const struct slices_said *said, size_t nodes_left_out)
{
	text_printf(out, "{\"duration_ns\":%llu,\"start_unix_ns\":\"%llu\",\"nodes_left_out\":%zu,\"function_count\":%zu,\n", (unsigned long long)report->timeline->duration_ns,
		    (unsigned long long)report->timeline->start_unix_ns, nodes_left_out, report->timeline->function_count);
	add_functions(out, report);
	add_threads(out, report);
	add_states(out);
	add_rows(out, report->timeline, said);
	add_labels(out, said);
	if (report->timeline->device_count)
		add_gpu_words(out, said);
	add_loads(out, report->timeline);
	text_add_string(out, "}");
}

/* Time of each node with everything below it; parents stand before children. */
static uint64_t *inclusive_times(const struct timeline *timeline, bool estimated)
{
	uint64_t *times = calloc(timeline->node_count + 1, sizeof *times);

	for (size_t i = timeline->node_count; times && i-- > 0;) {
		const struct tree_node *node = &timeline->nodes[i];

		times[i] += estimated ? node->estimated_self_ns : node->self_ns;
		if (node->parent < i)
			times[node->parent] += times[i];
	}
	return times;
}

/* The time that NODES_SHOWN nodes at most reach. */
static uint64_t least_time(const uint64_t *times, size_t count)
{
	size_t lengths[LENGTHS] = { 0 }, left = 0;
	unsigned class_ = LENGTHS;

	if (count <= NODES_SHOWN)
		return 0;
	for (size_t i = 0; i < count; i++)
		lengths[times[i] ? 63 - __builtin_clzll(times[i]) : 0]++;
	for (; class_ && left + lengths[class_ - 1] <= NODES_SHOWN; class_--)
		left += lengths[class_ - 1];
	return class_ < LENGTHS ? 1ull << class_ : UINT64_MAX;
}

static bool is_estimated(const struct timeline *timeline)
{
	for (size_t i = 0; i < timeline->node_count; i++)
		if (timeline->nodes[i].estimated_self_ns)
			return true;
	return false;
}

static uint64_t node_value(const struct tree_node *node, unsigned column, const uint32_t *numbers, bool estimated)
{
	switch (column) {
	case 0:
		return pack_index(node->parent == UINT32_MAX ? UINT32_MAX : numbers[node->parent]);
	case 1:
		return pack_index(node->function);
	case 2:
		return pack_index(node->thread);
	case 3:
		return estimated ? node->estimated_self_ns : node->self_ns;
	case 4:
		return node->cpu_self_ns;
	default:
		return node->calls;
	}
}

size_t html_pack_tree(const struct report *report, struct pack *pack)
{
	enum { COLUMNS = 6 };
	const struct timeline *timeline = report->timeline;
	bool estimated = is_estimated(timeline);
	uint64_t *times = inclusive_times(timeline, estimated), least;
	uint32_t *numbers = calloc(timeline->node_count + 1, sizeof *numbers), kept = 0;

	if (!times || !numbers) {
		free(times);
		free(numbers);
		pack->failed = true;
		return 0;
	}
	least = least_time(times, timeline->node_count);
	for (size_t i = 0; i < timeline->node_count; i++)
		if (times[i] >= least)
			numbers[i] = kept++;
	pack_number(pack, PACK_TREE);
	pack_number(pack, kept);
	for (unsigned column = 0; column < COLUMNS; column++)
		for (size_t i = 0; i < timeline->node_count; i++)
			if (times[i] >= least)
				pack_number(pack, node_value(&timeline->nodes[i], column, numbers, estimated));
	free(times);
	free(numbers);
	return timeline->node_count - kept;
}
