/*
 * How far chance may have taken a function's own time, where it is an estimate: 95 % confidence intervals.
 *
 * What samples say is a share of a thread's samples, with the interval that Wilson gave it; threads add up as independent errors do. What windows say
 * for the time around them is scattered as much as the time of neighbouring sixteenths of the capture is: that holds the change from one to the next as well,
 * so the interval is rather too wide. Time that was seen whole has no error.
 */
#ifndef INFERSCOPE_TIMELINE_SPREAD_H
#define INFERSCOPE_TIMELINE_SPREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct timeline_private;
struct node;
struct function;

enum { SPREAD_BATCHES = 16 };

/* Of one function, while its nodes are added up thread by thread. */
struct spread {
	uint32_t thread;        /* + 1; 0 = none yet */
	double gap_weight_ns;   /* this thread's samples at times when calls could not be seen */
	double shared_ns;       /* time seen that samples gave to it, or took from it */
	uint64_t shared_samples;
	double below, above;    /* squares of the errors so far, ns */
	bool estimated;         /* there is an error at all */
	bool by_windows;        /* part of it is what windows say */
};

/* P ± for HITS of COUNT: *low ≤ hits / count ≤ *high. COUNT is above 0; both may be what weights amount to. */
void spread_share(double hits, double count, double *low, double *high);

/* Before calls are replayed; then the time that FUNCTION was seen to run, relative. */
void spread_begin(struct timeline_private *p);
void spread_run(struct timeline_private *p, uint32_t function, uint64_t from_ns, uint64_t to_ns);
/* Where windows were planned: of the time before one, which began at AT, NS go to FUNCTION; NS of it to all. */
void spread_give(struct timeline_private *p, uint32_t function, uint64_t at_ns, double ns);
void spread_give_all(struct timeline_private *p, uint64_t at_ns, double ns);
/* After the windows are known. */
void spread_windows(struct timeline_private *p);
/* One of FUNCTION's nodes; all of one thread follow one another. */
void spread_add(const struct timeline_private *p, struct spread *spread, const struct node *node);
/* After the last one: fills self_low_ns and self_high_ns of OUT, whose self_ns is known. NAME is its index in names. */
void spread_finish(const struct timeline_private *p, struct spread *spread, uint32_t name, struct function *out);

#endif
