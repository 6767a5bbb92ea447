/* What the exports share: the same function, thread or process has the same name in each of them, and each says how good its data are. */
#ifndef INFERSCOPE_REPORT_EXPORT_H
#define INFERSCOPE_REPORT_EXPORT_H

#include "report/model.h"

/* Each clears OUT first. All text is visible on one line; long names lose their beginning. */
void export_name(const struct timeline *timeline, uint32_t function, struct text *out);
void export_file(const struct timeline *timeline, uint32_t function, struct text *out);
void export_thread(const struct timeline *timeline, uint32_t thread, struct text *out); /* "MainThread (4121)" */
void export_process(const struct report *report, uint32_t process, struct text *out);   /* "python server.py (4121)"; by index */
void export_string(const char *string, struct text *out);                               /* any other name */
/* Adds a comma and a cell of CSV to LINE; it stays text in a spreadsheet. */
void export_cell(struct text *line, const char *cell);
/* "calls were seen 91 % of the time, 12 events lost, …": what a reader of the numbers must know. */
void export_quality(const struct report *report, struct text *out);

uint32_t export_pid(const struct report *report);
/* The numbers of the processes by index, of one at least: different ones, and with DEVICES none that is a device's (Chrome's format takes devices for processes). For free(); NULL: no memory. */
uint32_t *export_pids(const struct report *report, bool devices);
/* SEPARATOR (of 12 characters at most) and whose stream it is, where several processes have one of this number on the device; else "". */
struct export_owner { char text[32]; };
struct export_owner export_stream_owner(const struct timeline *timeline, uint32_t device, uint32_t stream, uint32_t process, const char *separator);
/* Index of the process that THREAD is of; 0 for no thread. */
uint32_t export_process_of(const struct timeline *timeline, uint32_t thread);
/* Fails with a hint when the trace was not kept. */
int export_trace(const struct report *report, const char *format, struct error *err);

/* The values of a stack. What could not be measured is not known: zeros would say that there was none. */
struct export_value { const char *type, *unit; size_t offset; bool (*known)(const struct timeline *timeline); };
extern const struct export_value EXPORT_VALUES[];
enum { EXPORT_VALUE_SAMPLES, EXPORT_VALUE_CALLS, EXPORT_VALUE_WALL, EXPORT_VALUE_CPU, EXPORT_VALUE_GIL, EXPORT_VALUE_GPU, EXPORT_VALUE_COUNT };
uint64_t export_value(const struct tree_node *node, size_t value);
bool export_has_value(const struct tree_node *node); /* any of them */

/* How the kinds of intervals are called: as Kineto does, where it has a word. */
struct export_kind { uint8_t kind; const char *category, *label; };
extern const struct export_kind EXPORT_KINDS[];
extern const size_t EXPORT_KIND_COUNT;
/* Its index, or of any other kind the last one's. */
size_t export_kind(unsigned kind);
/* Its own name, or its kind's. */
const char *export_label(const struct interval *interval);
/* True for work of the device and the calls that ask for it: an arrow leads from the one to the other. */
bool export_flows(const struct interval *interval);

/* A state of threads that is shown as a counter: how many threads were in it, on average, in each slot. */
struct export_load { enum thread_state state; const char *name; };
extern const struct export_load EXPORT_LOADS[];
extern const size_t EXPORT_LOAD_COUNT;
/* In thousandths of a thread. */
uint64_t export_load_milli(const struct load_slot *slot, enum thread_state state);

#endif
