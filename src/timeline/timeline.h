/*
 * One clock, matched calls, stacks and totals of one trace. Built in a streaming pass over the chunks; memory is bounded by the
 * number of functions, call-tree nodes, threads and sample points, not by the number of events. All times are ns from
 * timeline.start_ns (CLOCK_MONOTONIC of the machine that recorded). One arena, one free. Everything is sorted so that the same trace gives
 * the same timeline, byte for byte.
 */
#ifndef INFERSCOPE_TIMELINE_TIMELINE_H
#define INFERSCOPE_TIMELINE_TIMELINE_H

#include "abi/thread_counter.h"
#include "trace/reader.h"

/* How good a number is. EXACT: every call was seen. COUNTED: calls exact, times estimated. SAMPLED: from samples.
 * ESTIMATED: seen in part of the time only (coverage), scaled up to the whole. */
enum precision { PRECISION_EXACT = 0, PRECISION_COUNTED = 1, PRECISION_SAMPLED = 2, PRECISION_ESTIMATED = 3 };

enum { THREAD_STATES = THREAD_IDLE + 1 };

enum function_kind { FUNCTION_PYTHON = 0, FUNCTION_C = 1, FUNCTION_NATIVE = 2, FUNCTION_UNKNOWN = 3 };

struct function {
	uint32_t id;            /* index into timeline.functions */
	enum function_kind kind;
	const char *name;       /* qualified where known */
	const char *file;       /* "" when unknown; for C functions the module, for native ones the library where no source is known */
	uint32_t line;
	enum precision precision;
	double coverage;        /* share of the time in which it could be seen, 0–1 */
	uint64_t seen_calls;    /* calls seen; enters after an arm or a window begins */
	uint64_t seen_self_ns, seen_total_ns; /* inside the windows; total counts recursion once */
	uint64_t calls;         /* what the report says: seen, or scaled by coverage when ESTIMATED */
	uint64_t self_ns, total_ns;
	uint64_t self_low_ns, self_high_ns; /* 95 % confidence interval of self_ns, where that is an estimate; both 0: exact, or not known */
	uint64_t cpu_self_ns;   /* self time × share of CPU of its threads in those moments; estimate */
	uint64_t cpu_work_ns;   /* the same with that of the native frames right below: what a Python programmer can change. Of native functions only where no other is above */
	uint64_t longest_ns;    /* one call, from enter to leave */
	uint64_t exceptions;    /* left by one */
	uint64_t samples_self, samples_total;
	bool self_split;        /* a part of its own time was given to native functions below it, as samples say: self_ns is an estimate */
	const char *native, *native_file; /* of a C function: the native one that it is, and where; "" when not known */
	uint32_t threads;       /* on how many it ran */
	bool waiter;            /* it is there to wait (Condition.wait, select, sleep …): its time is no work */
	uint64_t lock_wait_ns;  /* its threads stood in it and waited for a lock; from readings */
};

/* Calling context tree: one node per distinct stack. Node 0 is the root of all threads. */
struct tree_node {
	uint32_t parent;   /* UINT32_MAX for the root */
	uint32_t function; /* UINT32_MAX for the root; for its children: see thread */
	uint32_t thread;   /* index into threads; nodes of different threads are different */
	uint32_t depth;
	uint64_t calls, self_ns, total_ns; /* as seen (not scaled) */
	uint64_t samples;  /* with exactly this stack */
	uint64_t estimated_self_ns; /* scaled, as functions' self_ns is: these add up to them */
	uint64_t cpu_self_ns; /* as functions' */
	uint64_t longest_ns; /* one call with this stack */
	uint64_t exceptions; /* calls left by one */
	uint64_t gil_ns;   /* its thread ran Python in exactly this stack, and so held the GIL; from samples. Native code that keeps the GIL is not in it */
	uint64_t gpu_ns;   /* devices worked so long on what was asked for in exactly this stack */
	uint64_t instructions; /* executed by its thread in exactly this stack, as told by samples; where counters_known has them */
};

/* A stretch of time in which a thread had the same outside state. */
struct thread_point {
	uint64_t at_ns;      /* of the reading */
	uint64_t cpu_ns, run_wait_ns; /* cumulative */
	uint64_t voluntary, involuntary;
	uint32_t state;      /* letter */
	uint32_t wait;       /* string id of the system call it was blocked in, 0 = none */
};

struct thread {
	uint32_t tid;
	uint32_t process;         /* index */
	const char *name;
	const char *unhooked;     /* why its calls are not seen, or NULL */
	bool python;              /* had at least one Python frame */
	bool ours;                /* InferScope's own thread in the target, while it measures: no part of the program */
	bool device_calls_alone;  /* nothing of it is known but its calls of a device's runtime: what it did between them is unknown_ns */
	uint64_t first_ns, last_ns; /* seen alive */
	uint64_t cpu_ns, run_wait_ns, voluntary, involuntary; /* over that time */
	uint64_t wall_ns;
	uint64_t python_ns, native_ns, gil_wait_ns, lock_wait_ns, io_wait_ns, gpu_wait_ns, sleep_ns, runnable_ns, idle_ns, unknown_ns; /* adds up to wall_ns */
	uint64_t events, lost;
	uint64_t covered_ns;      /* wall time with hooks on and nothing lost */
	uint64_t hooks_ns;        /* what its events cost it, lost ones included, at the collector's own measure; 0 where that is not known */
	uint64_t deepest;
	uint64_t counters[THREAD_COUNTERS]; /* while it was watched; known, scaled: bits. Scaled ones are estimates: the processor counted for a part of the time */
	uint32_t counters_known, counters_scaled;
	uint32_t point_count;
	const struct thread_point *points;
};

/* What all threads together did in a stretch of time; indexed by enum thread_state. A state's time may be longer than the slot. */
struct load_slot { uint64_t start_ns, end_ns, state_ns[THREAD_STATES]; };

/* Why a device, or a stream, had nothing to do: docs/metrics.md. */
enum gpu_idle { GPU_NO_DEMAND = 0, GPU_HOST_LATE, GPU_SYNC_CAUSED, GPU_DEVICE_DEPENDENCY, GPU_IDLE_UNKNOWN /* nobody knows who asked for the work after it */, GPU_IDLE_CAUSES };

/* What one device did; busy times are unions over its streams, so that overlapping kernels count once. */
struct device {
	uint32_t id;
	const char *name, *uuid, *instance; /* of the card; instance: of its MIG instance; "": not told, or several cards have this number */
	uint64_t memory_bytes;              /* 0: not told */
	uint32_t multiprocessors, compute;  /* compute: 90 = 9.0; 0: not told */
	uint64_t kernels, copies, busy_ns, kernel_ns, copy_ns; /* kernel_ns and copy_ns may overlap; busy_ns is their union */
	uint64_t copy_exposed_ns; /* copies while no kernel ran */
	uint64_t h2d_bytes, d2h_bytes, d2d_bytes;
	uint64_t first_ns, last_ns;
	uint64_t idle_ns[GPU_IDLE_CAUSES]; /* with busy_ns they add up to the duration */
	bool cut; /* too many intervals: busy times are a lower bound */
};

/* How long one thread waited for the GIL while another one held it. */
struct gil_wait {
	uint32_t holder; /* index into threads; UINT32_MAX = not known */
	uint32_t waiter;
	uint64_t wait_ns; /* estimate; for each waiter these add up to its gil_wait_ns */
	uint64_t samples;
};

/* What a device does, as far as busy times are told apart: kernels of collective communication (NCCL, RCCL) by their names; copies and memsets. */
enum gpu_class { GPU_COMPUTATION = 0, GPU_COMMUNICATION = 1, GPU_MEMORY = 2, GPU_CLASSES };

/* Work that was asked for and had not begun, read at each call that asks and each beginning of work. */
struct gpu_queue { uint64_t readings; uint32_t p50, max; uint64_t full_ns; /* with GPU_QUEUE_FULL or more: a launch has to wait there */ };
enum { GPU_QUEUE_FULL = 1024 };
/* idle_ns: between its first work and its last. */
struct gpu_stream { uint32_t device, stream, process /* index: each numbers its own */; uint64_t busy_ns, idle_ns[GPU_IDLE_CAUSES]; struct gpu_queue queue; };
/* What devices idled for one cause while the thread that asked for the work after it stood in one stack. */
struct gpu_idle_stack {
	enum gpu_idle cause;
	uint32_t node;  /* deepest call that lasted for at least half of the host's part of the gap; UINT32_MAX = none seen */
	uint64_t count, time_ns, p50_ns, longest_ns, longest_at_ns;
};
/* A gap between the work of a device, and how much of it is due to one cause; other causes may have parts of the same gap. NODE as above. */
struct gpu_idle_gap { uint64_t start_ns, end_ns, time_ns; uint32_t device /* its id */, node; enum gpu_idle cause; };
/* Calls of the runtime or driver. Of those of one class that the same Python function made: */
enum gpu_call_class { GPU_CALL_OTHER = 0, GPU_CALL_LAUNCH, GPU_CALL_GRAPH_LAUNCH, GPU_CALL_SYNC, GPU_CALL_COPY, GPU_CALL_ALLOC, GPU_CALL_MODULE, GPU_CALL_CLASSES };
enum gpu_call_class gpu_call_class_of(const char *name); /* "cudaLaunchKernel": GPU_CALL_LAUNCH */
struct gpu_site {
	enum gpu_call_class class_;
	uint32_t function; /* innermost Python function, else the innermost one, at the call; UINT32_MAX = none seen */
	uint64_t count, time_ns;
	uint64_t blocked, blocked_ns; /* of them, calls in which the host waited for the device: synchronisation, and copies that it waited for */
	uint64_t bytes;    /* of copies */
	uint64_t gpu_ns;   /* the device worked so long on what they asked for */
};
/* Copies of one kind. memory_kinds: source in the low byte, destination in the next, as CUPTI numbers them (8 = host memory of ROCm); bit 16: between devices. */
struct gpu_copies { enum event_kind kind; uint32_t memory_kinds; uint64_t count, bytes, time_ns; };

/* All devices of the trace together, to the nanosecond; busy times are lengths of unions. */
struct gpu_facts {
	uint64_t events;                /* kernels, copies, memsets */
	uint64_t span_ns;               /* from the first one's start to the last one's end */
	uint64_t busy_ns[GPU_CLASSES], count[GPU_CLASSES];
	uint64_t any_ns;                /* any class */
	uint64_t overlap_ns[GPU_CLASSES]; /* [c]: of the two other classes than c, on one device */
	size_t stream_count, copies_count;
	const struct gpu_stream *streams; /* by device, stream and process */
	const struct gpu_copies *copies;  /* by kind, then memory kinds */
	uint64_t launches;              /* work whose launch call was recorded */
	int64_t launch_delay_min_ns, launch_delay_median_ns, launch_delay_p95_ns, launch_delay_max_ns; /* from the end of the call to the start of the work */
	uint64_t launch_delays;         /* calls whose work began: from each to its first work */
	uint64_t late_launches;         /* of them, more than GPU_LATE_LAUNCH_NS from the end of the call */
	uint64_t launch_calls, launch_call_p50_ns, launch_call_p95_ns, slow_launch_calls; /* calls that launch kernels and graphs; slow: more than GPU_SLOW_CALL_NS */
	uint64_t slow_launch_ns;        /* what they took beyond that */
	uint64_t early, early_most_ns;  /* work that began before its launch call did, which cannot be: the two clocks are off by so much */
	uint64_t launched_kernels, short_kernels; /* of the launches: kernels; and of these, those that ran for less time than their part of the launch call's, of which each piece of its work has the same */
	uint64_t kernel_p50_ns;
	uint64_t blocked_most_ns;       /* the thread that waited most for devices waited so long */
	size_t site_count, idle_stack_count, idle_gap_count;
	const struct gpu_site *sites;   /* longest time first */
	const struct gpu_idle_stack *idle_stacks; /* longest time first; at most GPU_IDLE_STACKS_MAX */
	const struct gpu_idle_gap *idle_gaps;     /* by cause, then stack */
};
enum { GPU_IDLE_STACKS_MAX = 200, GPU_LATE_LAUNCH_NS = 100000, GPU_SLOW_CALL_NS = 50000 /* both as HolisticTraceAnalysis has them */ };

/* System calls of one name: "read(socket)". SAMPLED: those that threads were seen blocked in, at looks; each block counts once, its length and the percentiles are estimates. */
struct syscall_summary {
	const char *name;
	uint64_t count, time_ns, p50_ns, p95_ns, longest_ns;
	uint64_t bytes;   /* moved, as the calls returned */
	uint64_t failed;  /* returned an error, EAGAIN among them */
	bool sampled;
	bool waits;       /* it is there to wait for others, or for time */
	uint32_t index;   /* in the order of their first calls */
};
/* Those of one name from one stack, as far as it is known: of the calls that were open at that moment, or of a sample that was taken meanwhile. */
struct syscall_site { uint32_t syscall; /* index into syscalls */ uint32_t node; uint32_t function; /* the innermost Python function, UINT32_MAX = none */ uint64_t count, time_ns; };

/* What counters gained from sample to sample while a function was the innermost Python one (where there was none: the innermost one). */
struct counter_site { uint32_t function; /* UINT32_MAX: the stack is not known */ uint64_t gained[SAMPLED_COUNTERS]; };

/* A name of with scope(...), or a function that was made one: calls of those are only seen while hooks are on. */
struct scope_latency {
	const char *name;
	uint32_t function;  /* of functions, else UINT32_MAX */
	uint64_t count, total_ns; /* seen from beginning to end; what is below is of these */
	uint64_t p50_ns, p95_ns, p99_ns, max_ns, max_at_ns;
	uint64_t p50_most_ns, p95_most_ns, p99_most_ns; /* if those that were cut took longest; UINT64_MAX: nobody knows */
	uint64_t cut;       /* began while they were watched, and their end could not be seen */
	double coverage;    /* share of the time in which they could be seen */
	bool estimated;     /* that is not all of it */
	uint64_t all_count, all_ns; /* in the whole capture: of functions as their table says */
	uint64_t open_ns;   /* at least one was open, in the whole capture */
};

/* Of the scopes and calls that were not seen from beginning to end: how many beginnings, how many ends; a call that is longer than a window may give one of each. */
struct scope_parts { bool any; uint64_t begun, ended; };

/* A stretch in which samples saw THREAD in one state, with one stack. HOLDER: index of the thread that held the GIL meanwhile, where it waited for it. */
struct moment { uint64_t start_ns, end_ns; uint32_t thread, holder; /* UINT32_MAX = not known */ uint32_t node; /* 0 = no stack */ enum thread_state state; };

struct window { uint64_t start_ns, end_ns; uint32_t reason; /* why it ended; enum window_reason */ };

/* A number at a moment. */
struct counter_point { uint64_t at_ns; int64_t value; };

struct process {
	uint32_t pid, parent;
	const char *command, *executable, *python;
	uint64_t start_unix_ns;
	bool timed;                  /* it was read at two moments: else what follows is not known, and 0 */
	uint64_t user_ns, system_ns; /* over the capture */
	uint64_t rss_first_bytes, rss_last_bytes, rss_max_bytes;
	uint64_t minor_faults, major_faults;
	uint32_t threads_max;
	uint32_t rss_point_count;
	const struct counter_point *rss_points; /* resident memory over time, bytes; at most COUNTER_POINTS */
};

struct counter { const char *name; int64_t first, last, max; uint64_t first_ns, last_ns; /* when these two were read */ uint32_t count; uint32_t point_count; const struct counter_point *points; /* the first ones, by time; at most COUNTER_POINTS */ };
enum { COUNTER_POINTS = 1 << 16 };
struct capture_value { const char *key, *value; };

/* What the budget did about one function. FUNCTION: index, or UINT32_MAX; LOAD: what hooks would have cost, to what they may. */
struct throttle_change { uint64_t at_ns; uint32_t what; /* enum throttle */ uint32_t function; double load; };

/* What the program got done in turns with collection and in turns without it, which came in pairs. */
enum work_unit {
	WORK_UNKNOWN = 0, /* why says why */
	WORK_ITEMS,       /* scopes of one name that ended */
	WORK_SECONDS,     /* ns of wall time: the program waits for work, and is asked for as much in both */
};
struct turns {
	enum work_unit work;
	const char *item, *why;
	size_t pairs;              /* 0, and work unknown, and why NULL: there were no turns */
	double work_on, work_off, cpu_on_ns, cpu_off_ns; /* sums over the pairs */
	double ratio, ratio_low, ratio_high; /* work per CPU time with collection to that without, and its 95 % confidence interval */
	double ledger_pct;         /* of the CPU time of turns with collection: what measuring cost as it counted itself; below 0 = not known */
};

/* The clocks of the machine that recorded, as read while it was. */
struct wall_clock {
	uint64_t readings;     /* 0: none, and all else is 0 */
	uint64_t unix_ns;      /* at time 0 of the timeline */
	uint64_t bound_ns;     /* of that, against the machine's own clock: width of a reading, steps and drift in the course of the trace */
	uint64_t sync_ns;      /* so far that clock may be off, as its kernel says; UINT64_MAX: it is not synchronised */
	bool monotonic;        /* the two below were told */
	uint64_t monotonic_ns; /* CLOCK_MONOTONIC of the machine at time 0 of the timeline: all traces of one boot share it */
	uint64_t monotonic_bound_ns; /* of that, as bound_ns */
};

struct timeline_quality {
	uint64_t events, lost_events, unmatched, skipped_calls, cut_strings, damaged_chunks, unresolved_names, torn_samples, samples, unjoined_samples; /* unjoined: the sampled stack and the calls of that moment contradict each other */
	bool truncated;
	uint64_t outside;   /* call events at times when hooks were off */
	uint64_t beyond_limits; /* samples, calls, work of devices, scopes: left out, as there were more than is taken */
	uint64_t other_calls; /* calls in stacks too deep or too many for the tree: under "(other)" */
};

struct timeline {
	uint64_t start_ns;     /* absolute CLOCK_MONOTONIC; 0 of all other times */
	uint64_t duration_ns;  /* of the measurement: first WINDOW_ON or first reading to the end */
	uint64_t start_unix_ns;
	size_t function_count, node_count, thread_count, window_count, process_count, counter_count, capture_count, slot_count, device_count, gil_wait_count, throttle_count, scope_count, moment_count;
	const struct function *functions; /* sorted: self_ns descending, then name, file, line */
	const struct tree_node *nodes;    /* parents before children */
	const struct thread *threads;     /* sorted by tid */
	const struct window *windows;     /* hooks on, sorted, inside [0, duration_ns] */
	const struct process *processes;
	const struct counter *counters;   /* sorted by name */
	const struct capture_value *captures; /* sorted by key */
	const struct load_slot *slots;    /* sorted, without gaps, over [0, duration_ns]; none without readings or calls */
	const struct device *devices;     /* sorted by id */
	struct gpu_facts gpu;
	const struct scope_latency *scopes; /* most time first */
	struct scope_parts scope_parts;
	uint64_t scopes_open_ns;          /* at least one of any name was open, in the whole capture */
	const struct gil_wait *gil_waits; /* longest first */
	const struct throttle_change *throttles; /* as they came */
	size_t syscall_count, syscall_site_count;
	const struct syscall_summary *syscalls;   /* those that only wait last, then most time first */
	const struct syscall_site *syscall_sites; /* most time first */
	size_t counter_site_count;
	const struct counter_site *counter_sites; /* most page faults first */
	uint32_t counters_known;          /* of any thread: bits */
	const struct moment *moments;     /* by thread, then time; they do not overlap; none without samples */
	bool native_split;                /* CPU time is split into Python and native; else all of a Python thread's is called Python */
	struct wall_clock wall;
	struct turns turns;
	double coverage;                  /* hooks on / duration */
	struct timeline_quality quality;
	struct timeline_private *private_; /* arena, strings */
};

int timeline_build(struct trace *trace, struct timeline **out, struct error *err);
/* Functions that fit one of PATTERNS are scopes as well: globs over "qualified.name", "file.qualified.name" (of "/srv/file.py") or "file.py:qualified.name". */
struct scope_patterns { const char *const *items; size_t count; };
int timeline_build_scoped(struct trace *trace, const struct scope_patterns *patterns, struct timeline **out, struct error *err);
void timeline_free(struct timeline *timeline);
/* Value of a capture key or counter; NULL or FALLBACK when it is not there. */
const char *timeline_capture(const struct timeline *timeline, const char *key);
int64_t timeline_counter(const struct timeline *timeline, const char *name, int64_t fallback);

/* A closed call or other interval, for exports: one more pass over the trace (which is rewound first). Calls come per lane in order
 * of their END; threads and functions are as in TIMELINE. A generator gives one interval from each resume to the next yield.
 * A scope comes as SCOPE_ENTER from its beginning to its end when it ends, and as SCOPE_EXIT of no length there. */
struct interval {
	uint8_t kind;       /* enum event_kind of its beginning: PY_ENTER, C_ENTER, CPU_SYSCALL, MEMORY_*, GC, GPU_*, H2D_COPY, D2H_COPY, SCOPE_ENTER, SCOPE_EXIT, INSTANT */
	uint64_t start_ns, end_ns;
	uint32_t thread;    /* index, or UINT32_MAX */
	uint32_t function;  /* index, or UINT32_MAX */
	uint32_t depth;
	uint32_t lane;      /* where it stood in the trace: calls of one lane nest */
	uint32_t process;   /* index */
	bool open_start, open_end; /* began before, or ended after, it was watched */
	bool exception;
	bool sampled;       /* its length is an estimate, and others were not seen */
	const char *name;   /* of scopes, instants, kernels, system calls */
	const char *metadata;
	uint32_t device, stream, grid[3], block[3];
	uint32_t correlation; /* of the device's work and of the call that asked for it, in its process; 0 = none */
	uint64_t flow;        /* the same, among all processes; 0 = none, or nobody knows whose work it is */
	uint64_t bytes;
	uint32_t memory_kinds; /* of copies, as struct gpu_copies */
};
/* EACH returns false to end early. */
int timeline_intervals(const struct timeline *timeline, struct trace *trace, bool (*each)(void *context, const struct interval *interval), void *context, struct error *err);
/* The same of devices' work and the calls that asked for it alone: quicker, because lanes without such are not replayed. */
int timeline_device_work(const struct timeline *timeline, struct trace *trace, bool (*each)(void *context, const struct interval *interval), void *context, struct error *err);
/* All of them, and BEGIN as well, when a call opens (its end_ns is its start_ns): the calls of a lane open and close as brackets do, at times that never go back. */
int timeline_walk(const struct timeline *timeline, struct trace *trace, bool (*begin)(void *context, const struct interval *interval), bool (*each)(void *context, const struct interval *interval), void *context, struct error *err);

#endif
