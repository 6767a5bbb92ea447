/*
 * Values of a rules file: texts, numbers, lists, and maps whose keys are a table. What does not fit is refused with its line and column: -1, and the file's err says why.
 * For rules_file.c alone.
 */
#ifndef INFERSCOPE_ANALYZE_RULES_VALUES_H
#define INFERSCOPE_ANALYZE_RULES_VALUES_H

#include "analyze/rule.h"
#include "analyze/yaml_tree.h"

struct rules_file {
	struct ruleset *set;
	const struct yaml_tree *tree;
	struct error *err;
};

/* -1, always. HINT: what to write instead, or NULL. */
int rules_refuse(const struct rules_file *file, const struct yaml_tree_node *node, const char *hint, const char *format, ...) __attribute__((format(printf, 4, 5)));

/* One value, which nobody could read as true, false or nothing. OUT points into the tree. */
int rules_text(const struct rules_file *file, const struct yaml_tree_node *node, struct rule_text *out);
int rules_number(const struct rules_file *file, const struct yaml_tree_node *node, double *out);
/* A whole number from 0 to MOST. */
int rules_count(const struct rules_file *file, const struct yaml_tree_node *node, uint32_t most, uint32_t *out);
/* One scalar, or a list of at most LIMIT. */
int rules_list(const struct rules_file *file, const struct yaml_tree_node *node, struct rule_text *out, size_t limit);

typedef int (*rules_key_reader)(const struct rules_file *file, const struct yaml_tree_node *value, void *out);
struct rules_key { const char *name; rules_key_reader read; bool needed; };
/* Each key once, those that are needed at least; OUT goes to their readers. */
int rules_map(const struct rules_file *file, const struct yaml_tree_node *node, const struct rules_key *keys, size_t count, void *out);

#endif
