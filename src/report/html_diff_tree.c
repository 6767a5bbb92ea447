/* The data of the page's differential flame graph: the stacks of both captures as columns, functions as JSON. Stacks too small to see are left out, and counted. */
#include <math.h>
#include <stdlib.h>

#include "analyze/diff_tree.h"
#include "report/diff.h"
#include "report/html.h"

enum { COLUMNS = 4, LEAST_PARTS = 5000 /* a stack is shown from this part of the whole on */ };

/* What each stack costs with everything below it, on the side where that is more; its children's share goes to the parent. */
static double *reach(const struct diff_tree *tree)
{
	double *before = calloc(tree->node_count, sizeof *before), *after = calloc(tree->node_count, sizeof *after);

	for (size_t i = tree->node_count; before && after && i-- > 0;) {
		const struct diff_node *node = &tree->nodes[i];

		before[i] += node->before_ns;
		after[i] += node->after_ns;
		if (!i)
			continue;
		before[node->parent] += before[i];
		after[node->parent] += after[i];
	}
	for (size_t i = 0; before && after && i < tree->node_count; i++)
		before[i] = fmax(before[i], after[i]);
	free(after);
	return before;
}

static uint64_t value_of(const struct diff_node *node, unsigned column, const uint32_t *numbers)
{
	switch (column) {
	case 0:
		return pack_index(node->parent == UINT32_MAX ? UINT32_MAX : numbers[node->parent]);
	case 1:
		return pack_index(node->function);
	case 2:
		return (uint64_t)(node->before_ns + 0.5);
	default:
		return (uint64_t)(node->after_ns + 0.5);
	}
}

/* Returns how many stacks were left out. */
static size_t pack_tree(const struct diff_tree *tree, struct pack *pack)
{
	uint32_t *numbers = calloc(tree->node_count, sizeof *numbers), kept = 0;
	double *totals = reach(tree);

	if (!numbers || !totals) {
		pack->failed = true;
		free(numbers);
		free(totals);
		return 0;
	}
	for (size_t i = 0; i < tree->node_count; i++)
		if (!i || (totals[i] > 0 && totals[i] >= totals[0] / LEAST_PARTS))
			numbers[i] = kept++;
	pack_number(pack, PACK_DIFF);
	pack_number(pack, kept);
	for (unsigned column = 0; column < COLUMNS; column++)
		for (size_t i = 0; i < tree->node_count; i++)
			if (!i || numbers[i])
				pack_number(pack, value_of(&tree->nodes[i], column, numbers));
	free(numbers);
	free(totals);
	return tree->node_count - kept;
}

static void add_model(struct text *out, const struct diff *diff, const struct diff_tree *tree, size_t left_out)
{
	text_printf(out, "{\"diff\":true,\"unit\":\"%s\",\"left_out\":%zu,\"functions\":[", diff->unit == DIFF_PER_REQUEST ? "request" : "second", left_out);
	for (size_t i = 0; i < tree->function_count; i++) {
		const struct diff_function *function = &tree->functions[i];

		text_add_string(out, i ? ",\n" : "\n");
		html_add_function(out, function->name, function->file, function->line, function->kind, false);
	}
	text_add_string(out, "]}");
}

int html_write_diff_tree(const struct diff_view *view, struct sink *sink, struct error *err)
{
	struct diff_tree *tree;
	struct pack pack;
	struct text model;
	size_t left_out;
	int result = 0;

	if (diff_tree_build(view->diff, view->before.timeline, view->after.timeline, &tree, err) < 0)
		return -1;
	text_init(&model);
	if (pack_begin(&pack, sink)) {
		sink_puts(sink, "<script type=\"application/octet-stream;inferscope-v1\" id=\"slices\">");
		left_out = pack_tree(tree, &pack);
		if (!pack_end(&pack))
			result = -1;
		add_model(&model, view->diff, tree, left_out);
		sink_puts(sink, "</script>\n<script type=\"application/json\" id=\"model\">");
		sink_write(sink, text_string(&model), model.length);
		sink_puts(sink, "</script>\n");
	} else {
		result = -1;
	}
	if (result < 0 || model.failed)
		result = fail(err, ERR_MEMORY, "writing the comparison");
	text_done(&model);
	diff_tree_free(tree);
	return result;
}
