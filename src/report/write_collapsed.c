/*
 * Folded stacks: one line for each distinct stack, frames from the outside in, and a whole number. The first frame says whose numbers these are and
 * in which unit, the second which thread. Without the process line a reader could not know; a line of another form some readers refuse.
 */
#include <stdlib.h>
#include <string.h>

#include "report/export.h"

/* A semicolon would be another frame. */
static void add_frame(struct text *line, const char *name)
{
	for (; *name; name++)
		text_add(line, *name == ';' ? ":" : name, 1);
}

static void add_function(struct text *line, const struct timeline *timeline, uint32_t function, struct text *scratch)
{
	text_add(line, ";", 1);
	export_name(timeline, function, scratch);
	add_frame(line, text_string(scratch));
	export_file(timeline, function, scratch);
	if (!scratch->length)
		return;
	text_add_string(line, " (");
	add_frame(line, scratch->data);
	if (timeline->functions[function].line)
		text_printf(line, ":%u", timeline->functions[function].line);
	text_add_string(line, ")");
}

static void add_stack(struct text *line, const struct timeline *timeline, uint32_t node, uint32_t *path, struct text *scratch)
{
	size_t depth = 0;

	for (; node; node = timeline->nodes[node].parent)
		path[depth++] = timeline->nodes[node].function;
	while (depth--)
		add_function(line, timeline, path[depth], scratch);
}

static int write_lines(const struct report *report, struct sink *sink, uint32_t *path, struct error *err)
{
	const struct timeline *timeline = report->timeline;
	struct text head, line, scratch;
	int result = 0;

	text_init(&head);
	text_init(&line);
	text_init(&scratch);
	export_process(report, 0, &scratch);
	text_add_string(&head, "InferScope wall ns: ");
	add_frame(&head, text_string(&scratch));
	for (uint32_t i = 1; i < timeline->node_count && !sink_failed(sink) && !line.failed; i++) {
		const struct tree_node *node = &timeline->nodes[i];

		if (!node->estimated_self_ns)
			continue;
		text_clear(&line);
		text_add(&line, head.data, head.length);
		text_add(&line, ";", 1);
		export_thread(timeline, node->thread, &scratch);
		add_frame(&line, text_string(&scratch));
		add_stack(&line, timeline, i, path, &scratch);
		text_printf(&line, " %llu\n", (unsigned long long)node->estimated_self_ns);
		sink_write(sink, line.data, line.length);
	}
	if (head.failed || line.failed || scratch.failed)
		result = fail(err, ERR_MEMORY, "writing stacks");
	text_done(&head);
	text_done(&line);
	text_done(&scratch);
	return result;
}

int write_collapsed(const struct report *report, struct sink *sink, struct error *err)
{
	uint32_t *path = calloc(report->timeline->node_count + 1, sizeof *path);
	int result;

	if (!path)
		return fail(err, ERR_MEMORY, "writing stacks");
	result = write_lines(report, sink, path, err);
	free(path);
	return result;
}
