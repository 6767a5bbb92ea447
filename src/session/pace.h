/*
 * How often the sampler looks: as often as was asked for, and less where looks take too long, or samples would keep threads of the target from working for more
 * than the budget allows. Plain data; needs no clock of its own.
 */
#ifndef INFERSCOPE_SESSION_PACE_H
#define INFERSCOPE_SESSION_PACE_H

#include <stdbool.h>
#include <stdint.h>

struct pace {
	uint32_t rate_hz;          /* asked for */
	uint32_t max_overhead_ppm; /* of a running thread's time; 0 = any */
	uint32_t perf_rate_hz;     /* of samples by perf_event, of a thread's CPU time */
	uint64_t look_ns;          /* CPU time that a look at all threads takes, smoothed */
	uint64_t hold_ns;          /* for so long a thread stands still in a look that holds it, smoothed; 0 = none was held */
	uint64_t stood_ns;         /* … and all that a look holds together: with one lock among them, all of them wait for each */
	uint32_t cpus;             /* that the process may use */
	uint32_t share;            /* so many samplers share the time that looks may take */
	uint64_t random;
};

enum { PACE_PERF_HZ_LEAST = 10, PACE_PARTS = 4 };

/* SEED: any number. The process has one CPU, unless pace_cpus() says more. */
void pace_init(struct pace *pace, uint32_t rate_hz, uint32_t max_overhead_ppm, uint64_t seed);
/* SHARE of them (1 or more) look at the same time, at processes of their own. */
void pace_share(struct pace *pace, uint32_t share);
void pace_cpus(struct pace *pace, uint32_t cpus);
/* Are looks so close to each other that perf_event need not wake us for each sample? That costs the target a third of the sample. */
bool pace_is_fast(const struct pace *pace);
/* A rate whose period is as long as the middle of PART (0 to PACE_PARTS - 1, the earliest first) of one of perf_event's is from its beginning. */
uint32_t pace_part_hz(const struct pace *pace, uint32_t part);
/* Between two looks. */
uint64_t pace_every_ns(const struct pace *pace);
/* Until the next one: from half to one and a half of it, because even steps of the clock could beat with the target's own. */
uint64_t pace_next_ns(struct pace *pace);
/* A look took COST_NS; in it HOLDS threads stood still, for STOOD_NS together. */
void pace_looked(struct pace *pace, uint64_t cost_ns, uint64_t holds, uint64_t stood_ns);
/* One sample by perf_event costs its thread so much. True: perf_rate_hz is lower now. */
bool pace_perf_costs(struct pace *pace, uint64_t cost_ns);
/* For so long all that one look holds may stand still together: what is left is not held. */
uint64_t pace_stand_most_ns(const struct pace *pace);
/* Samples come faster than they can be told. True: perf_rate_hz is lower now. */
bool pace_perf_overrun(struct pace *pace);

#endif
