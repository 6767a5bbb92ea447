/* Adds up what filters accept. */
#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>

#include "analyze/sets.h"
#include "analyze/rule.h"
#include "timeline/operations.h"

#define OF_FUNCTIONS (SET_OPERATION(OP_TIME) | SET_OPERATION(OP_SELF) | SET_OPERATION(OP_CPU) | SET_OPERATION(OP_COUNT) | SET_OPERATION(OP_LONGEST))
#define OF_OPERATIONS (SET_OPERATION(OP_TIME) | SET_OPERATION(OP_COUNT) | SET_OPERATION(OP_LONGEST) | SET_OPERATION(OP_PERCENTILE))
#define OF_CALLS (OF_OPERATIONS | SET_OPERATION(OP_BUSIEST))
#define OF_SCOPES (OF_OPERATIONS | SET_OPERATION(OP_SEEN) | SET_OPERATION(OP_OPEN))
#define OF_COPIES (OF_OPERATIONS | SET_OPERATION(OP_BYTES))

static const struct set_info sets[] = {
	{ "py", SET_FUNCTIONS, FUNCTION_PYTHON, FUNCTION_PYTHON, OF_FUNCTIONS, "Python functions" },
	{ "c", SET_FUNCTIONS, FUNCTION_C, FUNCTION_C, OF_FUNCTIONS, "C functions that Python called" },
	{ "native", SET_FUNCTIONS, FUNCTION_NATIVE, FUNCTION_NATIVE, OF_FUNCTIONS, "native functions, as samples saw them" },
	{ "any", SET_FUNCTIONS, FUNCTION_PYTHON, FUNCTION_NATIVE, OF_FUNCTIONS, "functions of every kind" },
	{ "kernel", SET_OPERATIONS, EVENT_GPU_KERNEL, EVENT_GPU_KERNEL, OF_OPERATIONS, "kernels; times are sums" },
	{ "copy", SET_OPERATIONS, EVENT_H2D_COPY, EVENT_D2D_COPY, OF_COPIES, "copies; name is where from and where to, as pageable-device" },
	{ "h2d", SET_OPERATIONS, EVENT_H2D_COPY, EVENT_H2D_COPY, OF_COPIES, "copies to the device" },
	{ "d2h", SET_OPERATIONS, EVENT_D2H_COPY, EVENT_D2H_COPY, OF_COPIES, "copies from the device" },
	{ "d2d", SET_OPERATIONS, EVENT_D2D_COPY, EVENT_D2D_COPY, OF_COPIES, "copies on and between devices" },
	{ "memset", SET_OPERATIONS, EVENT_GPU_MEMSET, EVENT_GPU_MEMSET, OF_COPIES, "memory set on the device" },
	{ "sync", SET_OPERATIONS, EVENT_GPU_SYNC, EVENT_GPU_SYNC, OF_OPERATIONS, "the host waited for the device, as the device's driver tells" },
	{ "api", SET_OPERATIONS, EVENT_GPU_API, EVENT_GPU_API, OF_CALLS, "calls of the device's runtime and driver" },
	{ "syscall", SET_OPERATIONS, EVENT_CPU_SYSCALL, EVENT_CPU_SYSCALL, OF_OPERATIONS, "system calls" },
	{ "gc", SET_OPERATIONS, EVENT_GC, EVENT_GC, OF_OPERATIONS, "collections of garbage; name is generation 0, 1 or 2" },
	{ "host_late", SET_GAPS, GPU_HOST_LATE, GPU_HOST_LATE, SET_OPERATION(OP_GAP), "the device idle: the host had not asked for work yet" },
	{ "sync_caused", SET_GAPS, GPU_SYNC_CAUSED, GPU_SYNC_CAUSED, SET_OPERATION(OP_GAP), "the device idle: the host had waited for it" },
	{ "no_demand", SET_GAPS, GPU_NO_DEMAND, GPU_NO_DEMAND, SET_OPERATION(OP_GAP), "the device idle: there was nothing to do" },
	{ "device_dependency", SET_GAPS, GPU_DEVICE_DEPENDENCY, GPU_DEVICE_DEPENDENCY, SET_OPERATION(OP_GAP), "the device idle although work had been asked for" },
	{ "idle", SET_GAPS, 0, GPU_IDLE_CAUSES - 1, SET_OPERATION(OP_GAP), "the device idle, whatever the cause" },
	{ "scope", SET_SCOPE, 0, 0, OF_SCOPES, "requests: the rule's scope; scope:NAME those of that name, scope:'POST *' those that fit" },
};

const struct set_info *set_infos(size_t *count)
{
	*count = sizeof sets / sizeof *sets;
	return sets;
}

static struct value number(double value)
{
	return isfinite(value) ? (struct value){ .kind = VALUE_NUMBER, .number = value } : (struct value){ .kind = VALUE_UNKNOWN, .text = "there is none" };
}

static struct value unknown(const char *why)
{
	return (struct value){ .kind = VALUE_UNKNOWN, .text = why };
}

/* ---- functions ---- */

static bool function_accepted(struct rule_state *state, const struct set_info *set, const struct expression_node *node, size_t index, struct evaluation *evaluation)
{
	const struct function *function = &state->p->timeline->functions[index];
	struct row row = { function->name, function->file, function->line };

	evaluation->steps++;
	if ((int)function->kind < set->low || (int)function->kind > set->high || !expression_accepts(evaluation, &row))
		return false;
	if (node->child != NO_NODE)
		state->matched[index] = true;
	return true;
}

static bool is_scope(const struct rule_state *state, const struct tree_node *node)
{
	return state->scope && node->function == state->scope->function;
}

/* Of each accepted function's calls the part that is below the scope's function. */
static double calls_within(struct rule_state *state, const bool *accepted)
{
	const struct timeline *timeline = state->p->timeline;
	struct seen { uint64_t all, inside; } *seen = calloc(timeline->function_count + 1, sizeof *seen);
	bool *inside = calloc(timeline->node_count + 1, sizeof *inside);
	double calls = 0;

	state->p->failed |= !seen || !inside;
	for (size_t i = 1; seen && inside && i < timeline->node_count; i++) {
		const struct tree_node *node = &timeline->nodes[i];

		inside[i] = inside[node->parent] || is_scope(state, node);
		seen[node->function].all += node->calls;
		seen[node->function].inside += inside[i] ? node->calls : 0;
	}
	for (size_t i = 0; seen && inside && i < timeline->function_count; i++)
		if (accepted[i] && seen[i].all)
			calls += (double)timeline->functions[i].calls * (double)seen[i].inside / (double)seen[i].all;
	free(seen);
	free(inside);
	return calls;
}

/* Self time of every node that is in an accepted function or below one; WITHIN: only below the scope's function. */
static double time_below(struct rule_state *state, const bool *accepted, bool within)
{
	const struct timeline *timeline = state->p->timeline;
	enum { IN_ACCEPTED = 1, IN_SCOPE = 2 };
	uint8_t *inside = calloc(timeline->node_count + 1, 1);
	double ns = 0;

	if (!inside) {
		state->p->failed = true;
		return 0;
	}
	for (size_t i = 1; i < timeline->node_count; i++) {
		const struct tree_node *node = &timeline->nodes[i];

		inside[i] = inside[node->parent] | (accepted[node->function] ? IN_ACCEPTED : 0);
		if (is_scope(state, node))
			inside[i] |= IN_SCOPE;
		if (inside[i] & IN_ACCEPTED && (!within || inside[i] & IN_SCOPE))
			ns += (double)node->estimated_self_ns;
	}
	free(inside);
	return ns;
}

static double of_function(const struct function *function, enum expression_operation operation)
{
	switch (operation) {
	case OP_SELF: return (double)function->self_ns;
	case OP_CPU: return (double)function->cpu_work_ns;
	case OP_LONGEST: return (double)function->longest_ns;
	default: return (double)function->calls;
	}
}

static struct value of_functions(struct rule_state *state, const struct set_info *set, const struct expression_node *node, struct evaluation *evaluation)
{
	const struct timeline *timeline = state->p->timeline;
	bool *accepted = calloc(timeline->function_count + 1, sizeof *accepted);
	double sum = 0;

	if (!accepted) {
		state->p->failed = true;
		return unknown("out of memory");
	}
	if (node->within && (!state->scope || state->scope->function == UINT32_MAX)) {
		free(accepted);
		return unknown("times and calls within a scope are known where the scope is a function: --scope FUNCTION");
	}
	for (size_t i = 0; i < timeline->function_count && evaluation->steps <= EXPRESSION_STEPS_MAX; i++) {
		double one;

		accepted[i] = function_accepted(state, set, node, i, evaluation);
		one = accepted[i] ? of_function(&timeline->functions[i], (enum expression_operation)node->operation) : 0;
		sum = node->operation == OP_LONGEST ? fmax(sum, one) : sum + one;
	}
	if (node->operation == OP_TIME)
		sum = time_below(state, accepted, node->within);
	else if (node->within)
		sum = calls_within(state, accepted);
	free(accepted);
	return number(sum);
}

/* ---- operations ---- */

static struct value of_operations(struct rule_state *state, const struct set_info *set, const struct expression_node *node, double rank, struct evaluation *evaluation)
{
	const struct operations *all = timeline_operations(state->p->timeline);
	bool *accepted = node->operation == OP_BUSIEST ? calloc(all->count + 1, sizeof *accepted) : NULL;
	struct histogram durations = { 0 };
	uint32_t thread;
	double sum = 0;

	if (!accepted && node->operation == OP_BUSIEST) {
		state->p->failed = true;
		return unknown("out of memory");
	}
	for (size_t i = 0; i < all->count; i++) {
		const struct operation *operation = &all->items[i];
		struct row row = { operation->name, "", 0 };

		evaluation->steps++;
		if ((int)operation->kind < set->low || (int)operation->kind > set->high || !expression_accepts(evaluation, &row))
			continue;
		if (accepted)
			accepted[operation->number] = true;
		histogram_add(&durations, operation->histogram, operation->longest_ns);
		if (node->operation == OP_LONGEST)
			sum = fmax(sum, (double)operation->longest_ns);
		else
			sum += node->operation == OP_TIME ? (double)operation->time_ns : node->operation == OP_BYTES ? (double)operation->bytes : (double)operation->count;
	}
	if (node->operation == OP_PERCENTILE)
		sum = histogram_percentile(&durations, rank);
	else if (accepted)
		sum = (double)operations_busiest(all, accepted, &thread);
	free(accepted);
	return number(sum);
}

static struct value of_gaps(const struct device *device, const struct set_info *set)
{
	double ns = 0;

	for (int cause = set->low; device && cause <= set->high; cause++)
		ns += (double)device->idle_ns[cause];
	return device ? number(ns) : unknown("no GPU data");
}

static double of_scope(const struct scope_latency *scope, enum expression_operation operation, double rank)
{
	switch (operation) {
	case OP_TIME: return (double)scope->all_ns;
	case OP_COUNT: return (double)scope->all_count;
	case OP_SEEN: return (double)scope->count;
	case OP_OPEN: return (double)scope->open_ns;
	case OP_LONGEST: return (double)scope->max_ns;
	default: return (double)(rank < 60 ? scope->p50_ns : rank < 97 ? scope->p95_ns : scope->p99_ns);
	}
}

/* The rule's scope, or those that the name in the expression fits: then times and counts are sums, the rest is of the worst of them. */
static struct value of_scopes(const struct rule_state *state, const struct expression_node *node, double rank)
{
	enum expression_operation operation = (enum expression_operation)node->operation;
	const struct timeline *timeline = state->p->timeline;
	double result = 0;
	size_t found = 0;

	if (operation == OP_PERCENTILE && rank != 50 && rank != 95 && rank != 99)
		return unknown("of scopes, the percentiles 50, 95 and 99 are known");
	for (size_t i = 0; node->text && i < timeline->scope_count; i++) {
		double one = of_scope(&timeline->scopes[i], operation, rank);

		if (fnmatch(node->text, timeline->scopes[i].name, 0) != 0)
			continue;
		result = operation == OP_TIME || operation == OP_COUNT || operation == OP_SEEN ? result + one : fmax(result, one);
		found++;
	}
	if (found)
		return number(result);
	return !node->text && state->scope ? number(of_scope(state->scope, operation, rank)) : unknown("no request scope of that name");
}

struct value rule_aggregate(void *context, const struct expression_node *node, double rank, struct evaluation *evaluation)
{
	struct rule_state *state = context;
	const struct set_info *set = &sets[node->symbol.index];

	if (set->family == SET_GAPS)
		return of_gaps(state->p->device, set);
	if (set->family == SET_SCOPE)
		return of_scopes(state, node, rank);
	return set->family == SET_FUNCTIONS ? of_functions(state, set, node, evaluation) : of_operations(state, set, node, rank, evaluation);
}
