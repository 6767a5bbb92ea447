/*
 * The sampler: a thread of the attacher's that looks at the target's threads again and again, so that neither reading nor naming stacks
 * ever holds up the drain. Its events are taken over by the session's thread.
 */
#ifndef INFERSCOPE_SESSION_SAMPLER_H
#define INFERSCOPE_SESSION_SAMPLER_H

#include "base/clock.h"
#include "session/natives.h"

struct sampler_settings {
	const struct target *target;        /* must outlive the sampler, as the next two must */
	const struct target_facts *facts;
	const struct procfs *procfs;
	remote_addr runtime, runtime_end;   /* the interpreter's state */
	struct clock_map clock;             /* of the events' ticks */
	bool tsc;                           /* these are the TSC's, else ns */
	uint32_t rate_hz;
	bool native, debuginfod;
};

struct sampler;

/* What it can do, known from its first look on. */
struct sampler_ways {
	bool native, holds;
	char why_not_native[208], why_not_held[208]; /* "" when it can, or was not asked to */
};

struct sampler_totals {
	struct sampler_ways ways;
	struct natives_totals natives;
	uint64_t looks, failed, samples, torn; /* failed: the interpreter could not be read */
	uint64_t cost_ns;  /* CPU time of all looks, names included */
	uint64_t every_ns; /* between two looks at present: the sampler lowers its rate where a look takes long */
};

/* Begins to sample. Fails as pyreader_open() does, or with ERR_MEMORY. */
int sampler_open(const struct sampler_settings *settings, struct sampler **out, struct error *err);
/* Moves the events of all looks so far to the end of BUILDER. */
void sampler_take(struct sampler *sampler, struct event_builder *builder);
struct sampler_totals sampler_totals(struct sampler *sampler);
/* While PAUSED no look begins; waits for the one in progress, but not for long. */
void sampler_pause(struct sampler *sampler, bool paused);
/* No look begins after this; waits for the one in progress, but not for long. False: it still goes on. Accepts NULL. */
bool sampler_stop(struct sampler *sampler);
/* Stops, and waits longer. What a look that does not end still uses is left to it, for ever. */
void sampler_close(struct sampler *sampler);

#endif
