/* What a finding rests on: the comparisons of the rule's condition that hold, and the values that the rule names beside them. */
#include <string.h>

#include "analyze/rule.h"

static const char *node_text(struct rule_state *state, const struct expression_node *node)
{
	return analysis_printf(state->p, "%.*s", (int)(node->end - node->begin < 120 ? node->end - node->begin : 120), state->rule->when.text + node->begin);
}

static const char *node_unit(const struct rule *rule, const struct expression_node *node)
{
	if (node->operation == OP_ADD || node->operation == OP_SUBTRACT || node->operation == OP_MAX || node->operation == OP_MIN)
		return node_unit(rule, &rule->when.nodes[node->child]);
	if (node->operation == OP_SYMBOL)
		return symbol_unit(rule, &node->symbol);
	return node->operation == OP_COUNT ? "count" : node->operation == OP_BYTES ? "bytes" : node->operation == OP_PCT ? "pct" : operation_is_aggregate((enum expression_operation)node->operation) ? "ns" : "";
}

static void add_evidence(struct finding_report *finding, struct evidence evidence)
{
	struct evidence *rows = (struct evidence *)finding->evidence;

	for (size_t i = 0; i < finding->evidence_count; i++)
		if (strcmp(rows[i].metric, evidence.metric) == 0 && (isnan(evidence.threshold) || strcmp(rows[i].op, evidence.op) == 0))
			return;
	if (finding->evidence_count < RULE_EVIDENCE)
		rows[finding->evidence_count++] = evidence;
}

static const char *flipped(enum expression_operation operation)
{
	switch (operation) {
	case OP_LESS: return ">";
	case OP_LESS_EQUAL: return ">=";
	case OP_GREATER: return "<";
	case OP_GREATER_EQUAL: return "<=";
	default: return operation_name(operation);
	}
}

/* Built-in rules show what they hold against thresholds of their own; other conditions only keep them from judging what they should not. */
static bool is_shown(const struct rule_state *state, const struct expression *when, uint32_t index)
{
	const struct rule *rule = state->rule;
	const struct expression_node *node = &when->nodes[index];
	const char *name;

	if (rule->own)
		return true;
	if (node->operation == OP_SYMBOL && node->symbol.sort == SYMBOL_PARAMETER) {
		name = symbol_name(state->set, rule, &node->symbol);
		if (strncmp(name, rule->id, strlen(rule->id)) == 0)
			return true;
	}
	for (uint32_t child = node->child; child != NO_NODE; child = when->nodes[child].next)
		if (is_shown(state, when, child))
			return true;
	return false;
}

static bool is_constant(const struct expression_node *node)
{
	return node->operation == OP_NUMBER || (node->operation == OP_SYMBOL && node->symbol.sort == SYMBOL_PARAMETER);
}

static void add_comparison(struct rule_state *state, struct finding_report *finding, const struct expression_node *node)
{
	const struct expression *when = &state->rule->when;
	const struct value *seen = state->evaluation.seen;
	uint32_t left = node->child, right = when->nodes[left].next;
	const struct expression_node *subject;
	bool flip = is_constant(&when->nodes[left]);
	const char *name;

	if (seen[left].kind != VALUE_NUMBER || seen[right].kind != VALUE_NUMBER)
		return;
	subject = &when->nodes[flip ? right : left];
	name = subject->operation == OP_SYMBOL ? symbol_name(state->set, state->rule, &subject->symbol) : node_text(state, subject);
	add_evidence(finding, (struct evidence){ name, seen[flip ? right : left].number, node_unit(state->rule, subject), seen[flip ? left : right].number,
		flip ? flipped((enum expression_operation)node->operation) : operation_name((enum expression_operation)node->operation) });
}

/* Of sides joined by "and" all hold; of those joined by "or", those that do. */
static void add_compared(struct rule_state *state, struct finding_report *finding, uint32_t index, unsigned depth)
{
	const struct expression *when = &state->rule->when;
	const struct expression_node *node = &when->nodes[index];
	const struct value *seen = state->evaluation.seen;

	if (seen[index].kind != VALUE_TRUTH || !seen[index].number || depth > EXPRESSION_NODES_MAX)
		return;
	if (node->operation == OP_AND || node->operation == OP_OR) {
		add_compared(state, finding, node->child, depth + 1);
		add_compared(state, finding, when->nodes[node->child].next, depth + 1);
	} else if (operation_is_comparison((enum expression_operation)node->operation) && is_shown(state, when, index)) {
		add_comparison(state, finding, node);
	}
}

static void add_named(struct rule_state *state, struct finding_report *finding)
{
	const struct rule *rule = state->rule;

	for (size_t i = 0; i < rule->evidence_count; i++) {
		struct value value = rule_symbol(state, &rule->evidence[i]);

		if (value.kind == VALUE_NUMBER)
			add_evidence(finding, (struct evidence){ symbol_name(state->set, rule, &rule->evidence[i]), value.number, symbol_unit(rule, &rule->evidence[i]), NAN, "" });
	}
}

bool rule_evidence(struct rule_state *state, struct finding_report *finding)
{
	finding->evidence = analysis_keep(state->p, RULE_EVIDENCE, sizeof *finding->evidence);
	if (!finding->evidence)
		return false;
	add_compared(state, finding, state->rule->when.root, 0); /* before others are evaluated */
	add_named(state, finding);
	return true;
}
