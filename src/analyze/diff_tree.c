#include "analyze/diff_tree.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/list.h"
#include "base/map.h"
#include "base/text.h"

enum { NODES_LIMIT = 1 << 20, FUNCTIONS_LIMIT = 1 << 20 };

struct diff_tree_private {
	struct diff_tree tree;
	struct strings *keys;       /* name and file of a function; its number is the function's */
	struct map children;        /* parent and function to the node */
	LIST(struct diff_function) functions;
	LIST(struct diff_node) nodes;
	bool failed;
};

static uint32_t function_of(struct diff_tree_private *p, const struct function *function)
{
	struct diff_function *added;
	struct text key;
	uint32_t id;

	text_init(&key);
	text_add(&key, function->name, strlen(function->name) + 1);
	text_add_string(&key, function->file);
	id = key.failed ? UINT32_MAX : strings_add(p->keys, key.data, key.length);
	text_done(&key);
	while (id != UINT32_MAX && id >= p->functions.count) {
		added = list_add(&p->functions, FUNCTIONS_LIMIT);
		if (!added)
			id = UINT32_MAX;
		else
			*added = (struct diff_function){ function->name, function->file, function->line, function->kind };
	}
	p->failed |= id == UINT32_MAX;
	return id;
}

/* Beyond the limit a stack counts as its caller's. */
static uint32_t child_of(struct diff_tree_private *p, uint32_t parent, uint32_t function)
{
	uint64_t key = (uint64_t)parent << 32 | function;
	uint32_t node = map_get(&p->children, key);
	struct diff_node *added;

	if (node != MAP_ABSENT)
		return node;
	added = list_add_or_fail(&p->nodes, NODES_LIMIT, &p->failed);
	if (!added)
		return parent;
	*added = (struct diff_node){ .parent = parent, .function = function };
	node = (uint32_t)p->nodes.count - 1;
	p->failed |= !map_put(&p->children, key, node);
	return node;
}

static bool add_side(struct diff_tree_private *p, const struct timeline *timeline, double units, bool after)
{
	uint32_t *functions = calloc(timeline->function_count + 1, sizeof *functions), *merged = calloc(timeline->node_count + 1, sizeof *merged);

	for (size_t i = 0; functions && i < timeline->function_count && !p->failed; i++)
		functions[i] = function_of(p, &timeline->functions[i]);
	for (size_t i = 1; functions && merged && i < timeline->node_count && !p->failed; i++) {
		const struct tree_node *node = &timeline->nodes[i];
		struct diff_node *at;

		if (node->parent >= i || node->function >= timeline->function_count)
			continue;
		merged[i] = child_of(p, merged[node->parent], functions[node->function]);
		at = &p->nodes.items[merged[i]];
		*(after ? &at->after_ns : &at->before_ns) += (double)node->cpu_self_ns / (units > 0 ? units : 1);
	}
	p->failed |= !functions || !merged;
	free(functions);
	free(merged);
	return !p->failed;
}

/* The root, and the function whose key is empty: number 0 in its table. */
static bool begin(struct diff_tree_private *p)
{
	struct diff_node *root = list_add(&p->nodes, NODES_LIMIT);
	struct diff_function *nameless = list_add(&p->functions, FUNCTIONS_LIMIT);

	p->keys = strings_new();
	if (!root || !nameless || !p->keys)
		return false;
	*root = (struct diff_node){ .parent = UINT32_MAX, .function = UINT32_MAX };
	*nameless = (struct diff_function){ .name = "", .file = "" };
	return true;
}

int diff_tree_build(const struct diff *diff, const struct timeline *before, const struct timeline *after, struct diff_tree **out, struct error *err)
{
	struct diff_tree_private *p = calloc(1, sizeof *p);

	if (!p)
		return fail(err, ERR_MEMORY, "comparing two call trees");
	p->tree.private_ = p;
	if (!begin(p) || !add_side(p, before, diff->before_units, false) || !add_side(p, after, diff->after_units, true)) {
		diff_tree_free(&p->tree);
		return fail(err, ERR_MEMORY, "comparing two call trees");
	}
	p->tree.functions = p->functions.items;
	p->tree.function_count = p->functions.count;
	p->tree.nodes = p->nodes.items;
	p->tree.node_count = p->nodes.count;
	*out = &p->tree;
	return 0;
}

void diff_tree_free(struct diff_tree *tree)
{
	struct diff_tree_private *p = tree ? tree->private_ : NULL;

	if (!p)
		return;
	list_done(&p->functions);
	list_done(&p->nodes);
	map_done(&p->children);
	strings_free(p->keys);
	free(p);
}
