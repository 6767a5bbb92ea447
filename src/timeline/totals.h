/* Functions and nodes of the tree while they are added up (totals.c) and become what timeline.h promises (functions.c). Nobody else includes it. */
#ifndef INFERSCOPE_TIMELINE_TOTALS_H
#define INFERSCOPE_TIMELINE_TOTALS_H

#include "timeline/private.h"

struct function_build {
	struct function out;
	double calls, outer_calls, self, total, cpu_self;
	uint64_t wall_ns, covered_ns;
	uint32_t last_thread; /* + 1, while nodes are walked thread by thread */
	bool used, estimated, sampled;
	struct spread spread;
};

struct node_totals {
	uint64_t total_ns, samples, gap_samples, calls;
	double total, ratio; /* ratio: calls below it in the whole capture to those seen */
	bool recursive; /* an outer frame of the same function holds this time already */
};

struct totals {
	struct timeline_private *p;
	struct function_build *functions;
	struct node_totals *nodes;
	uint32_t *order; /* nodes, thread by thread */
	struct function *exported; /* timeline.functions, once functions_export() made them */
};

/* timeline.functions, and p->export_function. */
void functions_export(struct totals *totals);
/* timeline.nodes, and p->export_node. After the functions. */
void nodes_export(struct totals *totals);

#endif
