/* Where things stand in a YAML file, and how that is told. */
#include "analyze/yaml_tree.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *line_at(const struct yaml_tree *tree, uint32_t line, const char **stop)
{
	const char *at = tree->source, *end = tree->source + tree->length, *newline;

	for (uint32_t i = 1; i < line && at < end; i++) {
		newline = memchr(at, '\n', (size_t)(end - at));
		at = newline ? newline + 1 : end;
	}
	newline = memchr(at, '\n', (size_t)(end - at));
	*stop = newline ? newline : end;
	return at;
}

/* The line, or the part of a long one around COLUMN. Columns count characters: bytes that go on with one have none of their own. */
static void add_place(struct error *err, const struct yaml_tree *tree, uint32_t line, uint32_t column)
{
	enum { BEFORE = 60, SHOWN = 100 };
	const char *stop, *at = line_at(tree, line, &stop);
	uint32_t first = column > BEFORE ? column - BEFORE : 1;

	for (uint32_t n = 1; at < stop && n < first; n++)
		for (at++; at < stop && ((unsigned char)*at & 0xc0) == 0x80; at++)
			;
	fail_place(err, at, stop - at > SHOWN ? SHOWN : (size_t)(stop - at), column - first);
}

int yaml_tree_fail(const struct yaml_tree *tree, uint32_t line, uint32_t column, const char *hint, struct error *err, const char *format, ...)
{
	char message[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(message, sizeof message, format, arguments);
	va_end(arguments);
	fail(err, ERR_RULES, "%.200s:%u:%u: %s", tree->name, line, column, message);
	if (err)
		add_place(err, tree, line, column);
	return hint && *hint ? fail_hint(err, "%s", hint) : -1;
}

/* Bytes of a text that begin a character. */
static uint32_t characters(const char *text, size_t bytes)
{
	uint32_t count = 0;

	for (size_t i = 0; i < bytes && text[i]; i++)
		count += ((unsigned char)text[i] & 0xc0) != 0x80;
	return count;
}

static uint32_t indentation(const struct yaml_tree *tree, uint32_t line)
{
	const char *stop, *at = line_at(tree, line, &stop);
	uint32_t spaces = 0;

	for (; at < stop && *at == ' '; at++)
		spaces++;
	return spaces;
}

void yaml_tree_place(const struct yaml_tree *tree, const struct yaml_tree_node *node, size_t offset, uint32_t *line, uint32_t *column)
{
	const char *begin = node->text;

	*line = node->line;
	*column = node->column;
	if (node->exact)
		*column += characters(node->text, offset);
	if (!node->literal)
		return;
	*line += 1;
	for (size_t i = 0; i < offset && node->text[i]; i++) {
		if (node->text[i] != '\n')
			continue;
		*line += 1;
		begin = node->text + i + 1;
	}
	*column = indentation(tree, *line) + 1 + characters(begin, (size_t)(node->text + offset - begin));
}
