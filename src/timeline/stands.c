#include "timeline/stands.h"

/* However dear hooks are said to be, so much of what was measured stays. */
#define LEAST_LEFT 0.2

static bool is_in(const struct segment *segment, uint64_t at_ns)
{
	return segment->gap_ns > 0 && at_ns >= segment->stands_from_ns && at_ns <= segment->stands_to_ns;
}

static struct node *node_in(struct timeline_private *p, struct stands *stands, uint32_t index)
{
	struct node *node = &p->nodes.items[index];
	uint32_t *slot;

	if (node->stands)
		return node;
	slot = list_add_or_fail(&stands->nodes, NODES_LIMIT, &p->failed);
	if (!slot) {
		p->failed = true;
		return node;
	}
	*slot = index;
	node->stands = true;
	return node;
}

/* Without hooks. */
static double unhooked(const struct node *node)
{
	double left = node->stands_self - node->stands_cost;

	return left > LEAST_LEFT * node->stands_self ? left : LEAST_LEFT * node->stands_self;
}

static void give(struct timeline_private *p, struct node *node, const struct segment *segment, double per_ns)
{
	double given = unhooked(node) * per_ns;

	node->given_self += given;
	node->estimated_calls += node->stands_calls * per_ns;
	if (node->function != NONE) {
		p->threads.items[node->thread].leaf_ns[wait_of_leaf(p, &p->names.list.items[node->function])] += given;
		spread_give(p, node->function, segment->stands_from_ns, given);
	}
	node->stands = false;
	node->stands_self = node->stands_cost = node->stands_calls = 0;
}

/* Time in no call counts as well: what the thread did then is nobody's. */
static void flush(struct timeline_private *p, struct stands *stands, const struct lane *lane)
{
	const struct segment *segment;
	double all;

	if (!stands->open)
		return;
	segment = &lane->segments.items[stands->segment];
	all = (double)(segment->stands_to_ns - segment->stands_from_ns) - stands->seen_ns;
	for (size_t i = 0; i < stands->nodes.count; i++)
		all += unhooked(&p->nodes.items[stands->nodes.items[i]]);
	for (size_t i = 0; i < stands->nodes.count; i++)
		give(p, &p->nodes.items[stands->nodes.items[i]], segment, all > 0 ? segment->gap_ns / all : 0);
	spread_give_all(p, segment->stands_from_ns, segment->gap_ns);
	stands->nodes.count = 0;
	stands->seen_ns = 0;
	stands->open = false;
}

static void turn_to(struct timeline_private *p, struct stands *stands, const struct lane *lane, size_t segment)
{
	if (stands->segment != segment)
		flush(p, stands, lane);
	stands->segment = segment;
	stands->open = true;
}

void stands_run(struct timeline_private *p, struct stands *stands, const struct lane *lane, size_t index, uint32_t node, uint64_t from_ns, uint64_t to_ns)
{
	const struct segment *segment = &lane->segments.items[index];

	if (segment->gap_ns <= 0)
		return;
	from_ns = from_ns > segment->stands_from_ns ? from_ns : segment->stands_from_ns;
	to_ns = to_ns < segment->stands_to_ns ? to_ns : segment->stands_to_ns;
	if (from_ns >= to_ns)
		return;
	turn_to(p, stands, lane, index);
	stands->seen_ns += (double)(to_ns - from_ns);
	node_in(p, stands, node)->stands_self += (double)(to_ns - from_ns);
}

static void charge(struct timeline_private *p, struct stands *stands, uint32_t parent, uint32_t node)
{
	node_in(p, stands, node)->stands_cost += p->hook_cost_ns / 2;
	node_in(p, stands, parent)->stands_cost += p->hook_cost_ns / 2;
}

void stands_enter(struct timeline_private *p, struct stands *stands, const struct lane *lane, size_t segment, uint32_t parent, uint32_t node, uint64_t at_ns, bool counts)
{
	if (!is_in(&lane->segments.items[segment], at_ns))
		return;
	turn_to(p, stands, lane, segment);
	charge(p, stands, parent, node);
	node_in(p, stands, node)->stands_calls += counts;
}

void stands_leave(struct timeline_private *p, struct stands *stands, const struct lane *lane, size_t segment, uint32_t parent, uint32_t node, uint64_t at_ns)
{
	if (!is_in(&lane->segments.items[segment], at_ns))
		return;
	turn_to(p, stands, lane, segment);
	charge(p, stands, parent, node);
}

void stands_end(struct timeline_private *p, struct stands *stands, const struct lane *lane)
{
	flush(p, stands, lane);
	list_done(&stands->nodes);
}

void stands_share_cpu(struct timeline_private *p)
{
	for (size_t i = 1; i < p->nodes.count; i++) {
		struct node *node = &p->nodes.items[i];
		struct thread_build *thread = &p->threads.items[node->thread];
		double cpu;

		if (node->given_self <= 0 || node->function == NONE)
			continue;
		cpu = node->self_ns ? node->given_self * node->cpu_seen / (double)node->self_ns : 0;
		node->estimated_self += node->given_self;
		node->cpu_self += cpu;
		*(p->names.list.items[node->function].kind == FUNCTION_C ? &thread->cpu_c : &thread->cpu_python) += cpu;
	}
}
