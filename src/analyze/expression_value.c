/* From a checked tree to its value. Unknown parts make the whole unknown, unless the rest decides. */
#include <math.h>
#include <string.h>

#include "analyze/expression.h"

#define TOO_MANY_STEPS "it takes too many steps on this trace"

static const struct expression_function functions[] = {
	{ "min", OP_MIN, 2, 8, "a, b, …", "the smallest" },
	{ "max", OP_MAX, 2, 8, "a, b, …", "the largest" },
	{ "clamp", OP_CLAMP, 3, 3, "x, low, high", "x, but not below low nor above high" },
	{ "pct", OP_PCT, 2, 2, "part, whole", "100 × part / whole" },
	{ "rate", OP_RATE, 1, 1, "x", "x per second of the capture" },
	{ "known", OP_KNOWN, 1, 1, "x", "true when x has a value" },
	{ "either", OP_EITHER, 2, 2, "x, y", "x when it has a value, else y" },
	{ "time", OP_TIME, 1, 8, "set, filter…, within=scope", "ns; of functions with all below them, counted once however they nest, scaled to the capture" },
	{ "self", OP_SELF, 1, 8, "set, filter…", "ns in functions without their callees" },
	{ "cpu", OP_CPU, 1, 8, "set, filter…", "ns of CPU time in functions without their callees" },
	{ "count", OP_COUNT, 1, 8, "set, filter…, within=scope", "calls, kernels, copies …; within=scope those of functions below the rule's scope" },
	{ "n", OP_COUNT, 1, 8, "set, filter…, within=scope", "the same as count" },
	{ "bytes", OP_BYTES, 1, 8, "set, filter…", "bytes that copies moved" },
	{ "longest", OP_LONGEST, 1, 8, "set, filter…", "ns of the longest one" },
	{ "busiest", OP_BUSIEST, 1, 8, "api, filter…", "ns that one thread was in such calls at most; time(api) adds up all threads" },
	{ "seen", OP_SEEN, 1, 1, "scope", "requests that were seen from beginning to end: those that percentiles are of" },
	{ "open", OP_OPEN, 1, 1, "scope", "ns in which at least one request was open; time(scope) adds those up that are open at once" },
	{ "gap", OP_GAP, 1, 1, "cause", "ns in which the device was idle for that cause" },
	{ "p", OP_PERCENTILE, 2, 8, "set, rank, filter…", "ns that rank per cent of them do not exceed; p99(set) is p(set, 99)" },
};

const struct expression_function *expression_functions(size_t *count)
{
	*count = sizeof functions / sizeof *functions;
	return functions;
}

static struct value unknown(const char *why)
{
	return (struct value){ .kind = VALUE_UNKNOWN, .text = why };
}

static struct value number(double value)
{
	return isfinite(value) ? (struct value){ .kind = VALUE_NUMBER, .number = value } : unknown("not a finite number");
}

static struct value truth(bool value)
{
	return (struct value){ .kind = VALUE_TRUTH, .number = value };
}

static struct value text(const char *value)
{
	return (struct value){ .kind = VALUE_TEXT, .text = value };
}

static struct value value_of(struct evaluation *evaluation, uint32_t index);

static struct value arithmetic(enum expression_operation operation, double left, double right)
{
	switch (operation) {
	case OP_ADD: return number(left + right);
	case OP_SUBTRACT: return number(left - right);
	case OP_MULTIPLY: return number(left * right);
	case OP_DIVIDE: return right == 0 ? unknown("a division by zero") : number(left / right);
	case OP_PCT: return right == 0 ? unknown("a division by zero") : number(100 * left / right);
	case OP_LESS: return truth(left < right);
	case OP_LESS_EQUAL: return truth(left <= right);
	case OP_GREATER: return truth(left > right);
	case OP_GREATER_EQUAL: return truth(left >= right);
	case OP_EQUAL: return truth(left == right);
	case OP_UNEQUAL: return truth(left != right);
	default: return unknown("not computed");
	}
}

/* One that cannot be tried to its end ends the rule. */
static struct value fits(struct evaluation *evaluation, const struct pattern *pattern, const char *text)
{
	uint64_t left = PATTERN_STEPS_MAX - evaluation->tried;
	bool result = pattern_matches(pattern, text, strnlen(text, PATTERN_TEXT_MAX), &left);

	evaluation->tried = PATTERN_STEPS_MAX - left;
	if (left)
		return truth(result);
	evaluation->steps = EXPRESSION_STEPS_MAX + 1;
	return unknown(TOO_MANY_STEPS);
}

static struct value binary(struct evaluation *evaluation, const struct expression_node *node)
{
	const struct expression_node *nodes = evaluation->expression->nodes;
	struct value left = value_of(evaluation, node->child), right;

	if (left.kind == VALUE_UNKNOWN)
		return left;
	if (node->pattern)
		return fits(evaluation, node->pattern, left.text);
	right = value_of(evaluation, nodes[node->child].next);
	if (right.kind == VALUE_UNKNOWN)
		return right;
	if (left.kind == VALUE_TEXT)
		return truth((strcmp(left.text, right.text) == 0) == (node->operation == OP_EQUAL));
	return arithmetic((enum expression_operation)node->operation, left.number, right.number);
}

/* A side that decides does so whatever the other one is. */
static struct value logic(struct evaluation *evaluation, const struct expression_node *node)
{
	double deciding = node->operation == OP_OR;
	struct value left = value_of(evaluation, node->child), right;

	if (left.kind == VALUE_TRUTH && left.number == deciding)
		return left;
	right = value_of(evaluation, evaluation->expression->nodes[node->child].next);
	return right.kind == VALUE_TRUTH && right.number == deciding ? right : left.kind == VALUE_UNKNOWN ? left : right;
}

static struct value extreme(struct evaluation *evaluation, const struct expression_node *node)
{
	struct value best = value_of(evaluation, node->child), next;

	for (uint32_t at = evaluation->expression->nodes[node->child].next; at != NO_NODE && best.kind != VALUE_UNKNOWN; at = evaluation->expression->nodes[at].next) {
		next = value_of(evaluation, at);
		if (next.kind == VALUE_UNKNOWN || (node->operation == OP_MIN ? next.number < best.number : next.number > best.number))
			best = next;
	}
	return best;
}

static struct value clamped(struct evaluation *evaluation, const struct expression_node *node)
{
	const struct expression_node *nodes = evaluation->expression->nodes;
	uint32_t low_node = nodes[node->child].next;
	struct value value = value_of(evaluation, node->child), low = value_of(evaluation, low_node), high = value_of(evaluation, nodes[low_node].next);

	if (value.kind == VALUE_UNKNOWN || low.kind == VALUE_UNKNOWN || high.kind == VALUE_UNKNOWN)
		return value.kind == VALUE_UNKNOWN ? value : low.kind == VALUE_UNKNOWN ? low : high;
	return number(value.number < low.number ? low.number : value.number > high.number ? high.number : value.number);
}

static struct value rate(struct evaluation *evaluation, struct value value)
{
	if (value.kind == VALUE_UNKNOWN)
		return value;
	return evaluation->world->seconds > 0 ? number(value.number / evaluation->world->seconds) : unknown("nothing was measured");
}

static struct value aggregate(struct evaluation *evaluation, const struct expression_node *node)
{
	const struct expression_node *outer = evaluation->aggregate;
	struct value rank = { 0 }, result;

	if (node->operation == OP_PERCENTILE) {
		uint32_t last = node->child;

		while (evaluation->expression->nodes[last].next != NO_NODE)
			last = evaluation->expression->nodes[last].next;
		rank = value_of(evaluation, last);
		if (rank.kind == VALUE_UNKNOWN)
			return rank;
	}
	evaluation->aggregate = node;
	result = evaluation->world->aggregate(evaluation->world->context, node, rank.number, evaluation);
	evaluation->aggregate = outer;
	return evaluation->steps > EXPRESSION_STEPS_MAX ? unknown(TOO_MANY_STEPS) : result;
}

bool expression_accepts(struct evaluation *evaluation, const struct row *row)
{
	const struct expression_node *nodes = evaluation->expression->nodes;
	struct value *seen = evaluation->seen; /* what is found per row is nothing to show */
	bool accepts = true;

	evaluation->seen = NULL;
	evaluation->row = row;
	for (uint32_t at = evaluation->aggregate->child; at != NO_NODE && accepts; at = nodes[at].next) {
		struct value value;

		if (nodes[at].type != VALUE_TRUTH)
			continue; /* a rank */
		value = value_of(evaluation, at);
		accepts = value.kind == VALUE_TRUTH && value.number != 0;
	}
	evaluation->row = NULL;
	evaluation->seen = seen;
	return accepts;
}

static struct value compute(struct evaluation *evaluation, const struct expression_node *node)
{
	struct value value;

	switch ((enum expression_operation)node->operation) {
	case OP_NUMBER: return number(node->number);
	case OP_TEXT: return text(node->text);
	case OP_TRUTH: return truth(node->number != 0);
	case OP_SYMBOL: return evaluation->world->symbol(evaluation->world->context, &node->symbol);
	case OP_ROW_NAME: return evaluation->row ? text(evaluation->row->name) : unknown("no row");
	case OP_ROW_FILE: return evaluation->row ? text(evaluation->row->file) : unknown("no row");
	case OP_ROW_LINE: return evaluation->row ? number(evaluation->row->line) : unknown("no row");
	case OP_NOT:
		value = value_of(evaluation, node->child);
		return value.kind == VALUE_UNKNOWN ? value : truth(value.number == 0);
	case OP_NEGATE:
		value = value_of(evaluation, node->child);
		return value.kind == VALUE_UNKNOWN ? value : number(-value.number);
	case OP_AND:
	case OP_OR: return logic(evaluation, node);
	case OP_MIN:
	case OP_MAX: return extreme(evaluation, node);
	case OP_CLAMP: return clamped(evaluation, node);
	case OP_RATE: return rate(evaluation, value_of(evaluation, node->child));
	case OP_KNOWN: return truth(value_of(evaluation, node->child).kind != VALUE_UNKNOWN);
	case OP_EITHER:
		value = value_of(evaluation, node->child);
		return value.kind == VALUE_UNKNOWN ? value_of(evaluation, evaluation->expression->nodes[node->child].next) : value;
	default: return operation_is_aggregate((enum expression_operation)node->operation) ? aggregate(evaluation, node) : binary(evaluation, node);
	}
}

static struct value value_of(struct evaluation *evaluation, uint32_t index)
{
	struct value value;

	if (++evaluation->steps > EXPRESSION_STEPS_MAX)
		return unknown(TOO_MANY_STEPS);
	value = compute(evaluation, &evaluation->expression->nodes[index]);
	if (evaluation->seen)
		evaluation->seen[index] = value;
	return value;
}

struct value expression_value(const struct expression *expression, struct evaluation *evaluation)
{
	const struct expression *outer = evaluation->expression;
	struct value value;

	evaluation->expression = expression;
	if (evaluation->seen)
		memset(evaluation->seen, 0, expression->node_count * sizeof *evaluation->seen);
	value = value_of(evaluation, expression->root);
	evaluation->expression = outer;
	return value;
}

const char *operation_name(enum expression_operation operation)
{
	static const char *const signs[] = { [OP_LESS] = "<", [OP_LESS_EQUAL] = "<=", [OP_GREATER] = ">", [OP_GREATER_EQUAL] = ">=", [OP_EQUAL] = "==", [OP_UNEQUAL] = "!=", [OP_MATCH] = "=~",
		[OP_ADD] = "+", [OP_SUBTRACT] = "-", [OP_MULTIPLY] = "*", [OP_DIVIDE] = "/", [OP_AND] = "and", [OP_OR] = "or", [OP_NOT] = "not" };

	for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
		if (functions[i].operation == operation)
			return functions[i].name;
	return (size_t)operation < sizeof signs / sizeof *signs && signs[operation] ? signs[operation] : "";
}
