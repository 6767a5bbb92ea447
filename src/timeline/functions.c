/* From what was added up to what the header promises: functions and nodes as sorted arrays that never change. */
#include "timeline/totals.h"

static uint64_t rounded(double value)
{
	return value > 0 ? value < 9e18 ? (uint64_t)(value + 0.5) : 9000000000000000000u : 0;
}

/* Counts are whole while hooks are on. */
static double counted_calls(const struct function *out, const struct name *name)
{
	return out->precision == PRECISION_COUNTED || out->coverage <= 0 ? (double)name->counted : (double)name->counted / out->coverage;
}

static void finish_function(struct timeline_private *p, struct function_build *function, uint32_t index)
{
	struct name *name = &p->names.list.items[index];
	struct function *out = &function->out;

	out->kind = name->kind;
	out->name = strings_get(p->strings, name->name);
	out->file = strings_get(p->strings, name->file);
	out->line = name->line;
	out->coverage = function->wall_ns ? (double)function->covered_ns / (double)function->wall_ns : 0;
	if (out->coverage > 1)
		out->coverage = 1;
	out->self_ns = rounded(function->self);
	out->total_ns = rounded(function->total);
	spread_finish(p, &function->spread, index, out);
	out->cpu_self_ns = rounded(function->cpu_self);
	if (out->cpu_self_ns > out->self_ns)
		out->cpu_self_ns = out->self_ns;
	out->waiter = wait_is_waiter(p, name);
	out->lock_wait_ns = rounded(name->lock_wait);
	out->self_split = name->split;
	out->native = out->native_file = "";
	if (name->native) {
		const struct name *native = &p->names.list.items[name->native - 1];

		out->native = strings_get(p->strings, native->name);
		out->native_file = strings_get(p->strings, native->module ? native->module : native->file);
	}
	if (name->counted && !function->wall_ns)
		out->coverage = p->timeline.coverage;
	if (name->kind == FUNCTION_NATIVE || name->left_out)
		out->precision = PRECISION_SAMPLED;
	else if (function->estimated || (name->counted && !function->wall_ns && out->coverage < FULL_COVERAGE))
		out->precision = PRECISION_ESTIMATED;
	else if (function->sampled)
		out->precision = PRECISION_SAMPLED;
	else if (timeline_counter(&p->timeline, "lane_overflow", 0) > 0)
		out->precision = PRECISION_ESTIMATED; /* threads without a lane may have called it, too */
	else
		out->precision = name->counted || name->times_shared ? PRECISION_COUNTED : PRECISION_EXACT;
	out->seen_calls += name->counted;
	out->calls = rounded(function->calls + counted_calls(out, name));
	name->outer_calls = function->outer_calls + counted_calls(out, name);
}

static int compare_functions(const void *left, const void *right)
{
	const struct function *a = left, *b = right;
	int order;

	if (a->self_ns != b->self_ns)
		return a->self_ns > b->self_ns ? -1 : 1;
	if ((order = strcmp(a->name, b->name)) || (order = strcmp(a->file, b->file)))
		return order;
	if (a->line != b->line)
		return a->line < b->line ? -1 : 1;
	return (int)a->kind - (int)b->kind;
}

void functions_export(struct totals *totals)
{
	struct timeline_private *p = totals->p;
	size_t names = p->names.list.count, count = 0;
	struct function *functions;

	for (size_t i = 0; i < names; i++) {
		totals->functions[i].used |= p->names.list.items[i].counted > 0 || p->names.list.items[i].allocates;
		count += totals->functions[i].used;
	}
	functions = timeline_keep(p, count, sizeof *functions);
	p->export_function = timeline_keep(p, names, sizeof *p->export_function);
	if (p->failed)
		return;
	count = 0;
	for (size_t i = 0; i < names; i++) {
		p->export_function[i] = NONE;
		if (!totals->functions[i].used)
			continue;
		finish_function(p, &totals->functions[i], (uint32_t)i);
		totals->functions[i].out.id = (uint32_t)i; /* for a moment its index in names */
		functions[count++] = totals->functions[i].out;
	}
	qsort(functions, count, sizeof *functions, compare_functions);
	for (size_t i = 0; i < count; i++) {
		p->export_function[functions[i].id] = (uint32_t)i;
		functions[i].id = (uint32_t)i;
	}
	p->timeline.functions = totals->exported = functions;
	p->timeline.function_count = count;
}

/* CPU time of native frames belongs to the Python or C function that they work for; of threads that run no such function, to themselves. */
static void charge_work(struct totals *totals, const struct tree_node *nodes, uint32_t count)
{
	uint32_t *owner = malloc(count * sizeof *owner);

	if (!owner) {
		totals->p->failed = true;
		return;
	}
	owner[0] = NONE;
	for (uint32_t i = 1; i < count; i++) {
		const struct tree_node *node = &nodes[i];

		owner[i] = totals->exported[node->function].kind == FUNCTION_NATIVE ? owner[node->parent] : node->function;
		totals->exported[owner[i] == NONE ? node->function : owner[i]].cpu_work_ns += node->cpu_self_ns;
	}
	free(owner);
}

/* The roots of threads are ours alone: outside, their children hang on node 0. */
void nodes_export(struct totals *totals)
{
	struct timeline_private *p = totals->p;
	uint32_t *moved = malloc(p->nodes.count * sizeof *moved);
	p->export_node = timeline_keep(p, p->nodes.count, sizeof *p->export_node);
	struct tree_node *nodes = timeline_keep(p, p->nodes.count, sizeof *nodes);
	uint32_t count = 1;

	if (!moved || p->failed) {
		p->failed = true;
		free(moved);
		return;
	}
	nodes[0] = (struct tree_node){ .parent = NONE, .function = NONE, .thread = NONE, .total_ns = totals->nodes[0].total_ns };
	moved[0] = 0;
	for (size_t i = 1; i < p->nodes.count; i++) {
		const struct node *node = &p->nodes.items[i];

		if (node->function == NONE) {
			moved[i] = 0;
			continue;
		}
		moved[i] = p->export_node[i] = count;
		nodes[count++] = (struct tree_node){ .parent = moved[node->parent], .function = p->export_function[node->function],
			.thread = p->export_thread[node->thread], .depth = node->depth, .calls = node->calls, .self_ns = node->self_ns,
			.total_ns = totals->nodes[i].total_ns, .samples = node->samples,
			.estimated_self_ns = rounded(node->estimated_self),
			.cpu_self_ns = rounded(node->cpu_self < node->estimated_self ? node->cpu_self : node->estimated_self), .longest_ns = node->longest_ns, .exceptions = node->exceptions };
	}
	free(moved);
	p->timeline.nodes = nodes;
	p->timeline.node_count = count;
	charge_work(totals, nodes, count);
}
