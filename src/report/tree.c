/* Chooses the lines of the call tree that a page can hold: the heaviest nodes whose parents are also shown. */
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

struct tree_build {
	struct report *report;
	struct branch *branches;
	uint32_t *stack;
	double root_ns;
};

/* Where each row begins when rows are drawn as wide as they are heavy. */
static void place_rows(struct report *report)
{
	double next[TREE_DEPTH_MAX + 3] = { 0 };

	for (size_t i = 0; i < report->tree_count; i++) {
		struct tree_row *row = &report->tree[i];

		if (row->depth == 0)
			next[0] = 0;
		row->left_pct = next[row->depth];
		next[row->depth] += row->pct;
		next[row->depth + 1] = row->left_pct;
	}
}

static struct tree_row *row_add(struct report *report)
{
	return &report->tree[report->tree_count++];
}

/* Depth first, without recursion: the tree is the target's and may be as deep as its stack. */
static void rows_below(struct tree_build *build, uint32_t top, uint32_t depth, size_t *used)
{
	struct report *report = build->report;
	const struct timeline *timeline = report->timeline;
	uint32_t at = top;

	while (at != UINT32_MAX) {
		const struct tree_node *node = &timeline->nodes[at];
		struct branch *branch = &build->branches[at];
		struct tree_row *row = row_add(report);

		row->node = node;
		row->function = node->function < timeline->function_count ? &timeline->functions[node->function] : NULL;
		row->depth = depth;
		row->self_ns = node->self_ns;
		row->total_ns = node->total_ns;
		row->calls = node->calls;
		row->pct = build->root_ns > 0 ? 100.0 * (double)node->total_ns / build->root_ns : 0;
		for (uint32_t child = branch->first; child != UINT32_MAX; child = build->branches[child].next)
			row->children++;
		row->children += branch->left_out > 0;
		if (branch->first != UINT32_MAX) {
			build->stack[(*used)++] = at;
			at = branch->first;
			depth++;
			continue;
		}
		for (;;) {
			if (build->branches[at].left_out) {
				struct tree_row *rest = row_add(report);

				rest->depth = depth + 1;
				rest->omitted = build->branches[at].left_out;
				rest->total_ns = build->branches[at].left_out_ns;
				rest->pct = build->root_ns > 0 ? 100.0 * (double)rest->total_ns / build->root_ns : 0;
			}
			if (at == top) {
				at = UINT32_MAX;
				break;
			}
			if (build->branches[at].next != UINT32_MAX) {
				at = build->branches[at].next;
				break;
			}
			at = build->stack[--*used];
			depth--;
		}
	}
}

/* Marks what is kept and links it; the rest is counted at the kept node above it. */
static void choose(struct tree_build *build, struct pick *picks, size_t pick_count)
{
	const struct timeline *timeline = build->report->timeline;
	uint32_t kept = 0;

	qsort(picks, pick_count, sizeof *picks, heavier_first);
	for (size_t i = 0; i < pick_count; i++) {
		const struct tree_node *node = &timeline->nodes[picks[i].node];
		struct branch *parent = &build->branches[node->parent];

		if (!parent->kept)
			build->report->tree_omitted++;
		else if (kept >= TREE_ROWS_MAX || node->depth > TREE_DEPTH_MAX || picks[i].weight_ns == 0) {
			parent->left_out += picks[i].weight_ns > 0;
			parent->left_out_ns += picks[i].weight_ns;
			build->report->tree_omitted++;
		} else {
			build->branches[picks[i].node].kept = true;
			kept++;
		}
	}
	/* Lightest first, so that each list ends up heaviest first. */
	for (size_t i = pick_count; i-- > 0;) {
		struct branch *branch = &build->branches[picks[i].node], *parent = &build->branches[timeline->nodes[picks[i].node].parent];

		if (!branch->kept)
			continue;
		branch->next = parent->first;
		parent->first = picks[i].node;
	}
}

/* The rows of one thread: its first-level nodes under a line of its own. */
static void thread_rows(struct tree_build *build, const struct thread_row *thread)
{
	struct report *report = build->report;
	const struct timeline *timeline = report->timeline;
	uint32_t index = (uint32_t)(thread->thread - timeline->threads);
	struct tree_row *row = NULL;
	size_t used = 0;
	uint64_t total_ns = 0;

	for (uint32_t at = build->branches[0].first; at != UINT32_MAX; at = build->branches[at].next)
		if (timeline->nodes[at].thread == index)
			total_ns += timeline->nodes[at].total_ns;
	build->root_ns = (double)total_ns;
	for (uint32_t at = build->branches[0].first; at != UINT32_MAX; at = build->branches[at].next) {
		if (timeline->nodes[at].thread != index)
			continue;
		if (!row) {
			row = row_add(report);
			row->thread = thread->thread;
			row->total_ns = total_ns;
			row->pct = 100;
		}
		row->children++;
		rows_below(build, at, 1, &used);
	}
}

int tree_build(struct report *report, struct error *err)
{
	const struct timeline *timeline = report->timeline;
	struct tree_build build = { .report = report };
	struct pick *picks = NULL;
	size_t pick_count = 0;
	int result = -1;

	if (timeline->node_count < 2)
		return 0;
	build.branches = calloc(timeline->node_count, sizeof *build.branches);
	build.stack = calloc(TREE_DEPTH_MAX + 2, sizeof *build.stack);
	picks = calloc(timeline->node_count, sizeof *picks);
	/* Each kept node may bring a rest, each thread a line of its own. */
	report->tree = arena_alloc(&report->arena, (2 * TREE_ROWS_MAX + timeline->thread_count + 2) * sizeof *report->tree);
	if (!build.branches || !build.stack || !picks || !report->tree) {
		fail(err, ERR_MEMORY, "building the call tree");
		goto out;
	}
	for (size_t i = 0; i < timeline->node_count; i++) {
		build.branches[i].first = build.branches[i].next = UINT32_MAX;
		if (i && timeline->nodes[i].parent < i)
			picks[pick_count++] = (struct pick){ timeline->nodes[i].total_ns, (uint32_t)i };
	}
	build.branches[0].kept = true;
	choose(&build, picks, pick_count);
	for (size_t i = 0; i < report->thread_count; i++)
		thread_rows(&build, &report->threads[i]);
	place_rows(report);
	result = 0;
out:
	free(build.branches);
	free(build.stack);
	free(picks);
	return result;
}
