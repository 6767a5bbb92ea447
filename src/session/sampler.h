/*
 * The sampler: one thread of the attacher's looks at the target's threads again and again, a second one walks, joins and names what was seen, so that neither
 * looking nor the drain ever waits for that. Their events are taken over by the session's thread.
 */
#ifndef INFERSCOPE_SESSION_SAMPLER_H
#define INFERSCOPE_SESSION_SAMPLER_H

#include "base/clock.h"
#include "session/digest.h"
#include "session/session.h"
#include "session/watch.h"

struct sampler_settings {
	const struct target *target;        /* must outlive the sampler, as procfs must */
	const struct procfs *procfs;
	struct block_runtime runtime;       /* the interpreter's state */
	struct clock_map clock;             /* of the events' ticks */
	bool tsc;                           /* these are the TSC's, else ns */
	uint32_t rate_hz;
	uint32_t share;                     /* so many samplers share the time that looks may take; 0 = it is alone */
	uint32_t max_overhead_ppm;          /* of a running thread's time, for its samples by perf_event; 0 = none */
	enum native_way native;
	bool debuginfod;
	bool syscalls;                      /* those that threads are blocked in are told */
	bool counters;                      /* samples by perf_event tell what page faults and the processor's counters gained */
};

struct sampler;

/* What it can do, known from its beginning on. */
struct sampler_ways {
	bool native, perf, holds;
	char why_not_native[208], why_not_perf[208], why_not_held[208], why_not_debuginfod[128]; /* "" when it can, or was not asked to */
};

struct sampler_totals {
	struct sampler_ways ways;
	struct watch_totals watch;
	struct digest_totals digest;
	struct perf_totals perf;
	struct hold_totals holds;
	uint64_t looks, failed; /* failed: the interpreter could not be read */
	uint64_t torn;          /* looks at Python frames that did not fit together */
	uint64_t sights_lost;   /* looks that were lost because telling them took too long */
	uint64_t cost_ns;       /* CPU time of all looks */
	uint64_t telling_ns;    /* CPU time of walking, joining and naming */
	uint64_t perf_ns;       /* that samples by perf_event took of the target's threads, by what they cost us ourselves */
	uint64_t switch_ns;     /* so much longer a switch of a thread takes that perf_event samples; 0: it could not be measured */
	uint64_t switches_ns;   /* … and all together */
	uint64_t perf_on_ns, perf_open_ns; /* for so long it was on, since it was opened: less than all where switches would cost too much */
	uint64_t perf_cost_ns;  /* one of them, with as much stack as any thread needs */
	uint64_t every_ns;      /* between two looks at present: lowered where they take long */
	uint32_t perf_rate_hz;  /* at present */
};

/* Begins to sample. Fails as pyreader_open() does, or with ERR_MEMORY. */
int sampler_open(const struct sampler_settings *settings, struct sampler **out, struct error *err);
/* Moves the events of all that was told so far to the end of BUILDER. */
void sampler_take(struct sampler *sampler, struct event_builder *builder);
struct sampler_totals sampler_totals(struct sampler *sampler);
/* How long threads of the target were kept from working by it. */
uint64_t sampler_stolen_ns(struct sampler *sampler);
/* The target's threads were switched so many times MORE, and ran for CPU_NS since sampling began. Where that costs more than half of the budget perf_event is on by turns. */
void sampler_switched(struct sampler *sampler, uint64_t more, uint64_t cpu_ns);
/* While PAUSED no look begins; waits for the one in progress, but not for long. */
void sampler_pause(struct sampler *sampler, bool paused);
/* No look begins after this; waits for the one in progress, but not for long. False: it still goes on. Accepts NULL. */
bool sampler_stop(struct sampler *sampler);
/* After that: waits until what was seen is told, up to ten seconds. False: some is not. Accepts NULL. */
bool sampler_finish(struct sampler *sampler);
/* Stops, and waits. What a look that does not end still uses is left to it, for ever. */
void sampler_close(struct sampler *sampler);

#endif
