/* From sights of threads to SAMPLE and GIL events, with the stacks and functions that they name. */
#ifndef INFERSCOPE_SESSION_DIGEST_H
#define INFERSCOPE_SESSION_DIGEST_H

#include "base/clock.h"
#include "session/joiner.h"
#include "session/sight.h"
#include "trace/writer.h"

struct digest_settings {
	const struct target *target; /* must outlive the digest */
	remote_addr runtime;
	struct joiner *joiner;       /* stays the caller's; NULL = Python frames only */
	struct event_builder *builder; /* gets the events */
	struct clock_map clock;      /* of their ticks */
	bool tsc;                    /* these are the TSC's, else ns */
	bool syscalls;               /* those that threads are blocked in are told, too */
	const struct procfs *procfs; /* for that; else not used */
};

struct digest_totals {
	uint64_t samples, torn;
	uint64_t joins[JOIN_RESULTS];         /* by enum join_result */
	uint64_t ends[WALK_CUT_TABLES + 1];   /* by enum walk_end */
	uint64_t searched;                    /* of them: out of assembler without a table */
	uint64_t naming_ns;                   /* CPU time spent on names */
	uint64_t frames_left_out;             /* of samples' stacks, inner ones: there were too many different ones */
};

struct digest;

/* As pyreader_open(); ERR_MEMORY. */
int digest_open(const struct digest_settings *settings, struct digest **out, struct error *err);
void digest_close(struct digest *digest); /* accepts NULL */
void digest_tell(struct digest *digest, const struct sight *sight);
/* After the last sight: what is still going on. */
void digest_end(struct digest *digest);
/* Does SIGHT, told last, leave something to wish for: a register that only a stop of the thread can tell, or more stack than its sample brought? */
bool digest_wants(const struct digest *digest, const struct sight *sight, struct sight_wish *out);
struct digest_totals digest_totals(const struct digest *digest);

#endif
