/* Which functions are what, and how much time passes under them. */
#include <string.h>

#include "analyze/private.h"
#include "base/text.h"

static const char *last_part(const char *qualified)
{
	const char *dot = strrchr(qualified, '.');

	return dot ? dot + 1 : qualified;
}

bool function_is_logging(const struct function *function)
{
	return function->kind == FUNCTION_PYTHON && (text_ends_with(function->file, "/logging/__init__.py") || text_ends_with(function->file, "/logging/handlers.py"));
}

static bool is_machinery(const struct function *function)
{
	return strstr(function->file, "importlib") && (strstr(function->file, "frozen") || strstr(function->file, "/importlib/"));
}

bool function_is_import(const struct function *function)
{
	return function->kind == FUNCTION_PYTHON && (strcmp(function->name, "<module>") == 0 || is_machinery(function));
}

bool function_is_tokenizer(const struct function *function)
{
	static const char *const parts[] = { "/tokenizers/", "/transformers/tokenization", "/sentencepiece/", "/tiktoken/" };

	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		if (strstr(function->file, parts[i]))
			return true;
	return false;
}

bool function_is_collector(const struct function *function)
{
	return function->kind == FUNCTION_C && strcmp(function->file, "gc") == 0 && strcmp(last_part(function->name), "collect") == 0;
}

bool function_is_loop_callback(const struct function *function)
{
	return text_ends_with(function->file, "/asyncio/events.py") && strcmp(last_part(function->name), "_run") == 0;
}

const struct function *function_hottest(const struct timeline *timeline)
{
	const struct function *best = NULL;

	for (size_t i = 0; i < timeline->function_count; i++) {
		const struct function *function = &timeline->functions[i];

		if (function->cpu_work_ns && !function->waiter && (!best || function->cpu_work_ns > best->cpu_work_ns))
			best = function;
	}
	return best;
}

/* Room for a walk over the tree. */
struct walk {
	uint32_t *top;      /* by node: the outermost one that passes, itself or above it; 0 = none */
	bool *in_function;  /* by node: below (or in) a function that is no module body, no machinery, no starter of scripts */
	double *by_caller, *by_top; /* by function, ns */
};

static bool is_starter(const struct function *function)
{
	return strstr(function->file, "runpy") != NULL;
}

static uint32_t largest(const double *values, size_t count)
{
	uint32_t best = UINT32_MAX;

	for (size_t i = 0; i < count; i++)
		if (values[i] > 0 && (best == UINT32_MAX || values[i] > values[best]))
			best = (uint32_t)i;
	return best;
}

/* The nearest Python function above NODE, or NULL. */
static const struct function *python_above(const struct timeline *timeline, const struct tree_node *node)
{
	for (uint32_t i = node->parent; i; i = timeline->nodes[i].parent)
		if (timeline->functions[timeline->nodes[i].function].kind == FUNCTION_PYTHON)
			return &timeline->functions[timeline->nodes[i].function];
	return NULL;
}

/* The script that the interpreter, or runpy, was told to run: its body is the program itself. So is what exec() was given as text. */
static bool is_script(const struct timeline *timeline, const struct tree_node *node)
{
	const struct function *function = &timeline->functions[node->function], *above;

	if (strcmp(function->name, "<module>") != 0)
		return false;
	if (*function->file == '<')
		return strncmp(function->file, "<frozen ", 8) != 0;
	above = python_above(timeline, node);
	return !above || (is_starter(above) && strcmp(above->name, "_run_code") == 0);
}

/*
 * Entered while watched, in this very stack or, of a stack that only samples know, at all: what is open from the start on may be there for ever, such as the
 * function that a server's thread waits in. A module's body runs once: if nobody saw it in a thread that was watched for a while, that was while nobody watched. (The machinery above it is hidden from
 * hooks, not from samples.)
 */
static bool is_entered(const struct timeline *timeline, const struct tree_node *node, const struct function *function)
{
	if (node->calls || node->total_ns)
		return node->calls;
	return function->seen_calls || (strcmp(function->name, "<module>") == 0 && !function->seen_total_ns && timeline->threads[node->thread].covered_ns);
}

static void charge(const struct timeline *timeline, struct walk *walk, function_test test, uint32_t top, double ns)
{
	uint32_t caller = timeline->nodes[top].parent;

	while (caller && test(&timeline->functions[timeline->nodes[caller].function]))
		caller = timeline->nodes[caller].parent;
	walk->by_top[timeline->nodes[top].function] += ns;
	if (caller)
		walk->by_caller[timeline->nodes[caller].function] += ns;
}

/* Parents come before children, so one walk forwards knows of each node what lies above it. */
static void walk_nodes(const struct timeline *timeline, struct walk *walk, function_test test, bool in_call, struct inclusive *out)
{
	for (uint32_t i = 1; i < timeline->node_count; i++) {
		const struct tree_node *node = &timeline->nodes[i];
		const struct function *function = &timeline->functions[node->function];

		walk->in_function[i] = walk->in_function[node->parent] || (!function_is_import(function) && !is_starter(function));
		walk->top[i] = walk->top[node->parent];
		if (!walk->top[i] && test(function) && is_entered(timeline, node, function) && !is_script(timeline, node) && (!in_call || walk->in_function[node->parent]))
			walk->top[i] = i;
		if (!walk->top[i])
			continue;
		out->ns += (double)node->estimated_self_ns;
		charge(timeline, walk, test, walk->top[i], (double)node->estimated_self_ns);
	}
}

struct inclusive inclusive_time(const struct analysis_private *p, function_test test, bool in_call)
{
	const struct timeline *timeline = p->timeline;
	size_t nodes = timeline->node_count + 1, functions = timeline->function_count + 1;
	struct inclusive out = { .caller = UINT32_MAX, .top = UINT32_MAX };
	struct walk *walk = p->walk;

	memset(walk->top, 0, nodes * sizeof *walk->top);
	memset(walk->in_function, 0, nodes * sizeof *walk->in_function);
	memset(walk->by_caller, 0, functions * sizeof *walk->by_caller);
	memset(walk->by_top, 0, functions * sizeof *walk->by_top);
	walk_nodes(timeline, walk, test, in_call, &out);
	out.caller = largest(walk->by_caller, timeline->function_count);
	out.top = largest(walk->by_top, timeline->function_count);
	return out;
}

void walk_begin(struct analysis_private *p)
{
	size_t nodes = p->timeline->node_count + 1, functions = p->timeline->function_count + 1;
	struct walk *walk = p->walk = analysis_keep(p, 1, sizeof *walk);

	if (walk)
		*walk = (struct walk){ analysis_keep(p, nodes, sizeof *walk->top), analysis_keep(p, nodes, sizeof *walk->in_function), analysis_keep(p, functions, sizeof *walk->by_caller),
			analysis_keep(p, functions, sizeof *walk->by_top) };
}

uint64_t longest_callback(const struct analysis_private *p, uint32_t *out, uint32_t *thread)
{
	const struct timeline *timeline = p->timeline;
	uint64_t longest = 0, inner = 0;
	uint32_t at = 0;

	*out = UINT32_MAX;
	for (size_t i = 1; i < timeline->node_count; i++) {
		const struct tree_node *node = &timeline->nodes[i];

		if (node->longest_ns > longest && function_is_loop_callback(&timeline->functions[node->function])) {
			longest = node->longest_ns;
			at = (uint32_t)i;
			*out = node->function;
		}
	}
	if (!longest)
		return 0;
	*thread = timeline->nodes[at].thread;
	for (size_t i = at + 1; i < timeline->node_count; i++) {
		const struct tree_node *node = &timeline->nodes[i];

		if (node->parent == at && node->longest_ns > inner) {
			inner = node->longest_ns;
			*out = node->function;
		}
	}
	return longest;
}
