/* The call trees of two captures as one, threads together: what each stack costs before and after, for a differential flame graph. */
#ifndef INFERSCOPE_ANALYZE_DIFF_TREE_H
#define INFERSCOPE_ANALYZE_DIFF_TREE_H

#include "analyze/diff.h"

/* The same function on both sides has the same name and file; LINE is that of the side where it was met first. */
struct diff_function { const char *name, *file; uint32_t line; enum function_kind kind; };
/* CPU time of its own, ns per unit of the difference. */
struct diff_node { uint32_t parent, function; double before_ns, after_ns; };

struct diff_tree {
	size_t function_count, node_count;
	const struct diff_function *functions;
	const struct diff_node *nodes; /* parents before children; 0 is the root, and has no function */
	struct diff_tree_private *private_;
};

/* Names are the timelines', which must outlive it. The caller frees *out. */
int diff_tree_build(const struct diff *diff, const struct timeline *before, const struct timeline *after, struct diff_tree **out, struct error *err);
void diff_tree_free(struct diff_tree *tree);

#endif
