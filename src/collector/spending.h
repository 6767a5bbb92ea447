/* What sampling of allocations spends, and how it keeps to the budget. */
#ifndef INFERSCOPE_COLLECTOR_SPENDING_H
#define INFERSCOPE_COLLECTOR_SPENDING_H

#include <stdbool.h>
#include <stdint.h>

struct spending {
	uint64_t interval; /* bytes between points, on average */
	uint64_t passing_ns, telling_ns; /* spent since the budget was last looked at … */
	uint64_t cpu_ns;                 /* … and the process's CPU time then */
	uint64_t debt_ns;                /* spent beyond what was allowed, and not made up for since */
	uint64_t allowed_ns;             /* since spending_begin() */
	uint32_t taken_ppm;              /* of that CPU time, between the last two looks; read by the other sampler on any thread */
	bool over;                       /* the last look found passing on alone too dear */
};

enum spent {
	SPENT_FINE,
	SPENT_FEWER,    /* the interval is twice as long from here */
	SPENT_TOO_MUCH, /* passing on alone costs more than allowed, twice in a row or more */
};

/* From here on, or once more after a pause. A debt stays. */
void spending_begin(struct spending *spending);

/* It takes nothing from here on. */
void spending_ends(struct spending *spending);

/* Looks at the budget whenever as much was spent as one of its cycles may cost. OTHER is the other sampler of allocations. *load: thousandths of what is allowed; may be NULL. */
enum spent spending_judge(struct spending *spending, const struct spending *other, uint64_t *load);

#endif
