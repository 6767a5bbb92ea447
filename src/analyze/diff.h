/*
 * Two captures compared: what became slower or quicker per request, or per second, beyond what noise explains. Of functions, kernels, latencies, device idling,
 * findings and the verdict. Everything is kept by the caller: the two sides must outlive the result.
 */
#ifndef INFERSCOPE_ANALYZE_DIFF_H
#define INFERSCOPE_ANALYZE_DIFF_H

#include "analyze/analysis.h"

struct diff_side { const struct timeline *timeline; const struct analysis *analysis; struct trace *trace; const char *name; };

enum diff_unit { DIFF_PER_SECOND = 0, DIFF_PER_REQUEST };
enum diff_kind { DIFF_LATENCY = 0, DIFF_FUNCTION, DIFF_KERNEL, DIFF_IDLE, DIFF_KINDS };

/* One thing on both sides; ns per unit, of latencies ns. */
struct diff_row {
	enum diff_kind kind;
	const char *name, *file; /* file "" where there is none */
	uint32_t line;
	double before_ns, after_ns; /* NAN: not there, or not known */
	double noise_ns;            /* a difference up to this much says nothing */
	bool changed, worse;        /* beyond the noise; and to the worse */
};

struct diff {
	enum diff_unit unit;
	double before_units, after_units; /* requests, or seconds */
	const char *request;              /* the scope that is counted, or "" */
	bool class_changed;
	size_t row_count, appeared_count, vanished_count;
	const struct diff_row *rows;      /* by kind, then by the size of the change */
	const struct finding_report *const *appeared, *const *vanished; /* by rule and place */
	struct diff_private *private_;
};

/* What a difference must exceed says the first analysis: its parameters diff.relative_pct (of the value before) and diff.share_pct (of the time of one unit). */
int diff_build(const struct diff_side *before, const struct diff_side *after, struct diff **out, struct error *err);
void diff_free(struct diff *diff);
const char *diff_kind_name(enum diff_kind kind); /* "latency" */

#endif
