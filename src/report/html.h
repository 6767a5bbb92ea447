/* What the parts of the HTML writer share. Everything foreign goes through html_add(), or as JSON through text_add_json(). */
#ifndef INFERSCOPE_REPORT_HTML_H
#define INFERSCOPE_REPORT_HTML_H

#include "report/html_pack.h"
#include "report/gpu_tables.h"
#include "report/name.h"

/* The page's style and script: src/report/html/, embedded when the program is built. */
extern const char HTML_CSS[], HTML_JS[];

/* A page up to the text beside the name in its header, a span that stays open. */
void html_begin(struct text *out, const char *title);
/* BYTES cut to COLUMNS and escaped, for text or a quoted attribute. */
void html_add(struct text *out, const char *bytes, size_t columns, unsigned flags);
/* The same as a JSON string. No < or > of a name stands in the page, not even where it could not begin anything. */
void html_add_json(struct text *out, const char *bytes, size_t columns, unsigned flags);
/* A function's name as code, the longer form of a cut one as tooltip. */
void html_add_name(struct text *out, const char *name, size_t columns);
/* file:line, small; nothing when it is not known. */
void html_add_place(struct text *out, const char *file, uint32_t line, size_t columns);
/* How long a stretch of the capture took, as a link that selects it in the time line. */
void html_add_range(struct text *out, uint64_t at_ns, uint64_t length_ns);
/* A bar of all parts; its label says the same to those who cannot see it. */
void html_add_stack(struct text *out, const double pct[PART_COUNT], bool thin);
/* A cell with the number that the page sorts by; unknown ones stand last. */
void html_add_number(struct text *out, double value, struct quantity shown, bool strong);
/* A table that sorts, named LABEL, up to its <tbody>; HEADS are cells. */
void html_begin_table(struct text *out, const char *label, const char *heads);
/* Its end, and how many of ALL rows stand in JSON alone. */
void html_end_table(struct text *out, size_t all, size_t shown);

/* Sections, each a file of its own. Those without data add nothing. */
void html_add_findings(struct text *out, const struct report *report);
void html_add_functions(struct text *out, const struct report *report);
void html_add_threads(struct text *out, const struct report *report);
void html_add_gil(struct text *out, const struct report *report);
void html_add_collections(struct text *out, const struct report *report);
void html_add_allocations(struct text *out, const struct report *report);
void html_add_idle(struct text *out, const struct report *report);
void html_add_sites(struct text *out, const struct report *report);
void html_add_gpu_tables(struct text *out, const struct report *report, const struct gpu_tables *tables); /* kernels, copies, CUDA calls, launches, streams */
void html_add_syscalls(struct text *out, const struct report *report);
void html_add_counters(struct text *out, const struct report *report);
void html_add_tasks(struct text *out, const struct report *report);
void html_add_requests(struct text *out, const struct report *report);
void html_add_stacks(struct text *out, const struct report *report); /* flame graphs of the busiest threads and the call tree */
void html_add_environment(struct text *out, const struct report *report);
void html_add_glossary(struct text *out);

/*
 * The slices of the time line: one pass over the trace, two when it has so many that short ones must go. What lies on one line (the calls of a
 * thread at one depth, the kernels of a stream) is a row; rows and the names of their slices are told by the model, after them.
 */
enum slice_group { SLICES_CALLS = 0, SLICES_SCOPES, SLICES_SYSCALLS, SLICES_API, SLICES_STREAM, SLICES_COPIES, SLICES_SYNC, SLICES_STATES, SLICES_GIL, SLICES_MARKS, SLICES_IDLE, SLICES_COLLECTIONS };
struct slice_row {
	enum slice_group group;
	uint32_t a, b, depth; /* thread and lane of the trace; or device and stream, direction of copies, or cause of idling */
	uint32_t process;     /* of streams: whose; index */
};
struct slices_said {
	const struct slice_row *rows;
	size_t row_count, label_count;
	const struct strings *labels;      /* of everything that is no call; ids */
	uint64_t calls, calls_left_out, others, others_left_out;
	uint64_t least_ns;                 /* shorter calls were left out; 0 = none */
	uint32_t depth_max;                /* deeper ones too */
};
/* Why a device had nothing to do, by enum gpu_idle. */
struct idle_cause { const char *label, *colour, *pattern, *meaning; };
extern const struct idle_cause HTML_IDLE_CAUSES[GPU_IDLE_CAUSES];
struct slices;
/* Writes all into PACK; LIMIT is in bytes before compression. NULL with err on failure; SLICES owns what *said points at. */
struct slices *slices_write(const struct report *report, struct pack *pack, uint64_t limit, struct slices_said *said, struct error *err);
void slices_free(struct slices *slices);

/* The call tree, as columns in PACK. Returns how many nodes were left out. */
size_t html_pack_tree(const struct report *report, struct pack *pack);
/* A function in it: [name, file, line, kind, waiter]. */
void html_add_function(struct text *out, const char *name, const char *file, uint32_t line, int kind, bool waiter);
/* Everything else the page's script needs, as JSON. */
void html_add_model(struct text *out, const struct report *report, const struct slices_said *said, size_t nodes_left_out);

#endif
