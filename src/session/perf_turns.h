/*
 * When samples by perf_event rest: each switch of a thread takes longer while it has an event, which may cost half of the budget together. Where threads switch so often that it would cost more,
 * perf_event is on and off by turns. Plain data; needs no clock of its own.
 */
#ifndef INFERSCOPE_SESSION_PERF_TURNS_H
#define INFERSCOPE_SESSION_PERF_TURNS_H

#include <stdbool.h>
#include <stdint.h>

/* Where perf_event, a switch's price and the process's CPU time stand. */
struct perf_bill { uint64_t at_ns, spent_ns, cpu_ns; };

struct perf_turns {
	uint32_t max_overhead_ppm;      /* 0 = any */
	uint64_t switch_ns, resting_ns; /* so much longer a switch takes while it is on; and shortly after. 0: not known, or nothing */
	uint64_t switches, resting;     /* so many there were */
	bool rests;
	bool useless;                   /* it could be on for less than a hundredth of the time */
	struct perf_bill began;         /* the turn or the rest in progress */
	uint64_t wanted_ns;             /* for so much a rest saves */
	uint64_t random;
};

/* SEED: any number. It is on. */
void perf_turns_init(struct perf_turns *turns, uint32_t max_overhead_ppm, uint64_t now_ns, uint64_t seed);
/* Threads were switched MORE times, with their events OPEN or not; CPU_NS: of the process since the beginning. Changes what rests and useless say; at least every second. */
void perf_turns_switched(struct perf_turns *turns, uint64_t more, bool open, uint64_t cpu_ns, uint64_t now_ns);
/* What all switches together took longer. */
uint64_t perf_turns_spent_ns(const struct perf_turns *turns);

#endif
