/* Functions that the overhead budget made a number: their calls were counted, their times were not taken. */
#include "timeline/private.h"

struct group { uint64_t own, counted; uint32_t around; }; /* samples: of a call, and of the counted calls whose time it holds; of a counted one: that call */

static bool is_native(const struct timeline_private *p, const struct node *node)
{
	return node->function != NONE && p->names.list.items[node->function].kind == FUNCTION_NATIVE;
}

/* Samples in native code belong to the call that is in it. */
static void count_groups(struct timeline_private *p, struct group *groups)
{
	for (size_t i = p->nodes.count; i-- > 1;) {
		const struct node *node = &p->nodes.items[i];

		groups[i].own += node->samples - node->gap_samples;
		if (is_native(p, node))
			groups[node->parent].own += groups[i].own;
	}
	for (size_t i = 1; i < p->nodes.count; i++) {
		const struct node *node = &p->nodes.items[i];

		groups[i].around = (uint32_t)i;
		if (!node->counted_samples)
			continue;
		groups[i].around = groups[node->parent].around;
		groups[groups[i].around].counted += groups[i].own;
	}
}

static void give(struct timeline_private *p, struct node *to, struct node *from, double share)
{
	uint64_t self_ns = (uint64_t)((double)from->self_ns * share);

	to->self_ns += self_ns;
	to->estimated_self += from->estimated_self * share;
	to->cpu_self += from->cpu_self * share;
	to->cpu_seen += from->cpu_seen * share;
	from->self_ns -= self_ns;
	from->estimated_self -= from->estimated_self * share;
	from->cpu_self -= from->cpu_self * share;
	from->cpu_seen -= from->cpu_seen * share;
	p->names.list.items[from->function].times_shared = true;
}

void counted_share(struct timeline_private *p)
{
	struct group *groups = calloc(p->nodes.count, sizeof *groups);

	if (!groups) {
		p->failed = true;
		return;
	}
	count_groups(p, groups);
	for (size_t i = 1; i < p->nodes.count; i++) {
		struct group *from = &groups[groups[i].around];

		if (groups[i].around == i || p->nodes.items[groups[i].around].function == NONE)
			continue;
		give(p, &p->nodes.items[i], &p->nodes.items[groups[i].around], (double)groups[i].own / (double)(from->own + from->counted));
		from->counted -= groups[i].own;
	}
	free(groups);
}
