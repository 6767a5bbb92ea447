/* What rules mean, for people: their texts, and with an analysis each value on the way to the judgement. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/rule.h"
#include "base/text.h"

static void add_value(struct text *out, const struct value *value)
{
	if (value->kind == VALUE_NUMBER)
		text_printf(out, "%.10g", value->number);
	else if (value->kind == VALUE_TRUTH)
		text_add_string(out, value->number ? "true" : "false");
	else if (value->kind == VALUE_TEXT)
		text_printf(out, "\"%.100s\"", value->text);
	else
		text_printf(out, "%s%s", value->text ? "unknown: " : "not looked at", value->text ? value->text : "");
}

/* The parts of an expression, each below what it is a part of; constants speak for themselves. */
static void add_parts(struct text *out, const struct expression *expression, const struct value *seen, uint32_t index, unsigned depth)
{
	const struct expression_node *node = &expression->nodes[index];

	if (node->operation <= OP_TRUTH)
		return;
	text_printf(out, "%*s%-*.*s ", (int)(2 * depth), "", depth < 20 ? (int)(60 - 2 * depth) : 20, (int)(node->end - node->begin), expression->text + node->begin);
	text_add_string(out, "= ");
	add_value(out, &seen[index]);
	text_add_string(out, "\n");
	if (operation_is_aggregate((enum expression_operation)node->operation))
		return; /* filters have a value for each row */
	for (uint32_t child = node->child; child != NO_NODE; child = expression->nodes[child].next)
		add_parts(out, expression, seen, child, depth + 1);
}

static void add_expression(struct text *out, struct rule_state *state, const char *name, const struct expression *expression)
{
	struct value value = expression_value(expression, &state->evaluation);

	text_printf(out, "\n%s: ", name);
	add_value(out, &value);
	text_add_string(out, "\n");
	add_parts(out, expression, state->evaluation.seen, expression->root, 1);
}

static void add_judgement(struct text *out, struct rule_state *state)
{
	const struct rule *rule = state->rule;
	struct value holds = rule_when(state);

	if (state->scope)
		text_printf(out, "\nscope \"%.100s\":\n", state->scope->name);
	for (size_t i = 0; i < rule->let_count; i++)
		add_expression(out, state, rule->lets[i].name, &rule->lets[i].value);
	add_expression(out, state, "when", &rule->when);
	add_expression(out, state, "severity high", &rule->severity[0]);
	add_expression(out, state, "severity medium", &rule->severity[1]);
	add_expression(out, state, "severity low", &rule->severity[2]);
	add_expression(out, state, "confidence, before the quality of the data", &rule->confidence);
	add_expression(out, state, "recoverable, ns", &rule->recoverable);
	text_printf(out, "\ntitle: %s\n", rule_title(state));
	text_add_string(out, "judgement: ");
	if (holds.kind == VALUE_UNKNOWN)
		text_printf(out, "not evaluated: %s\n", holds.text);
	else
		text_add_string(out, holds.number ? "fires\n" : "does not fire\n");
}

static int add_trace(const struct ruleset *set, const struct rule *rule, const struct analysis *analysis, struct text *out, struct error *err)
{
	struct analysis_private *p = analysis->private_;
	const char *missing = need_missing(p, rule->needs);
	struct rule_state state;
	const struct world world = { &state, (double)p->timeline->duration_ns / 1e9, rule_symbol, rule_aggregate };
	bool begun = rule_begin(&state, p, set, p->parameters);

	if (begun && missing)
		text_printf(out, "\njudgement: not evaluated: %s\n", missing);
	state.rule = rule;
	state.evaluation.world = &world;
	if (begun && !missing && !rule->scope)
		add_judgement(out, &state);
	for (size_t i = 0; begun && !missing && rule->scope && i < p->timeline->scope_count; i++) {
		if (!scope_fits(rule, &p->timeline->scopes[i]))
			continue;
		state.scope = &p->timeline->scopes[i];
		add_judgement(out, &state);
	}
	rule_end(&state);
	return begun && !p->failed ? 0 : fail(err, ERR_MEMORY, "explaining: out of memory");
}

static void add_rule(const struct ruleset *set, const struct rule *rule, struct text *out)
{
	const struct rule_parameter *parameters = set->parameters.items;

	text_printf(out, "%s (version %u%s%s)\n", rule->id, rule->version, rule->own ? ", of the rules file" : "", rule->disabled ? ", turned off" : "");
	if (*rule->about)
		text_printf(out, "\nlooks at: %s\n", rule->about);
	for (size_t i = 0; i < rule->let_count; i++)
		text_printf(out, "%s%s = %s\n", i ? "" : "\n", rule->lets[i].name, rule->lets[i].value.text);
	text_printf(out, "\nfires when: %s\n", rule->when.text);
	for (size_t i = 0; i < set->parameters.count; i++)
		if (strstr(rule->when.text, parameters[i].name))
			text_printf(out, "threshold: %s = %g (%s); change it with --parameter %s=VALUE\n", parameters[i].name, parameters[i].value, parameters[i].meaning, parameters[i].name);
	if (*rule->suggestion)
		text_printf(out, "\nwhat to do: %s\n", rule->suggestion);
}

int ruleset_explain(const struct ruleset *set, const char *id, const struct analysis *analysis, struct text *out, struct error *err)
{
	const struct rule *rule = ruleset_find(set, id);
	const char *close;

	if (rule) {
		add_rule(set, rule, out);
		return analysis ? add_trace(set, rule, analysis, out, err) : 0;
	}
	close = ruleset_suggest_rule(set, id);
	fail(err, ERR_RULES, "there is no rule \"%.80s\"", id);
	return close ? fail_hint(err, "did you mean %s?", close) : fail_hint(err, "docs/rules.md lists them, and every report names those behind its findings");
}

bool ruleset_has_rule(const struct ruleset *set, const char *id, const char **suggestion)
{
	*suggestion = ruleset_suggest_rule(set, id);
	return ruleset_find(set, id) != NULL;
}

void ruleset_describe(const struct ruleset *set, char *out, size_t size)
{
	size_t on = 0;

	for (size_t i = 0; i < set->rules.count; i++)
		on += !set->rules.items[i].disabled;
	snprintf(out, size, "%zu rules, %zu of them from the file; %zu thresholds set, %zu built-in rules turned off", on, set->own, set->changed, set->rules.count - on);
}
