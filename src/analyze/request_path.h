/* Requests over processes: scopes of several traces whose metadata hold the same id are one request. Which of them took longest, and where its time went. */
#ifndef INFERSCOPE_ANALYZE_REQUEST_PATH_H
#define INFERSCOPE_ANALYZE_REQUEST_PATH_H

#include "analyze/job.h"

enum { SPANS_MAX = 1 << 18 /* of one trace; its first ones */ };

/* One scope of one trace. */
struct span { char id[REQUEST_ID_BYTES], scope[REQUEST_SCOPE_BYTES]; uint64_t start_ns, end_ns; };
struct spans { struct span *items; size_t count, capacity; bool failed; /* out of memory */ }; /* as LIST() */

/* The value of request_id, trace_id or id in a scope's metadata (JSON): text or a whole number. False: there is none, or none that fits. */
bool span_id(const char *metadata, char *out, size_t size);
/* TRACE is read once more. Zeroed before; list_done() frees. */
int spans_read(const struct timeline *timeline, struct trace *trace, struct spans *out, struct error *err);
/* Fills job.slowest. SPANS by rank.source; clocks that are not known leave their rank out. */
int request_path_build(struct job *job, const struct spans *spans, struct error *err);

#endif
