/*
 * One attach, from first look to receipt: enter, drain, readings from /proc, samples, overhead, leave. Writes the trace while it
 * runs. Never prints: progress goes to a callback. Many sessions may live in one process.
 */
#ifndef INFERSCOPE_SESSION_SESSION_H
#define INFERSCOPE_SESSION_SESSION_H

#include "abi/page.h"
#include "inject/inject.h"
#include "session/inside.h"
#include "session/spool.h"

/* How native frames are seen. */
enum native_way {
	NATIVE_NONE,
	NATIVE_AUTO, /* by perf_event where that is permitted: stops nothing */
	NATIVE_HOLD, /* running threads are held for a copy, blocked ones where nothing else tells their registers */
	NATIVE_BOTH, /* by perf_event, and by holding where it cannot */
};

/* Which system calls are told. */
enum syscalls_way {
	SYSCALLS_NONE,
	SYSCALLS_SAMPLED, /* those that threads were seen blocked in, at the looks that are taken anyway */
	SYSCALLS_TRACED,  /* every one, by tracepoints, where that is permitted */
};

struct session_options {
	uint64_t duration_ns;       /* 0 = until stopped */
	const volatile uint64_t *until_ns; /* NULL, or: instead of the duration's end, recording ends at this CLOCK_MONOTONIC; 0 = not known yet */
	enum backend backend;       /* BACKEND_NONE: samples only, the target is not entered */
	enum c_calls c_calls;
	uint32_t max_overhead_ppm;  /* 0 = none */
	uint32_t alternate_ms;      /* hooks are on and off by turns of this length; 0 = always on. Needs hooks */
	uint32_t trace_size_mb;     /* pool limit; 0 = 100 */
	uint32_t rate_hz;           /* samples of stacks from outside; 0 = none */
	uint32_t share;             /* so many sessions share the time of our own that looks at processes may take; 0 = it is alone */
	enum native_way native;
	enum syscalls_way syscalls;
	bool counters;              /* of threads, by perf_event */
	bool debuginfod;            /* names of native functions may be fetched from the network */
	bool gpu;                   /* follow the device, where the process uses CUDA */
	bool gpu_memory;            /* and its allocations there */
	enum gpu_graphs gpu_graphs; /* a CUDA graph's launch node by node, or as one */
	uint64_t gpu_max_kernels;   /* the device's part ends by itself after so many; 0 = never */
	bool gc;                    /* collections of garbage; needs hooks */
	uint64_t memory_interval;   /* bytes between samples of allocations, on average; 0 = none. Needs hooks */
	bool memory_native;         /* what native libraries allocate too; needs memory_interval */
	bool lines, skip_default, seed;
	uint32_t skip_presets;
	const char *const *skip_patterns; /* NULL-terminated, or NULL */
	uint32_t gil_timeout_ms;    /* how long arming may wait for the GIL; 0 = 5 000 */
	uint32_t sync_error_margin_us; /* noted in the trace */
	const char *mode;           /* "attach", "run": noted in the trace */
	const char *version;        /* ours, for the trace */
	const char *command_line;   /* ours, for the trace; or NULL */
	bool whole_arguments;       /* the process's command line with what looks like secrets */
	const volatile int *stop;   /* NULL, or: entering is given up with ERR_INTERRUPTED once it is not 0 */
	void (*notice)(void *context, const char *text); /* what an attach waits for, when it takes long; or NULL */
	void *notice_context;
	struct inside *inside;      /* NULL, or: the process measures itself by us, and helps (session/inside.h) */
	struct inject_options inject;
};

struct session_progress {
	uint64_t elapsed_ns, duration_ns, events, lost, samples;
	double overhead_pct, coverage;
	enum collector_state collector;
};

enum session_end { END_DURATION = 0, END_STOPPED, END_TARGET_EXITED, END_TARGET_EXECED, END_ABANDONED };

enum { SESSION_WARNINGS = 8 };

struct session_receipt {
	struct receipt enter, leave;
	bool clean;              /* everything restored that is promised */
	char not_clean[512];     /* what was not */
	uint64_t fds_before, fds_after, threads_before, threads_after, mappings_before, mappings_after;
	uint64_t hold_max_ns;
	uint64_t events, lost, samples;
	enum session_end end;
	enum backend backend_used;
	enum collector_state collector; /* as it stood at the end */
	char warnings[SESSION_WARNINGS][256]; /* what we went on without */
	uint32_t warning_count;
};

struct session;

/* Whether OPTIONS go with such a process. session_start() asks it, too. */
int session_check(const struct target_facts *facts, const struct session_options *options, struct error *err);
/* Looks and enters. SPOOL gets the trace and stays the caller's; so does TARGET. *OPTIONS must outlive the session. */
int session_start(struct target *target, const struct session_options *options, struct spool *spool, struct session **out, struct error *err);
/* Records until the duration is over, *STOP becomes 1 (stop and write) or 2 (leave at once), or the target ends. PROGRESS (may be NULL) is
 * called at most every 100 ms. */
void session_record(struct session *session, const volatile int *stop, void (*progress)(void *context, const struct session_progress *), void *context);
/* Leaves the target and writes the rest of the trace. Fills *RECEIPT in any case. ERR_NOT_CLEAN when something stayed. */
int session_leave(struct session *session, struct session_receipt *receipt, struct error *err);
/* Leaves first where that was not done yet. Accepts NULL. */
void session_free(struct session *session);

const char *backend_name(enum backend backend); /* "monitoring" */

/* Frees a target whose attacher died: takes hooks off. 0 also when there was nothing to do (*found = false). ERR_BUSY when its attacher is at work. */
int session_detach(struct target *target, const struct session_options *options, bool *found, struct error *err);

#endif
