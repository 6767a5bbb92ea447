/*
 * A YAML file as a tree of maps, lists and scalars, each with its place. The plain part of YAML alone: anchors, aliases, tags, merges and
 * further documents are refused with line and column; depth, length and number of nodes are bounded.
 */
#ifndef INFERSCOPE_ANALYZE_YAML_TREE_H
#define INFERSCOPE_ANALYZE_YAML_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

enum { YAML_BYTES_MAX = 1 << 20, YAML_DEPTH_MAX = 8, YAML_NODES_MAX = 20000 };

enum yaml_kind { YAML_SCALAR, YAML_LIST, YAML_MAP };

struct yaml_tree_node {
	enum yaml_kind kind;
	const char *text;        /* of a scalar; never holds a NUL */
	bool quoted;
	uint32_t line, column;   /* from 1; of the first character of a scalar's text */
	bool exact, literal;     /* the text stands in one line as it is; or in the lines below, indented */
	struct yaml_tree_node *child, *next; /* maps: key, value, key, value */
};

struct yaml_tree {
	const char *name;   /* of the file, for messages */
	const char *source;
	size_t length;
	struct yaml_tree_node *root; /* NULL of an empty file */
};

/* SOURCE and NAME must outlive the tree; its nodes lie in ARENA. */
int yaml_tree_parse(const char *source, size_t length, const char *name, struct arena *arena, struct yaml_tree *out, struct error *err);
/* Where byte OFFSET of a scalar's text stands in the file. */
void yaml_tree_place(const struct yaml_tree *tree, const struct yaml_tree_node *node, size_t offset, uint32_t *line, uint32_t *column);
/* ERR_RULES "NAME:LINE:COLUMN: …" with that line and the place in it; HINT may be NULL. Returns -1. */
int yaml_tree_fail(const struct yaml_tree *tree, uint32_t line, uint32_t column, const char *hint, struct error *err, const char *format, ...) __attribute__((format(printf, 6, 7)));

#endif
