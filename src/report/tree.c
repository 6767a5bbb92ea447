/*
 * Chooses the lines of the call trees that a page can hold: the heaviest nodes whose parents are also shown. Once with all threads merged
 * (workers do the same things), once by thread.
 */
#include <stdlib.h>
#include <string.h>

#include "report/model.h"

struct pick { uint64_t weight_ns; uint32_t node; };

static int heavier_first(const void *a, const void *b)
{
	const struct pick *x = a, *y = b;

	if (x->weight_ns != y->weight_ns)
		return x->weight_ns < y->weight_ns ? 1 : -1;
	return x->node < y->node ? -1 : x->node > y->node;
}

/* A node as the tree links it, children heaviest first. */
struct branch { uint32_t first, next; uint32_t left_out; uint64_t left_out_ns; bool kept; };

/* Nodes, parents before children, on their way to rows. */
struct forest {
	const struct timeline *timeline;
	const struct tree_node *nodes;
	struct branch *branches;
	uint32_t stack[TREE_DEPTH_MAX + 2];
	struct tree_rows *out;
	double root_ns;
};

static struct tree_row *row_add(struct forest *forest, uint32_t depth, uint64_t total_ns)
{
	struct tree_row *row = &forest->out->rows[forest->out->count++];

	row->depth = depth;
	row->total_ns = total_ns;
	row->pct = forest->root_ns > 0 ? 100.0 * (double)total_ns / forest->root_ns : 0;
	return row;
}

static void row_of_node(struct forest *forest, uint32_t at, uint32_t depth)
{
	const struct tree_node *node = &forest->nodes[at];
	struct tree_row *row = row_add(forest, depth, node->total_ns);

	row->function = node->function < forest->timeline->function_count ? &forest->timeline->functions[node->function] : NULL;
	row->self_ns = node->self_ns;
	row->calls = node->calls;
	for (uint32_t child = forest->branches[at].first; child != UINT32_MAX; child = forest->branches[child].next)
		row->children++;
	row->children += forest->branches[at].left_out > 0;
}

/* Depth first, without recursion: the tree is the target's and may be as deep as its stack. */
static void rows_below(struct forest *forest, uint32_t top)
{
	uint32_t at = top, depth = 1;
	size_t used = 0;

	for (;;) {
		row_of_node(forest, at, depth);
		if (forest->branches[at].first != UINT32_MAX) {
			forest->stack[used++] = at;
			at = forest->branches[at].first;
			depth++;
			continue;
		}
		for (;;) {
			if (forest->branches[at].left_out)
				row_add(forest, depth + 1, forest->branches[at].left_out_ns)->omitted = forest->branches[at].left_out;
			if (at == top)
				return;
			if (forest->branches[at].next != UINT32_MAX)
				break;
			at = forest->stack[--used];
			depth--;
		}
		at = forest->branches[at].next;
	}
}

/* Marks what is kept and links it; the rest is counted at the kept node above it. */
static void choose(struct forest *forest, struct pick *picks, size_t pick_count)
{
	uint32_t kept = 0;

	qsort(picks, pick_count, sizeof *picks, heavier_first);
	forest->branches[0].kept = true;
	for (size_t i = 0; i < pick_count; i++) {
		const struct tree_node *node = &forest->nodes[picks[i].node];
		struct branch *parent = &forest->branches[node->parent];

		/* Depths that rise with each step and end at the limit keep the walk's stack in bounds. */
		if (parent->kept && kept < TREE_ROWS_MAX && node->depth <= TREE_DEPTH_MAX && node->depth > forest->nodes[node->parent].depth && picks[i].weight_ns > 0) {
			forest->branches[picks[i].node].kept = true;
			kept++;
			continue;
		}
		forest->out->omitted++;
		if (parent->kept && picks[i].weight_ns > 0) {
			parent->left_out++;
			parent->left_out_ns += picks[i].weight_ns;
		}
	}
	/* Lightest first, so that each list ends up heaviest first. */
	for (size_t i = pick_count; i-- > 0;) {
		struct branch *branch = &forest->branches[picks[i].node], *parent = &forest->branches[forest->nodes[picks[i].node].parent];

		if (!branch->kept)
			continue;
		branch->next = parent->first;
		parent->first = picks[i].node;
	}
}

/* The rows of one thread under a line of its own; THREAD NULL: of all of them. */
static void thread_rows(struct forest *forest, const struct thread *thread)
{
	uint32_t index = thread ? (uint32_t)(thread - forest->timeline->threads) : UINT32_MAX;
	struct tree_row *row;
	uint64_t total_ns = 0;

	for (uint32_t at = forest->branches[0].first; at != UINT32_MAX; at = forest->branches[at].next)
		if (!thread || forest->nodes[at].thread == index)
			total_ns += forest->nodes[at].total_ns;
	if (!total_ns)
		return;
	forest->root_ns = (double)total_ns;
	row = row_add(forest, 0, total_ns);
	row->thread = thread;
	for (uint32_t at = forest->branches[0].first; at != UINT32_MAX; at = forest->branches[at].next) {
		if (thread && forest->nodes[at].thread != index)
			continue;
		row->children++;
		rows_below(forest, at);
	}
}

/* Where each row begins when rows are drawn as wide as they are heavy. */
static void place_rows(struct tree_rows *rows)
{
	double next[TREE_DEPTH_MAX + 3] = { 0 };

	for (size_t i = 0; i < rows->count; i++) {
		struct tree_row *row = &rows->rows[i];

		if (row->depth == 0)
			next[0] = 0;
		row->left_pct = next[row->depth];
		next[row->depth] += row->pct;
		next[row->depth + 1] = row->left_pct;
	}
}

static int rows_build(struct report *report, const struct tree_node *nodes, size_t count, bool by_thread, struct tree_rows *out, struct error *err)
{
	struct forest forest = { .timeline = report->timeline, .nodes = nodes, .out = out };
	struct pick *picks = calloc(count, sizeof *picks);
	size_t pick_count = 0;
	int result = -1;

	forest.branches = calloc(count, sizeof *forest.branches);
	/* Each kept node may bring a rest, each thread a line of its own. */
	out->rows = arena_alloc(&report->arena, (2 * TREE_ROWS_MAX + report->thread_count + 2) * sizeof *out->rows);
	if (!forest.branches || !picks || !out->rows) {
		fail(err, ERR_MEMORY, "building the call tree");
		goto out;
	}
	for (size_t i = 0; i < count; i++) {
		forest.branches[i].first = forest.branches[i].next = UINT32_MAX;
		if (i && nodes[i].parent < i)
			picks[pick_count++] = (struct pick){ nodes[i].total_ns, (uint32_t)i };
	}
	choose(&forest, picks, pick_count);
	if (!by_thread)
		thread_rows(&forest, NULL);
	for (size_t i = 0; by_thread && i < report->thread_count; i++)
		thread_rows(&forest, report->threads[i].thread);
	place_rows(out);
	result = 0;
out:
	free(forest.branches);
	free(picks);
	return result;
}

/* One node per distinct stack, whichever thread had it. *OUT is the caller's to free; NULL when out of memory. */
static size_t merge_threads(const struct timeline *timeline, struct tree_node **out)
{
	size_t slots = 64, count = 1;
	struct tree_node *merged = calloc(timeline->node_count, sizeof *merged);
	uint32_t *place = calloc(timeline->node_count, sizeof *place), *table;

	while (slots < 2 * timeline->node_count)
		slots *= 2;
	table = calloc(slots, sizeof *table); /* 0 = free: node 0 is the root and never looked up */
	if (!merged || !place || !table)
		goto out;
	merged[0] = timeline->nodes[0];
	for (size_t i = 1; i < timeline->node_count; i++) {
		const struct tree_node *node = &timeline->nodes[i];
		uint32_t parent = node->parent < i ? place[node->parent] : 0;
		size_t slot = ((uint64_t)parent * 0x9e3779b97f4a7c15ull ^ (uint64_t)node->function * 0xc2b2ae3d27d4eb4full) >> 20 & (slots - 1);

		while (table[slot] && (merged[table[slot]].parent != parent || merged[table[slot]].function != node->function))
			slot = (slot + 1) & (slots - 1);
		if (!table[slot]) {
			table[slot] = (uint32_t)count;
			merged[count++] = (struct tree_node){ .parent = parent, .function = node->function, .thread = UINT32_MAX, .depth = merged[parent].depth + 1 };
		}
		place[i] = table[slot];
		merged[place[i]].calls += node->calls;
		merged[place[i]].self_ns += node->self_ns;
		merged[place[i]].total_ns += node->total_ns;
	}
out:
	free(place);
	if (!table) {
		free(merged);
		merged = NULL;
	}
	free(table);
	*out = merged;
	return count;
}

int tree_build(struct report *report, struct error *err)
{
	const struct timeline *timeline = report->timeline;
	struct tree_node *merged = NULL;
	size_t count;
	int result;

	if (timeline->node_count < 2)
		return 0;
	count = merge_threads(timeline, &merged);
	if (!merged)
		return fail(err, ERR_MEMORY, "merging the call trees of threads");
	result = rows_build(report, merged, count, false, &report->tree, err);
	if (result == 0)
		result = rows_build(report, timeline->nodes, timeline->node_count, true, &report->thread_trees, err);
	free(merged);
	return result;
}
