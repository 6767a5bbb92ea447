/*
 * Clocks of several traces. Traces of one boot of a machine share its monotonic clock, whatever its wall clock was set to; those of several are laid side by
 * side by their wall clocks, as far as these are trusted, and closer by collective operations: no rank's part of one ends before every rank's part has begun.
 */
#ifndef INFERSCOPE_ANALYZE_ALIGN_H
#define INFERSCOPE_ANALYZE_ALIGN_H

#include "analyze/job.h"
#include "base/list.h"

enum { COLLECTIVES_MAX = 1 << 14 /* of one trace; its first ones */ };

/* One collective of one rank: a kernel of NCCL or RCCL in which all ranks take part. */
struct collective { uint64_t start_ns, end_ns, name; /* a hash */ };

/* What is kept of a trace to lay it beside others. */
struct clock_source {
	struct wall_clock wall;
	LIST(struct collective) collectives; /* by start */
	bool failed;                         /* out of memory */
};

/* TRACE is read once more. Zeroed before; list_done(&out->collectives) frees. */
int clock_source_read(const struct timeline *timeline, struct trace *trace, struct clock_source *out, struct error *err);
/* Fills rank.clock and rank.late of all; SOURCES are of the same order. The first rank's clock is the one that all are told in. */
void align_ranks(struct rank *ranks, const struct clock_source *sources, size_t count);

#endif
