/* Rules files: from a YAML tree to the same texts as the rows of rules.def. docs/rules.md describes the format. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyze/rules_values.h"

/* ---- a rule ---- */

static int read_id(const struct rules_file *file, const struct yaml_tree_node *value, void *out)
{
	struct rule_source *rule = out;
	bool dot = false;

	if (rules_text(file, value, &rule->id) < 0)
		return -1;
	for (const char *at = value->text; *at; at++) {
		dot |= *at == '.';
		if (!islower((unsigned char)*at) && !isdigit((unsigned char)*at) && *at != '_' && (*at != '.' || at == value->text || at[1] == '.' || !at[1]))
			return rules_refuse(file, value, "for example acme.tokenizer", "an id is made of a-z, 0-9, _ and dots between");
	}
	if (!dot || strlen(value->text) > 60)
		return rules_refuse(file, value, "for example acme.tokenizer", dot ? "an id has at most 60 characters" : "an id has a dot in it");
	return 0;
}

static int read_version(const struct rules_file *file, const struct yaml_tree_node *value, void *out)
{
	return rules_count(file, value, 1000000, &((struct rule_source *)out)->version);
}

#define TEXT_READER(field) \
	static int read_##field(const struct rules_file *file, const struct yaml_tree_node *value, void *out) { return rules_text(file, value, &((struct rule_source *)out)->field); }
TEXT_READER(title)
TEXT_READER(about)
TEXT_READER(suggestion)
TEXT_READER(scope)
TEXT_READER(when)
TEXT_READER(high)
TEXT_READER(medium)
TEXT_READER(low)
TEXT_READER(confidence)
TEXT_READER(recoverable)
#undef TEXT_READER

static int read_requires(const struct rules_file *file, const struct yaml_tree_node *value, void *out)
{
	return rules_list(file, value, ((struct rule_source *)out)->needs, RULE_NEEDS);
}

static int read_places(const struct rules_file *file, const struct yaml_tree_node *value, void *out)
{
	return rules_list(file, value, ((struct rule_source *)out)->places, RULE_PLACES);
}

static bool is_word(const char *text)
{
	if (!isalpha((unsigned char)*text) && *text != '_')
		return false;
	for (; *text; text++)
		if (!isalnum((unsigned char)*text) && *text != '_')
			return false;
	return true;
}

static int read_let(const struct rules_file *file, const struct yaml_tree_node *value, void *out)
{
	struct rule_source *rule = out;
	size_t count = 0;

	if (value->kind != YAML_MAP)
		return rules_refuse(file, value, NULL, "expected \"name: expression\"");
	for (const struct yaml_tree_node *key = value->child; key; key = key->next->next) {
		if (count == RULE_LETS)
			return rules_refuse(file, key, NULL, "at most %d names here", RULE_LETS);
		if (!is_word(key->text) || strlen(key->text) > 60)
			return rules_refuse(file, key, NULL, "a name is made of letters, digits and _");
		for (size_t i = 0; i < count; i++)
			if (strcmp(rule->let[i].name, key->text) == 0)
				return rules_refuse(file, key, NULL, "\"%s\" stands here twice", key->text);
		rule->let[count].name = key->text;
		if (rules_text(file, key->next, &rule->let[count++].value) < 0)
			return -1;
	}
	return 0;
}

static int read_severity(const struct rules_file *file, const struct yaml_tree_node *value, void *out)
{
	static const struct rules_key keys[] = { { "high", read_high, false }, { "medium", read_medium, false }, { "low", read_low, false } };
	struct rule_source *rule = out;
	struct rule_text *const fields[] = { &rule->high, &rule->medium, &rule->low };

	rule->low.text = "false";
	if (value->kind != YAML_SCALAR)
		return rules_map(file, value, keys, sizeof keys / sizeof *keys, out);
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		if (strcmp(value->text, keys[i].name) != 0)
			continue;
		fields[i]->text = "true";
		return 0;
	}
	return strcmp(value->text, "info") == 0 ? 0 : rules_refuse(file, value, NULL, "expected info, low, medium, high, or {high: expression, …}");
}

static int read_top_stacks(const struct rules_file *file, const struct yaml_tree_node *value, void *out)
{
	return rules_count(file, value, LOCATIONS_LIMIT, &((struct rule_source *)out)->top_stacks);
}

static int read_examples(const struct rules_file *file, const struct yaml_tree_node *value, void *out)
{
	return rules_count(file, value, EXAMPLES_LIMIT, &((struct rule_source *)out)->examples);
}

static int read_metrics(const struct rules_file *file, const struct yaml_tree_node *value, void *out)
{
	return rules_list(file, value, ((struct rule_source *)out)->evidence, RULE_EVIDENCE);
}

static int read_evidence(const struct rules_file *file, const struct yaml_tree_node *value, void *out)
{
	static const struct rules_key keys[] = { { "top_stacks", read_top_stacks, false }, { "examples", read_examples, false }, { "metrics", read_metrics, false } };

	return value->kind == YAML_MAP ? rules_map(file, value, keys, sizeof keys / sizeof *keys, out) : read_metrics(file, value, out);
}

static int check_unique(const struct rules_file *file, const struct rule_source *source)
{
	const struct rule *other = ruleset_find(file->set, source->id.text);

	if (!other)
		return 0;
	return rules_refuse(file, source->id.node, other->own ? NULL : "choose another id; \"disable: [ID]\" turns the built-in rule off", "there is a rule of that id %s", other->own ? "above" : "built in");
}

static int read_rule(const struct rules_file *file, const struct yaml_tree_node *node)
{
	static const struct rules_key keys[] = {
		{ "id", read_id, true }, { "version", read_version, false }, { "title", read_title, true }, { "about", read_about, false }, { "scope", read_scope, false },
		{ "requires", read_requires, false }, { "let", read_let, false }, { "when", read_when, true }, { "severity", read_severity, false }, { "confidence", read_confidence, false },
		{ "recoverable", read_recoverable, false }, { "evidence", read_evidence, false }, { "places", read_places, false }, { "suggestion", read_suggestion, true },
	};
	struct rule_source source = { .version = 1, .top_stacks = PLACES_SHOWN, .examples = EXAMPLES_SHOWN, .places = { { "matched", NULL } } };

	if (rules_map(file, node, keys, sizeof keys / sizeof *keys, &source) < 0 || check_unique(file, &source) < 0 || ruleset_add(file->set, &source, file->err) < 0)
		return -1;
	file->set->own++;
	return 0;
}

/* ---- the file ---- */

static int read_schema(const struct rules_file *file, const struct yaml_tree_node *value, void *out)
{
	if (value->kind == YAML_SCALAR && strcmp(value->text, "inferscope.rules/1") == 0)
		return 0;
	return rules_refuse(file, value, NULL, "expected inferscope.rules/1");
}

static int read_extends(const struct rules_file *file, const struct yaml_tree_node *value, void *out)
{
	if (value->kind != YAML_SCALAR || (strcmp(value->text, "default") != 0 && strcmp(value->text, "none") != 0))
		return rules_refuse(file, value, NULL, "expected default or none");
	for (size_t i = 0; i < file->set->rules.count && strcmp(value->text, "none") == 0; i++)
		file->set->rules.items[i].disabled = !file->set->rules.items[i].own;
	return 0;
}

static int read_set(const struct rules_file *file, const struct yaml_tree_node *value, void *out)
{
	if (value->kind != YAML_MAP)
		return rules_refuse(file, value, "for example {gpu.idle_pct_threshold: 20}", "expected \"threshold: number\"");
	for (const struct yaml_tree_node *key = value->child; key; key = key->next->next) {
		const char *suggestion;
		char hint[128] = "docs/rules.md lists them";

		if (!ruleset_has_parameter(file->set, key->text, &suggestion)) {
			if (suggestion)
				snprintf(hint, sizeof hint, "did you mean %s?", suggestion);
			return rules_refuse(file, key, hint, "no threshold is called \"%.60s\"", key->text);
		}
		if (rules_number(file, key->next, &ruleset_parameter(file->set, key->text, strlen(key->text))->value) < 0)
			return -1;
		file->set->changed++;
	}
	return 0;
}

static int read_disable(const struct rules_file *file, const struct yaml_tree_node *value, void *out)
{
	if (value->kind != YAML_LIST)
		return rules_refuse(file, value, NULL, "a list of rules is expected here");
	for (const struct yaml_tree_node *item = value->child; item; item = item->next) {
		struct rule_text id;
		struct rule *rule;
		char hint[128] = "docs/rules.md lists them";

		if (rules_text(file, item, &id) < 0)
			return -1;
		rule = ruleset_find(file->set, id.text);
		if (!rule) {
			if (ruleset_suggest_rule(file->set, id.text))
				snprintf(hint, sizeof hint, "did you mean %s?", ruleset_suggest_rule(file->set, id.text));
			return rules_refuse(file, item, hint, "there is no rule \"%.60s\"", id.text);
		}
		rule->disabled = true;
	}
	return 0;
}

static int read_rules(const struct rules_file *file, const struct yaml_tree_node *value, void *out)
{
	if (value->kind != YAML_LIST)
		return rules_refuse(file, value, NULL, "a list of rules is expected here");
	for (const struct yaml_tree_node *item = value->child; item; item = item->next)
		if (read_rule(file, item) < 0)
			return -1;
	return 0;
}

static int read_file(const struct rules_file *file)
{
	static const struct rules_key keys[] = { { "schema", read_schema, true }, { "extends", read_extends, false }, { "set", read_set, false }, { "disable", read_disable, false }, { "rules", read_rules, false } };

	if (!file->tree->root)
		return fail(file->err, ERR_RULES, "%s: the file is empty", file->tree->name);
	return rules_map(file, file->tree->root, keys, sizeof keys / sizeof *keys, NULL);
}

int ruleset_parse(const char *text, size_t length, const char *name, struct ruleset **out, struct error *err)
{
	struct ruleset *set = NULL;
	struct yaml_tree tree;
	struct arena arena;
	int result = -1;

	arena_init(&arena);
	if (yaml_tree_parse(text, length, name, &arena, &tree, err) == 0 && ruleset_new(&set, err) == 0) {
		set->tree = &tree;
		result = read_file(&(struct rules_file){ set, &tree, err });
		set->tree = NULL;
	}
	arena_done(&arena);
	if (result < 0) {
		ruleset_free(set);
		return -1;
	}
	*out = set;
	return 0;
}

int ruleset_read(const char *path, struct ruleset **out, struct error *err)
{
	int result = -1, fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat status;
	char *text = NULL;
	ssize_t length = 0, got;

	if (fd < 0 || fstat(fd, &status) < 0) {
		fail(err, file_error_of(errno, ERR_RULES), "%s: %s", path, strerror(errno));
		goto out;
	}
	if (S_ISDIR(status.st_mode)) {
		fail(err, ERR_RULES, "%s: is a folder", path);
		goto out;
	}
	text = malloc(YAML_BYTES_MAX + 1);
	if (!text) {
		fail(err, ERR_MEMORY, "reading %s", path);
		goto out;
	}
	while ((got = read(fd, text + length, (size_t)(YAML_BYTES_MAX + 1 - length))) > 0)
		length += got;
	if (got < 0)
		fail(err, file_error_of(errno, ERR_RULES), "%s: %s", path, strerror(errno));
	else
		result = ruleset_parse(text, (size_t)length, path, out, err);
out:
	free(text);
	if (fd >= 0)
		close(fd);
	return result;
}
