/*
 * The calling context tree while it grows: a node for each distinct stack of each thread, found by (parent, function). What is too
 * deep or too much is counted flat under the thread's "(other)", so that functions keep their own times and memory stays bounded.
 */
#include "timeline/private.h"

static uint64_t node_hash(uint32_t parent, uint32_t function)
{
	return mix64((uint64_t)parent << 32 | function);
}

static bool rehash(struct timeline_private *p, size_t size)
{
	uint32_t *table = calloc(size, sizeof *table);

	if (!table)
		return false;
	for (size_t i = 1; i < p->nodes.count; i++) {
		const struct node *node = &p->nodes.items[i];
		size_t slot = node_hash(node->parent, node->function) & (size - 1);

		if (!node->parent) /* roots of threads are found by their thread */
			continue;
		while (table[slot])
			slot = (slot + 1) & (size - 1);
		table[slot] = (uint32_t)i + 1;
	}
	free(p->node_table);
	p->node_table = table;
	p->node_table_size = size;
	return true;
}

bool tree_begin(struct timeline_private *p)
{
	struct node *root = list_add_or_fail(&p->nodes, NODES_LIMIT, &p->failed);

	if (!root || !rehash(p, 4096))
		return false;
	root->parent = root->function = root->thread = NONE;
	root->last_child = NONE;
	return true;
}

static uint32_t add_node(struct timeline_private *p, uint32_t parent, uint32_t function, uint32_t thread)
{
	struct node *node = list_add_or_fail(&p->nodes, 2 * (size_t)NODES_LIMIT, &p->failed);

	if (!node) {
		p->failed = true;
		return 0;
	}
	node->parent = parent;
	node->function = function;
	node->thread = thread;
	node->depth = parent ? p->nodes.items[parent].depth + 1 : 0;
	node->last_child = NONE;
	return (uint32_t)p->nodes.count - 1;
}

uint32_t tree_root(struct timeline_private *p, uint32_t thread)
{
	struct thread_build *owner = &p->threads.items[thread];

	if (owner->root == NONE)
		owner->root = add_node(p, 0, NONE, thread);
	return owner->root;
}

static uint32_t find_or_add(struct timeline_private *p, uint32_t parent, uint32_t function, uint32_t thread, size_t limit)
{
	size_t slot;
	uint32_t found;

	if (p->nodes.count * 2 >= p->node_table_size && !rehash(p, p->node_table_size * 2)) {
		p->failed = true;
		return 0;
	}
	slot = node_hash(parent, function) & (p->node_table_size - 1);
	while ((found = p->node_table[slot])) {
		const struct node *node = &p->nodes.items[found - 1];

		if (node->parent == parent && node->function == function)
			return found - 1;
		slot = (slot + 1) & (p->node_table_size - 1);
	}
	if (p->nodes.count >= limit)
		return NONE;
	found = add_node(p, parent, function, thread);
	p->node_table[slot] = found + 1;
	return found;
}

/* Flat under "(other)": at most one node for each function of a thread. */
static uint32_t other_child(struct timeline_private *p, uint32_t function, uint32_t thread)
{
	struct thread_build *owner = &p->threads.items[thread];
	uint32_t node;

	if (owner->other == NONE)
		owner->other = find_or_add(p, tree_root(p, thread), NAME_OTHER, thread, 2 * (size_t)NODES_LIMIT);
	p->timeline.quality.other_calls++;
	if (function == NAME_OTHER || owner->other == NONE)
		return owner->other == NONE ? tree_root(p, thread) : owner->other;
	node = find_or_add(p, owner->other, function, thread, 2 * (size_t)NODES_LIMIT - THREADS_LIMIT);
	return node == NONE ? owner->other : node;
}

uint32_t tree_child(struct timeline_private *p, uint32_t parent, uint32_t function, uint32_t thread)
{
	uint32_t last = p->nodes.items[parent].last_child, node;

	if (last != NONE && p->nodes.items[last].function == function)
		return last;
	/* A call from below "(other)" stays there: its parent's true place is not known to the tree. */
	if (p->nodes.items[parent].depth >= TREE_DEPTH_LIMIT || (p->threads.items[thread].other != NONE && (parent == p->threads.items[thread].other || p->nodes.items[parent].parent == p->threads.items[thread].other)))
		return other_child(p, function, thread);
	node = find_or_add(p, parent, function, thread, NODES_LIMIT);
	if (node == NONE)
		return other_child(p, function, thread);
	p->nodes.items[parent].last_child = node;
	return node;
}
