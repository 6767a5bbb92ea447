/* What sampling of allocations spends, and how it keeps to the budget. */
#ifndef INFERSCOPE_COLLECTOR_SPENDING_H
#define INFERSCOPE_COLLECTOR_SPENDING_H

#include <stdint.h>

struct spending {
	uint64_t interval; /* bytes between points, on average */
	uint64_t passing_ns, telling_ns; /* spent since the budget was last looked at … */
	uint64_t cpu_ns;                 /* … and the process's CPU time then */
};

enum spent {
	SPENT_FINE,
	SPENT_FEWER,    /* the interval is twice as long from here */
	SPENT_TOO_MUCH, /* passing on alone costs more than the whole budget */
};

/* Looks at the budget whenever as much was spent as one of its cycles may cost. Samples may take half of it. *load: thousandths of the budget; may be NULL. */
enum spent spending_judge(struct spending *spending, uint64_t *load);

#endif
