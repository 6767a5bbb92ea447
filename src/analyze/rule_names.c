/* What expressions may name: metrics, parameters, what the rule itself computed, and the sets that can be added up. */
#include <stdio.h>
#include <string.h>

#include "analyze/rule.h"
#include "analyze/sets.h"
#include "base/words.h"

static bool is(const char *name, size_t length, const char *word)
{
	return strncmp(word, name, length) == 0 && !word[length];
}

static bool metric_find(const char *name, size_t length, struct symbol *out)
{
	for (uint32_t i = 0; i < METRIC_COUNT; i++) {
		if (!is(name, length, metric_name((enum metric_index)i)))
			continue;
		*out = (struct symbol){ SYMBOL_METRIC, i, VALUE_NUMBER };
		return true;
	}
	return false;
}

static bool symbol_find(void *context, const char *name, size_t length, struct symbol *out)
{
	static const struct { const char *name; uint32_t sort; } texts[] = { { "scope", SYMBOL_SCOPE }, { "verdict.class", SYMBOL_CLASS }, { "verdict.reason", SYMBOL_REASON },
		{ "python.hottest_function", SYMBOL_HOTTEST } };
	const struct names_context *names = context;
	const struct rule_parameter *parameter;

	if (length > 7 && memcmp(name, "metric.", 7) == 0) {
		name += 7;
		length -= 7;
	}
	for (uint32_t i = 0; i < names->rule->let_count; i++) {
		if (!is(name, length, names->rule->lets[i].name))
			continue;
		*out = (struct symbol){ SYMBOL_LET, i, (enum value_kind)names->rule->lets[i].value.nodes[names->rule->lets[i].value.root].type };
		return true;
	}
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		if (!is(name, length, texts[i].name) || (texts[i].sort == SYMBOL_SCOPE && !names->rule->scope))
			continue;
		*out = (struct symbol){ texts[i].sort, 0, VALUE_TEXT };
		return true;
	}
	if (metric_find(name, length, out))
		return true;
	parameter = ruleset_parameter(names->set, name, length);
	if (parameter)
		*out = (struct symbol){ SYMBOL_PARAMETER, (uint32_t)(parameter - names->set->parameters.items), VALUE_NUMBER };
	return parameter != NULL;
}

static const char *symbol_suggest(void *context, const char *name, size_t length)
{
	const struct names_context *names = context;
	const char *best = NULL;
	unsigned closest = 99;

	for (uint32_t i = 0; i < METRIC_COUNT; i++)
		if (words_nearer(name, length, metric_name((enum metric_index)i), &closest))
			best = metric_name((enum metric_index)i);
	for (size_t i = 0; i < names->set->parameters.count; i++)
		if (words_nearer(name, length, names->set->parameters.items[i].name, &closest))
			best = names->set->parameters.items[i].name;
	for (uint32_t i = 0; i < names->rule->let_count; i++)
		if (words_nearer(name, length, names->rule->lets[i].name, &closest))
			best = names->rule->lets[i].name;
	return best;
}

static bool set_find(void *context, const char *name, size_t length, struct symbol *out)
{
	size_t count;
	const struct set_info *sets = set_infos(&count);

	for (uint32_t i = 0; i < count; i++) {
		if (!is(name, length, sets[i].name))
			continue;
		*out = (struct symbol){ 0, i, VALUE_UNKNOWN };
		return true;
	}
	return false;
}

static const char *set_combines(void *context, enum expression_operation operation, const struct symbol *set, const char *name)
{
	const struct names_context *names = context;
	size_t count;
	const struct set_info *info = &set_infos(&count)[set->index];

	if (!(info->operations & SET_OPERATION(operation)))
		return "this cannot be asked of that: docs/rules.md says which goes with which";
	if (name)
		return info->family == SET_SCOPE ? NULL : "only a scope has a name behind it: scope:NAME";
	return info->family == SET_SCOPE && !names->rule->scope ? "the rule has no scope: scope:NAME here, or a line \"scope: NAME\", gives it one" : NULL;
}

static const char *set_narrows(void *context, enum expression_operation operation, const struct symbol *set, bool filtered, bool within)
{
	size_t count;
	const struct set_info *info = &set_infos(&count)[set->index];

	if (filtered && (info->family == SET_SCOPE || info->family == SET_GAPS))
		return "this takes no filters";
	if (within && (info->family != SET_FUNCTIONS || (operation != OP_TIME && operation != OP_COUNT)))
		return "within=scope is known of time() and count() of functions";
	return NULL;
}

struct vocabulary rule_vocabulary(struct names_context *context)
{
	return (struct vocabulary){ context, symbol_find, set_find, set_combines, symbol_suggest, set_narrows };
}

const char *symbol_name(const struct ruleset *set, const struct rule *rule, const struct symbol *symbol)
{
	switch (symbol->sort) {
	case SYMBOL_METRIC: return metric_name((enum metric_index)symbol->index);
	case SYMBOL_PARAMETER: return set->parameters.items[symbol->index].name;
	case SYMBOL_LET: return rule->lets[symbol->index].name;
	case SYMBOL_SCOPE: return "scope";
	case SYMBOL_CLASS: return "verdict.class";
	case SYMBOL_REASON: return "verdict.reason";
	default: return "python.hottest_function";
	}
}

/* Of what a rule computes itself, the name tells. */
static const char *unit_of_name(const char *name)
{
	static const char *const units[] = { "ns", "us", "ms", "bytes", "count", "cores", "pct", "per_second" };
	size_t length = strlen(name);

	for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
		size_t end = strlen(units[i]);

		if (length > end && name[length - end - 1] == '_' && strcmp(name + length - end, units[i]) == 0)
			return units[i];
	}
	return "";
}

const char *symbol_unit(const struct rule *rule, const struct symbol *symbol)
{
	return symbol->sort == SYMBOL_METRIC ? metric_unit((enum metric_index)symbol->index) : symbol->sort == SYMBOL_LET ? unit_of_name(rule->lets[symbol->index].name) : "";
}
