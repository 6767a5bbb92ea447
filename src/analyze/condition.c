/* A condition alone: the built-in rules are turned off, and one is added that is true where the condition is. */
#include <string.h>

#include "analyze/rule.h"

static int condition_check(struct ruleset *set, const char *text, struct error *err)
{
	const struct rule rule = { .scope = NULL };
	struct names_context names = { set, &rule };
	const struct vocabulary vocabulary = rule_vocabulary(&names);
	struct expression_error error;
	struct expression parsed;
	bool good = expression_parse(text, strlen(text), VALUE_TRUTH, &vocabulary, &set->arena, &parsed, &error);

	if (good) {
		expression_done(&parsed);
		return 0;
	}
	if (error.memory)
		return fail(err, ERR_MEMORY, "reading a condition: out of memory");
	fail(err, ERR_RULES, "the condition \"%.200s\", at its character %zu: %s", text, error.offset + 1, error.message);
	return fail_hint(err, "%s", *error.hint ? error.hint : "docs/rules.md has the language, `inferscope analyze --list-metrics` the names");
}

int ruleset_condition(const char *text, struct ruleset **out, struct error *err)
{
	const struct rule_source source = { .id = { "condition", NULL }, .version = 1, .title = { "the condition holds", NULL }, .when = { text, NULL }, .about_data = true };
	struct ruleset *set = NULL;

	if (ruleset_new(&set, err) < 0)
		return -1;
	for (size_t i = 0; i < set->rules.count; i++)
		set->rules.items[i].disabled = true;
	if (condition_check(set, text, err) < 0 || ruleset_add(set, &source, err) < 0) {
		ruleset_free(set);
		return -1;
	}
	set->rules.items[set->rules.count - 1].own = true; /* what it compares is shown */
	*out = set;
	return 0;
}
