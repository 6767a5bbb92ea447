/* From texts to rules: names looked up, expressions parsed, titles cut into parts. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/rule.h"
#include "analyze/yaml_tree.h"
#include "base/words.h"

static const struct rule_source built_in[] = {
#define RULE(id_, version_, ...) { .id = { id_, NULL }, .version = version_, .top_stacks = PLACES_SHOWN, .examples = EXAMPLES_SHOWN, __VA_ARGS__ },
#include "analyze/rules.def"
#undef RULE
};

static const struct rule_parameter verdict_parameters[] = {
#define PARAMETER(id, name, value, meaning) { name, value, meaning },
#include "analyze/parameters.def"
#undef PARAMETER
};

struct compiler {
	struct ruleset *set;
	struct rule *rule;
	struct names_context names;
	struct vocabulary vocabulary;
	struct error *err;
};

static int out_of_memory(struct error *err)
{
	return fail(err, ERR_MEMORY, "reading the rules: out of memory");
}

/* Of built-in rules only the tests see this. */
static int refuse(const struct compiler *compiler, const struct rule_text *text, size_t offset, const char *hint, const char *message)
{
	uint32_t line, column;

	if (!text->node)
		return fail(compiler->err, ERR_RULES, "rule %s: \"%.300s\", at %zu: %s", compiler->rule->id, text->text, offset, message);
	yaml_tree_place(compiler->set->tree, text->node, offset, &line, &column);
	return yaml_tree_fail(compiler->set->tree, line, column, hint, compiler->err, "%s", message);
}

static int compile_part(struct compiler *compiler, const struct rule_text *text, size_t begin, size_t length, enum value_kind type, struct expression *out)
{
	struct expression_error error;

	if (expression_parse(text->text + begin, length, type, &compiler->vocabulary, &compiler->set->arena, out, &error))
		return 0;
	return error.memory ? out_of_memory(compiler->err) : refuse(compiler, text, begin + error.offset, error.hint, error.message);
}

static int compile(struct compiler *compiler, const struct rule_text *text, enum value_kind type, const char *fallback, struct expression *out)
{
	struct rule_text there = text->text ? *text : (struct rule_text){ fallback, NULL };

	return there.text ? compile_part(compiler, &there, 0, strlen(there.text), type, out) : 0;
}

/* ---- titles: text with {expression} and {expression:.1f} in it ---- */

static int title_literal(struct compiler *compiler, const char *text, size_t length)
{
	struct title_part *part = &compiler->rule->title[compiler->rule->title_count++];

	part->literal = arena_strndup(&compiler->set->arena, text, length);
	return part->literal ? 0 : out_of_memory(compiler->err);
}

/* AT is behind the opening brace; returns where the closing one stands, or NULL. Quotes hide braces and colons, brackets hide colons. */
static const char *value_end(const char *at, const char **colon)
{
	unsigned depth = 0;
	char quote = 0;

	*colon = NULL;
	for (; *at; at++) {
		if (quote)
			quote = *at == quote ? 0 : quote;
		else if (*at == '\'' || *at == '"')
			quote = *at;
		else if (*at == '}')
			return at;
		else if (*at == '(')
			depth++;
		else if (*at == ')')
			depth -= depth > 0;
		else if (*at == ':' && !depth && !*colon)
			*colon = at;
	}
	return NULL;
}

static int title_value(struct compiler *compiler, const struct rule_text *title, const char *begin, const char **out)
{
	struct title_part *part = &compiler->rule->title[compiler->rule->title_count++];
	const char *colon, *end = value_end(begin, &colon);

	if (!end)
		return refuse(compiler, title, (size_t)(begin - title->text) - 1, NULL, "this brace is never closed");
	*out = end + 1;
	part->has_value = true;
	part->decimals = UINT8_MAX;
	if (colon) {
		if (end - colon != 4 || colon[1] != '.' || colon[2] < '0' || colon[2] > '6' || colon[3] != 'f')
			return refuse(compiler, title, (size_t)(colon - title->text), NULL, "after the colon stands .0f to .6f");
		part->decimals = (uint8_t)(colon[2] - '0');
	}
	return compile_part(compiler, title, (size_t)(begin - title->text), (size_t)((colon ? colon : end) - begin), VALUE_UNKNOWN, &part->value);
}

static int compile_title(struct compiler *compiler, const struct rule_text *title)
{
	const char *at = title->text;

	while (*at) {
		const char *brace = strchr(at, '{');
		int result;

		if (compiler->rule->title_count + 2 > TITLE_PARTS)
			return refuse(compiler, title, (size_t)(at - title->text), NULL, "too many values in a title");
		result = title_literal(compiler, at, brace ? (size_t)(brace - at) : strlen(at));
		if (result == 0 && brace)
			result = title_value(compiler, title, brace + 1, &at);
		if (result < 0 || !brace)
			return result;
	}
	return 0;
}

/* ---- lists of names ---- */

static int compile_needs(struct compiler *compiler, const struct rule_source *source)
{
	for (size_t i = 0; i < RULE_NEEDS && source->needs[i].text; i++) {
		uint32_t bit;
		char known[160] = "there are:";

		for (unsigned n = 0; need_name(n) && strlen(known) < 140; n++)
			snprintf(known + strlen(known), sizeof known - strlen(known), " %s", need_name(n));
		if (!need_find(source->needs[i].text, &bit))
			return refuse(compiler, &source->needs[i], 0, known, "no such kind of data");
		compiler->rule->needs |= bit;
	}
	return 0;
}

static int compile_evidence(struct compiler *compiler, const struct rule_source *source)
{
	struct rule *rule = compiler->rule;
	const struct vocabulary *vocabulary = &compiler->vocabulary;

	for (; rule->evidence_count < RULE_EVIDENCE && source->evidence[rule->evidence_count].text; rule->evidence_count++) {
		const struct rule_text *text = &source->evidence[rule->evidence_count];
		struct symbol *symbol = &rule->evidence[rule->evidence_count];
		char hint[160] = "";

		if (vocabulary->symbol(vocabulary->context, text->text, strlen(text->text), symbol) && symbol->type == VALUE_NUMBER)
			continue;
		if (vocabulary->suggest(vocabulary->context, text->text, strlen(text->text)))
			snprintf(hint, sizeof hint, "did you mean %s?", vocabulary->suggest(vocabulary->context, text->text, strlen(text->text)));
		return refuse(compiler, text, 0, hint, "no number is called so");
	}
	return 0;
}

static int compile_places(struct compiler *compiler, const struct rule_source *source)
{
	struct rule *rule = compiler->rule;

	for (; rule->place_count < RULE_PLACES && source->places[rule->place_count].text; rule->place_count++) {
		rule->places[rule->place_count] = place_find(source->places[rule->place_count].text);
		if (!rule->places[rule->place_count])
			return refuse(compiler, &source->places[rule->place_count], 0, "docs/rules.md lists them", "no such places");
	}
	return 0;
}

/* Each sees those before it. */
static int compile_lets(struct compiler *compiler, const struct rule_source *source)
{
	struct rule *rule = compiler->rule;

	for (size_t i = 0; i < RULE_LETS && source->let[i].name; i++) {
		rule->lets[i].name = arena_strndup(&compiler->set->arena, source->let[i].name, strlen(source->let[i].name));
		if (!rule->lets[i].name)
			return out_of_memory(compiler->err);
		if (compile(compiler, &source->let[i].value, VALUE_UNKNOWN, NULL, &rule->lets[i].value) < 0)
			return -1;
		rule->let_count++;
	}
	return 0;
}

static int keep(struct compiler *compiler, const struct rule_text *from, const char **out)
{
	const char *text = from->text ? from->text : "";

	*out = arena_strndup(&compiler->set->arena, text, strlen(text));
	return *out ? 0 : out_of_memory(compiler->err);
}

static int compile_rule(struct compiler *compiler, const struct rule_source *source)
{
	struct rule *rule = compiler->rule;

	if (keep(compiler, &source->id, &rule->id) < 0 || keep(compiler, &source->about, &rule->about) < 0 || keep(compiler, &source->suggestion, &rule->suggestion) < 0)
		return -1;
	if (source->scope.text && keep(compiler, &source->scope, &rule->scope) < 0)
		return -1;
	if (compile_needs(compiler, source) < 0 || compile_lets(compiler, source) < 0 || compile(compiler, &source->when, VALUE_TRUTH, "false", &rule->when) < 0)
		return -1;
	if (compile(compiler, &source->high, VALUE_TRUTH, "false", &rule->severity[0]) < 0 || compile(compiler, &source->medium, VALUE_TRUTH, "false", &rule->severity[1]) < 0 ||
	    compile(compiler, &source->low, VALUE_TRUTH, "true", &rule->severity[2]) < 0)
		return -1;
	if (compile(compiler, &source->confidence, VALUE_NUMBER, "0.7", &rule->confidence) < 0 || compile(compiler, &source->recoverable, VALUE_NUMBER, "0", &rule->recoverable) < 0)
		return -1;
	return compile_title(compiler, &source->title) < 0 || compile_evidence(compiler, source) < 0 || compile_places(compiler, source) < 0 ? -1 : 0;
}

static void rule_done(struct rule *rule)
{
	for (size_t i = 0; i < RULE_LETS; i++)
		expression_done(&rule->lets[i].value);
	for (size_t i = 0; i < TITLE_PARTS; i++)
		expression_done(&rule->title[i].value);
	for (size_t i = 0; i < 3; i++)
		expression_done(&rule->severity[i]);
	expression_done(&rule->when);
	expression_done(&rule->confidence);
	expression_done(&rule->recoverable);
}

static int add_parameters(struct ruleset *set, const struct rule_source *source, struct error *err)
{
	for (size_t i = 0; i < RULE_PARAMETERS && source->parameters[i].name; i++) {
		struct rule_parameter *parameter = list_add(&set->parameters, SIZE_MAX);

		if (!parameter)
			return out_of_memory(err);
		*parameter = (struct rule_parameter){ source->parameters[i].name, source->parameters[i].value, source->parameters[i].meaning };
	}
	return 0;
}

int ruleset_add(struct ruleset *set, const struct rule_source *source, struct error *err)
{
	struct compiler compiler = { .set = set, .err = err };

	compiler.rule = list_add(&set->rules, RULES_LIMIT);
	if (!compiler.rule)
		return set->rules.count < RULES_LIMIT ? out_of_memory(err) : fail(err, ERR_RULES, "there are more than %d rules", RULES_LIMIT);
	*compiler.rule = (struct rule){ .id = source->id.text, .version = source->version, .top_stacks = source->top_stacks, .examples = source->examples, .frees = source->frees,
		.about_data = source->about_data, .general = source->general, .own = set->tree != NULL };
	compiler.names = (struct names_context){ set, compiler.rule };
	compiler.vocabulary = rule_vocabulary(&compiler.names);
	return compile_rule(&compiler, source);
}

/* Rules may name each other's thresholds: all of those come first. */
static int add_built_in(struct ruleset *set, struct error *err)
{
	const size_t count = sizeof built_in / sizeof *built_in;

	for (size_t i = 0; i < PARAMETER_COUNT; i++) {
		struct rule_parameter *parameter = list_add(&set->parameters, SIZE_MAX);

		if (!parameter)
			return out_of_memory(err);
		*parameter = verdict_parameters[i];
	}
	for (size_t i = 0; i < count; i++)
		if (add_parameters(set, &built_in[i], err) < 0)
			return -1;
	for (size_t i = 0; i < count; i++)
		if (ruleset_add(set, &built_in[i], err) < 0)
			return -1;
	return 0;
}

int ruleset_new(struct ruleset **out, struct error *err)
{
	struct ruleset *set = calloc(1, sizeof *set);

	if (!set)
		return out_of_memory(err);
	arena_init(&set->arena);
	if (add_built_in(set, err) < 0) {
		ruleset_free(set);
		return -1;
	}
	*out = set;
	return 0;
}

void ruleset_free(struct ruleset *set)
{
	if (!set)
		return;
	for (size_t i = 0; i < set->rules.count; i++)
		rule_done(&set->rules.items[i]);
	list_done(&set->rules);
	list_done(&set->parameters);
	arena_done(&set->arena);
	free(set);
}

struct rule *ruleset_find(const struct ruleset *set, const char *id)
{
	for (size_t i = 0; i < set->rules.count; i++)
		if (strcmp(set->rules.items[i].id, id) == 0)
			return &set->rules.items[i];
	return NULL;
}

struct rule_parameter *ruleset_parameter(const struct ruleset *set, const char *name, size_t length)
{
	for (size_t i = 0; i < set->parameters.count; i++)
		if (strlen(set->parameters.items[i].name) == length && memcmp(set->parameters.items[i].name, name, length) == 0)
			return &set->parameters.items[i];
	return NULL;
}

const char *ruleset_suggest_rule(const struct ruleset *set, const char *id)
{
	const char *best = NULL;
	unsigned closest = 99;

	for (size_t i = 0; i < set->rules.count; i++)
		if (words_nearer(id, strlen(id), set->rules.items[i].id, &closest))
			best = set->rules.items[i].id;
	return best;
}

bool ruleset_has_parameter(const struct ruleset *set, const char *name, const char **suggestion)
{
	unsigned closest = 99;

	*suggestion = NULL;
	for (size_t i = 0; i < set->parameters.count; i++)
		if (words_nearer(name, strlen(name), set->parameters.items[i].name, &closest))
			*suggestion = set->parameters.items[i].name;
	return ruleset_parameter(set, name, strlen(name)) != NULL;
}

size_t rule_infos(struct rule_info *out, size_t limit)
{
	size_t count = sizeof built_in / sizeof *built_in;

	for (size_t i = 0; i < count && i < limit; i++)
		out[i] = (struct rule_info){ built_in[i].id.text, built_in[i].version, built_in[i].title.text, built_in[i].about.text, built_in[i].parameters[0].value, built_in[i].parameters[0].name };
	return count;
}
