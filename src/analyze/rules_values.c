#include "analyze/rules_values.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_BYTES_MAX = EXPRESSION_BYTES_MAX };

int rules_refuse(const struct rules_file *file, const struct yaml_tree_node *node, const char *hint, const char *format, ...)
{
	char message[256];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(message, sizeof message, format, arguments);
	va_end(arguments);
	return yaml_tree_fail(file->tree, node->line, node->column, hint, file->err, "%s", message);
}

int rules_text(const struct rules_file *file, const struct yaml_tree_node *node, struct rule_text *out)
{
	static const char *const implicit[] = { "", "~", "null", "Null", "NULL", "yes", "Yes", "YES", "no", "No", "NO", "on", "On", "ON", "off", "Off", "OFF" };

	if (node->kind != YAML_SCALAR)
		return rules_refuse(file, node, NULL, "one value is expected here");
	if (strlen(node->text) > TEXT_BYTES_MAX)
		return rules_refuse(file, node, NULL, "a value has at most %d bytes", TEXT_BYTES_MAX);
	for (size_t i = 0; i < sizeof implicit / sizeof *implicit && !node->quoted; i++)
		if (strcmp(node->text, implicit[i]) == 0)
			return rules_refuse(file, node, "write true, false, or the text in quotes", *node->text ? "\"%s\" may mean two things" : "a value is missing%s", node->text);
	*out = (struct rule_text){ node->text, node };
	return 0;
}

int rules_number(const struct rules_file *file, const struct yaml_tree_node *node, double *out)
{
	char *end;

	if (node->kind == YAML_SCALAR) {
		double value = strtod(node->text, &end);

		if (*node->text && !*end && isfinite(value) && !isspace((unsigned char)*node->text)) {
			*out = value;
			return 0;
		}
	}
	return rules_refuse(file, node, NULL, "expected a number");
}

int rules_count(const struct rules_file *file, const struct yaml_tree_node *node, uint32_t most, uint32_t *out)
{
	double value;

	if (rules_number(file, node, &value) < 0)
		return -1;
	/* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): rules_number has set it */
	if (value < 0 || value > most || value != floor(value))
		return rules_refuse(file, node, NULL, "expected a whole number from 0 to %u", most);
	*out = (uint32_t)value;
	return 0;
}

int rules_list(const struct rules_file *file, const struct yaml_tree_node *node, struct rule_text *out, size_t limit)
{
	size_t count = 0;

	if (node->kind == YAML_SCALAR)
		return rules_text(file, node, out);
	if (node->kind != YAML_LIST)
		return rules_refuse(file, node, NULL, "a list is expected here");
	for (const struct yaml_tree_node *item = node->child; item; item = item->next) {
		if (count == limit)
			return rules_refuse(file, item, NULL, "at most %zu here", limit);
		if (rules_text(file, item, &out[count++]) < 0)
			return -1;
	}
	return 0;
}

/* ---- maps ---- */

static const char *key_suggest(const struct rules_key *keys, size_t count, char *out, size_t size)
{
	int length = snprintf(out, size, "there are:");

	for (size_t i = 0; i < count && length > 0 && (size_t)length < size; i++)
		length += snprintf(out + length, size - (size_t)length, " %s", keys[i].name);
	return out;
}

int rules_map(const struct rules_file *file, const struct yaml_tree_node *node, const struct rules_key *keys, size_t count, void *out)
{
	uint32_t seen = 0;
	char hint[256];

	if (node->kind != YAML_MAP)
		return rules_refuse(file, node, key_suggest(keys, count, hint, sizeof hint), "expected \"key: value\"");
	for (const struct yaml_tree_node *key = node->child; key; key = key->next->next) {
		size_t i = 0;

		while (i < count && strcmp(keys[i].name, key->text) != 0)
			i++;
		if (i == count)
			return rules_refuse(file, key, key_suggest(keys, count, hint, sizeof hint), "no such key: \"%.60s\"", key->text);
		if (seen >> i & 1)
			return rules_refuse(file, key, NULL, "\"%s\" stands here twice", keys[i].name);
		seen |= 1u << i;
		if (keys[i].read(file, key->next, out) < 0)
			return -1;
	}
	for (size_t i = 0; i < count; i++)
		if (keys[i].needed && !(seen >> i & 1))
			return rules_refuse(file, node, NULL, "\"%s\" is missing", keys[i].name);
	return 0;
}
