/* What the parts of the timeline share while one is built. Nobody outside src/timeline includes it. */
#ifndef INFERSCOPE_TIMELINE_PRIVATE_H
#define INFERSCOPE_TIMELINE_PRIVATE_H

#include "base/arena.h"
#include "base/list.h"
#include "base/map.h"
#include "timeline/open_scopes.h"
#include "timeline/pieces.h"
#include "timeline/spread.h"
#include "timeline/timeline.h"

/* Limits against hostile files; a healthy trace is far from all of them. */
enum {
	PROCESSES_LIMIT = 4096,
	LANES_LIMIT = 65536,
	THREADS_LIMIT = 65536,
	FUNCTIONS_LIMIT = 1 << 20,
	STACKS_LIMIT = 1 << 22,
	SAMPLES_LIMIT = 1 << 24,
	POINTS_LIMIT = 1 << 22,
	WINDOWS_LIMIT = 1 << 20,
	SEGMENTS_LIMIT = 1 << 24, /* of all lanes */
	NODES_LIMIT = 1 << 21,
	FRAMES_LIMIT = 1 << 20,  /* of one stack */
	TREE_DEPTH_LIMIT = 4096, /* deeper calls are counted under "(other)" */
	DIRECT_REFS = 1 << 20,   /* refs below are looked up in an array */
};
#define FULL_COVERAGE 0.9995 /* the sliver before the first event of a capture does not make its numbers estimates */
#define NONE UINT32_MAX
#define NO_TIME UINT64_MAX

/* names.c: functions by what they are called, and by the numbers the trace gives them. */
struct name {
	enum function_kind kind;
	uint32_t name, file, line; /* name and file are string ids */
	uint32_t module;           /* of native frames: string id of the path */
	uint32_t native;           /* of C functions: the native function that it is, + 1 */
	bool split;                /* gave own time to native functions below it */
	uint8_t role;              /* of native frames: enum native_role + 1; 0 = not looked at yet */
	uint8_t leaf;              /* enum thread_state + 1 of a thread that is in it; 0 = not looked at yet */
	double lock_wait;          /* ns */
	uint64_t ran, waited;      /* samples with it as innermost Python or native function, by what the thread did */
	uint64_t counted;          /* calls in COUNT events */
	bool scope;                /* its calls are scopes */
	uint64_t scopes_cut;       /* those whose end could not be seen, as hooks went off */
	double outer_calls;        /* those inside none of itself, in the whole capture */
	uint8_t loader;            /* 2: it loads data for the work on a device; 1: it does not; 0: not looked at yet */
	bool times_shared;         /* some of its time was given to functions that are only counted */
	uint64_t counted_from_ns;  /* absolute: from when it is only counted, or left out; 0 = never */
	bool left_out;             /* not even counted, for a part of the time */
	bool allocates;            /* stands in the stack of a sampled allocation */
};
enum { NAME_UNKNOWN = 0, NAME_OTHER = 1 }; /* always there */
struct names {
	LIST(struct name) list;
	struct map by_key;
	struct map by_ref;    /* process << 32 | ref */
	struct map by_native; /* the same for native frames */
	struct map modules;   /* process << 32 | ref to string id of the path */
};

/* From STANDS_FROM to STANDS_TO it stands for the time since the window before (stands.h); the same: it was not planned. */
struct window_build { uint64_t start_ns, end_ns; uint32_t reason; uint64_t stands_from_ns, stands_to_ns; };

/* Absolute times. */
struct counter_points { struct counter_point *items; size_t count, capacity; };

struct process_build {
	uint32_t number; /* in the file */
	struct process out;
	uint32_t command, executable, python;
	bool named, has_times, has_calls;
	uint64_t user_first, system_first, minor_first, major_first, times_first, times_last /* when its clocks were read */;
	LIST(struct window_build) windows;
	struct counter_points rss;
	bool window_open;
	LIST(uint32_t) refs; /* function + 1 by ref; 0 = unknown */
};

/* A stretch in which one lane's calls could be seen. WEIGHT is how much time a ns in it stands for; in planned windows that is 1, and its part from STANDS_FROM
 * to STANDS_TO stands for GAP besides; CUT: losses took some of that part. */
struct segment { uint64_t start_ns, end_ns; double weight; uint64_t stands_from_ns, stands_to_ns; double gap_ns; bool cut; };

struct lane {
	uint32_t number, process, thread, kind;
	uint32_t owner; /* thread whose scopes stand in it: that of a lane of calls, or the one by which a lane of the device's records is told; NONE = nobody's */
	uint64_t sequence, lost;
	uint64_t first_ns, last_ns; /* of its events, absolute */
	uint32_t syscall;           /* of its thread's part of syscall_order: the next one */
	uint64_t events;
	uint64_t last_call_ns;      /* of its calls, not of stacks that were only found; absolute, 0 = none */
	bool seeded;                /* begins in the middle of a stack */
	bool of_devices;            /* tells what devices did, or calls for it */
	uint64_t begin_ns, end_ns;  /* relative: the part of its thread's life that is this lane's */
	struct pieces gaps;         /* losses, absolute */
	LIST(struct segment) segments; /* relative */
	struct replay *replay;
	uint32_t point;             /* next reading of the thread, as time goes by in this lane */
	uint32_t sample;            /* and its next sample: index into sample_order */
	uint32_t call, gap;         /* its next call of the GPU's runtime: index into gpu_order; its next gap of a device */
	size_t sync;                /* and the next wait for a device: index into the thread's syncs */
	uint64_t emptied_ns;        /* since when its stack is empty below a Python function; NO_TIME = it is not */
};

struct point {
	struct thread_point out;
	uint32_t stack;  /* last sampled stack before it, or NONE */
	uint32_t node;   /* innermost known call at that moment, or NONE */
	bool forever;    /* in the middle of one block of seconds */
	uint64_t sampled_ns[THREAD_STATES]; /* time that samples since the reading before stand for */
	uint64_t spun_ns; /* of that of THREAD_GPU_WAIT: on a CPU */
};

struct thread_build {
	struct thread out;
	uint32_t process, name, unhooked;
	uint64_t start_ns;             /* as told, absolute; 0 = not told */
	uint64_t unhooked_ns;          /* since when it is left alone, absolute */
	uint64_t first_event, last_event, first_reading, last_reading; /* absolute; NO_TIME, 0 = none */
	bool seeded, has_lane, gaps_sampled; /* samples tell what it did while calls could not be seen */
	LIST(struct point) points;
	struct thread_point ended; /* clocks that threads before it had which bore its number: 0 of one alone */
	uint64_t sampled_ns[THREAD_STATES], sampled_all_ns[THREAD_STATES]; /* since the last reading; all along */
	uint64_t spun_ns, spun_all_ns; /* of those of THREAD_GPU_WAIT: on a CPU */
	uint32_t last_stack;
	uint64_t last_stack_ns;
	bool python_sampled, native_known; /* a sampled stack had Python frames; native ones as well: so that it is known where it had none */
	uint64_t samples, gap_samples;
	bool gap_waits_sampled; /* one of the latter was not on a CPU */
	double gap_running_ns, gap_blocked_ns; /* as in nodes, all together */
	double gap_squares, gap_ns; /* of those samples' times; time that they tell of */
	double cpu_seen;      /* CPU time within the segments */
	uint32_t gil_holder;  /* as told last: tid */
	uint64_t gil_told_ns; /* and when, absolute */
	uint64_t counted[THREAD_COUNTERS]; /* as told last */
	uint32_t task;         /* of asyncio, that it ran as told last: row of tasks.c */
	uint64_t task_told_ns; /* and when, absolute */
	uint32_t first_sample, sample_end; /* its part of sample_order */
	uint32_t first_syscall, syscall_end; /* its part of syscall_order */
	uint32_t root, other; /* nodes */
	bool other_calls;      /* it was in a call that is none of a device's runtime */
	double leaf_ns[THREAD_STATES]; /* time by the kind of its innermost call */
	double cpu_python, cpu_c; /* CPU time of Python functions and of C functions, where the latter were traced */
	struct pieces syncs;   /* in a call that waits for a device, by GPU_API; absolute, melted */
	bool syncs_sleep;      /* the driver sleeps meanwhile; else it spins */
	bool drives_gpu;
	uint32_t first_call, call_end, first_gap, gap_end; /* its parts of gpu_order, gpu_gaps */
	struct pieces blocked; /* waiting for a device; absolute, melted */
	struct pieces rests;   /* waiting for work, or in no call at all; absolute */
};

struct stack_entry { uint32_t parent, process, ref; uint8_t kind; bool has_python, has_native; /* it or one further out */ uint8_t state[2]; /* natives_refine()'s, + 1 */ };
struct sample {
	uint64_t at_ns; /* absolute */
	uint32_t thread, stack, weight_ns;
	uint32_t node; /* the innermost call that was open then, NONE = not known */
	bool running, later;
	uint8_t state; /* enum thread_state */
	uint32_t holder; /* of the GIL while this one waited for it: tid, 0 = not known */
	uint32_t stack_node; /* with its own frames added; 0 = not known */
};
struct gil_build { uint32_t holder, waiter; /* tid, index of the thread */ uint64_t ns, samples; };
struct counter_build { uint32_t name; struct counter out; struct counter_points points; };
struct throttle_build { uint32_t function; struct throttle_change out; };
struct capture_build { uint32_t key, value; };
struct cpu_reading { uint64_t at_ns, cpu_ns; }; /* absolute; of the process */
struct offset_range { int64_t first_ns, least_ns, most_ns; }; /* of another clock, less ours */
struct wall_build { uint64_t readings, bound_ns, sync_ns; bool monotonic_missing; struct offset_range wall, monotonic; };

struct node {
	uint32_t parent, function, thread, depth;
	uint32_t last_child; /* the child taken last: most calls repeat */
	uint64_t calls, self_ns, longest_ns, exceptions;
	uint64_t samples, gap_samples; /* with exactly this stack; those among them at times when calls could not be seen */
	uint64_t counted_samples;      /* those when its function was only counted, and others were seen */
	double gap_running_ns, gap_blocked_ns; /* time that the latter stand for, by what the thread did */
	double estimated_calls, estimated_self, cpu_self, cpu_seen; /* scaled by segments' weights, but for cpu_seen */
	double covered_running_ns, covered_blocked_ns; /* time that the other samples stand for */
	double stands_self, stands_cost, stands_calls, given_self; /* stands.c: in the stretch that is being seen; and what stretches gave to it */
	bool stands;
	double slice_self, slice_estimated; /* self time since the last reading: gets its CPU time at the next one */
};

struct gpu_span { uint64_t start_ns, end_ns, bytes; uint32_t process, stream, correlation, memory_kinds, call /* that asked for it, NONE; once the calls are prepared */; uint8_t kind; /* enum event_kind */ uint8_t class_; /* enum gpu_class */ };
struct device_build { struct device out; LIST(struct gpu_span) spans; };
/* What a device said of itself; strings as numbers. */
struct device_about { uint32_t id, name, uuid, instance, multiprocessors, compute; uint64_t memory_bytes; };
struct gpu_call {
	uint64_t start_ns, end_ns; /* absolute */
	uint64_t first_ns;         /* its first work began, NO_TIME */
	uint64_t bytes, gpu_ns;
	uint32_t process, correlation, tid, thread /* NONE */, node /* the innermost call at its start, NONE */;
	uint32_t works;            /* pieces of work that it asked for: those of a CUDA graph are many */
	uint32_t queued;           /* 1 + the stream that had its work in its queue last */
	uint8_t class_;
	bool blocked;
};
/* A device does nothing; absolute. CALL: that asked for the work after it, NONE; THREAD: whose stack tells why, NONE. */
struct gpu_gap { uint64_t start_ns, end_ns; uint32_t device, call, thread, node; bool tail; };
struct scope_build { uint64_t start_ns, end_ns; uint32_t name, function; /* one of them is NONE */ };

struct gain { uint32_t sample, which; /* from COUNTERS_SAMPLED on */ uint64_t value; };
struct syscall_build { uint32_t name; struct syscall_summary out; };
struct syscall_call { uint64_t start_ns, end_ns; /* absolute */ uint32_t thread, name; /* indices; name NONE: no call, but a moment that was asked for */ uint32_t node; /* NONE: not known */ };

struct timeline_private {
	struct timeline timeline;
	struct arena arena;
	struct strings *strings;
	bool failed; /* out of memory */
	struct names names;
	LIST(struct process_build) processes;
	LIST(struct lane) lanes;
	LIST(struct thread_build) threads;
	struct map process_index, lane_index, thread_index;
	LIST(struct stack_entry) stacks;
	struct map stack_index;
	LIST(struct sample) samples;
	uint32_t *sample_order; /* indices into samples by thread and time */
	LIST(struct gil_build) gil;
	struct map gil_index;
	LIST(struct counter_build) counters;
	LIST(struct capture_build) captures;
	struct map counter_index, capture_index;
	LIST(struct throttle_build) throttles;
	LIST(struct cpu_reading) cpu_readings;
	struct wall_build wall;
	LIST(struct device_build) devices;
	LIST(struct device_about) device_abouts;
	LIST(struct gpu_call) gpu_calls;
	struct map launches; /* process and correlation → index in gpu_calls */
	struct map call_classes; /* of calls of the runtime: name → enum gpu_call_class */
	uint32_t *gpu_order; /* indices into gpu_calls by thread and time */
	LIST(struct gain) gains; /* of counters, by samples */
	LIST(struct syscall_build) syscalls; /* by name */
	struct map syscall_index;
	LIST(struct syscall_call) syscall_calls;
	uint32_t *syscall_order; /* indices into syscall_calls by thread and time; NULL: none */
	LIST(struct gpu_gap) gpu_gaps; /* by thread and time */
	struct gpu_idle_gap *idle_gaps; /* timeline.gpu's */
	LIST(struct scope_build) scopes;
	struct open_scopes open_scopes; /* what is kept of each: its name */
	struct pieces scopes_open; /* absolute, melted */
	uint64_t named_open_ns;    /* one that the program named was open: those are seen all along */
	const struct scope_patterns *patterns;
	struct operations_build *operations;
	struct memory_build *memory;
	struct tasks_build *tasks; /* NULL: none */
	LIST(struct node) nodes;
	struct { float self_ns[SPREAD_BATCHES]; } *batches; /* by name: time seen in each part of the capture; NULL = all of it was seen */
	size_t batch_names;
	uint64_t batch_ns;
	double batch_seen_ns[SPREAD_BATCHES]; /* with hooks on; where windows were planned: given out, by the window that stands for it */
	bool planned;        /* some windows are */
	double hook_cost_ns; /* of one event, the collector's own measure */
	uint32_t *node_table; /* hash of (parent, function) to node + 1 */
	size_t node_table_size;
	uint64_t first_window, last_disarm, last_window, first_reading, last_reading, first_event, last_event; /* absolute */
	size_t point_count, segment_count;
	uint32_t *export_function; /* index in timeline.functions of a name, or NONE */
	uint32_t *export_thread;
	uint32_t *export_node;
};

/* names.c */
bool names_begin(struct timeline_private *p);
uint32_t names_string(struct timeline_private *p, const char *bytes, size_t length); /* its id; 0 and p->failed when out of memory */
uint32_t names_find(const struct timeline_private *p, uint32_t process, uint32_t ref); /* NAME_UNKNOWN when nobody named it */
uint32_t names_find_native(const struct timeline_private *p, uint32_t process, uint32_t ref);
/* By events: CODE, C_FUNCTION, NATIVE. */
void names_code(struct timeline_private *p, uint32_t process, const struct event_cursor *event);
void names_c_function(struct timeline_private *p, uint32_t process, const struct event_cursor *event);
void names_native(struct timeline_private *p, uint32_t process, const struct event_cursor *event);
void names_done(struct timeline_private *p);
/* "queue.py" of "/usr/lib/python3.11/queue.py". */
const char *path_base(const char *path);

/* lanes.c: the first pass. */
int lanes_read(struct timeline_private *p, struct trace *trace, struct error *err);
struct lane *lanes_find(const struct timeline_private *p, const struct chunk *chunk);
/* Of its tid, made when it is new; NULL when there are too many. */
struct thread_build *lanes_thread(struct timeline_private *p, uint32_t process, uint32_t tid);
/* facts.c: what one event of LANE says. */
struct ticks;
void facts_take(struct timeline_private *p, struct lane *lane, const struct event_cursor *event, const struct ticks *ticks);
const char *facts_capture(const struct timeline_private *p, const char *key); /* NULL: it was not told */
int64_t facts_counter(const struct timeline_private *p, const char *name); /* its last value; 0 = it was not told */
uint32_t facts_string(struct timeline_private *p, const struct event_cursor *event, unsigned field); /* string id */

/* readings.c, of the first pass: THREAD_TIME, PROCESS_TIME, STACK, SAMPLE. */
void readings_thread(struct timeline_private *p, uint32_t process, const struct event_cursor *event, uint64_t at_ns);
void readings_process(struct timeline_private *p, struct process_build *process, const struct event_cursor *event, uint64_t at_ns);
void readings_stack(struct timeline_private *p, uint32_t process, const struct event_cursor *event);
void readings_sample(struct timeline_private *p, uint32_t process, const struct event_cursor *event, uint64_t at_ns);

/* segments.c: start and duration, threads' lives, lanes' segments. Makes all times of points and windows relative. */
void segments_build(struct timeline_private *p);

/* tree.c */
bool tree_begin(struct timeline_private *p);
uint32_t tree_root(struct timeline_private *p, uint32_t thread); /* the node of a thread's empty stack */
uint32_t tree_child(struct timeline_private *p, uint32_t parent, uint32_t function, uint32_t thread);

/* calls.c: the second pass. */
int calls_read(struct timeline_private *p, struct trace *trace, struct error *err);

/* samples.c */
void samples_weigh(struct timeline_private *p); /* before the calls: which functions run and which wait */
void samples_sort(struct timeline_private *p);  /* and what calls.c needs to tell the samples in a call */
void samples_resolve(struct timeline_private *p);

/* natives.c: which of the native frames inside a Python function are worth telling. */
enum { NATIVES_MAX = 1024 }; /* of one stack; deeper ones lose their outer frames */
enum native_role {
	NATIVE_FOREIGN,  /* C extensions and other libraries */
	NATIVE_RUNTIME,  /* the interpreter and libc */
	NATIVE_CALL,     /* the interpreter on its way into whatever is called */
	NATIVE_DISPATCH, /* the interpreter on its way into a C function */
	NATIVE_WAITING,  /* the interpreter waits for the GIL */
};
enum native_role native_role(struct timeline_private *p, uint32_t function);
/* What the native functions are below of: a Python function, or a C function that it is known to have called; else nothing but a thread. */
enum native_base { BASE_PYTHON, BASE_C_CALL, BASE_THREAD };
/* The functions below the innermost Python frame of STACK, outermost first; all when it has no Python frame. What the interpreter does
 * by itself is Python and left out, but for the C functions that it calls. Returns how many. */
size_t natives_of_stack(struct timeline_private *p, uint32_t stack, enum native_base base, bool running, uint32_t out[NATIVES_MAX]);
/* What a thread does that runs, or waits, with this stack. */
enum thread_state natives_refine(struct timeline_private *p, enum thread_state state, uint32_t stack);
/* Shares the time seen of each call among its native functions, as samples in it say. */
void natives_split(struct timeline_private *p);
/* Which native function each C function is. */
void natives_match(struct timeline_private *p);

/* gil.c: who held the GIL while others waited. */
void gil_told(struct timeline_private *p, struct thread_build *waiter, uint32_t holder, uint64_t at_ns);
void gil_sample(struct timeline_private *p, struct thread_build *waiter, uint64_t at_ns, uint64_t weight_ns);
void gil_build(struct timeline_private *p); /* after the partition */

/* waits.c: what a thread waits for that is blocked in system call WAIT with these innermost functions. */
enum { WAIT_FRAMES = 6 };
struct wait_frames { uint32_t count; const struct name *frames[WAIT_FRAMES]; };
enum thread_state wait_classify(const struct timeline_private *p, const char *wait, uint32_t letter, const struct wait_frames *frames, bool python);
/* The same by the innermost call alone, for threads that nobody read from outside. */
enum thread_state wait_of_leaf(const struct timeline_private *p, struct name *leaf);
struct wait_frames wait_frames_of_node(const struct timeline_private *p, uint32_t node);
struct wait_frames wait_frames_of_stack(const struct timeline_private *p, uint32_t stack);
/* True for a function of the library that is there to wait, and C functions that block. */
bool wait_is_waiter(const struct timeline_private *p, struct name *function);
/* The innermost function that is the program's own, not the library's: who wants the lock. NULL = nobody known. */
struct name *wait_owner(struct timeline_private *p, const struct wait_frames *frames);
enum thread_state wait_refine(const struct timeline_private *p, enum thread_state state, const struct wait_frames *frames);

/* counted.c: gives functions that are only counted their time, by samples. Before anything is added up. */
void counted_share(struct timeline_private *p);

/* partition.c: what threads did, by readings, samples and calls. */
void partition_build(struct timeline_private *p);

/* gpu.c */
void gpu_add(struct timeline_private *p, uint32_t process, const struct event_cursor *event, uint64_t at_ns);
void gpu_about(struct timeline_private *p, const struct event_cursor *c);
void gpu_prepare(struct timeline_private *p); /* before the calls: what they are to tell about devices */
void gpu_build(struct timeline_private *p);
/* From the devices' spans to timeline.gpu. */
void gpu_facts_build(struct timeline_private *p);

/* gpu_calls.c: calls of the GPU's runtime and driver, and who made them. */
void gpu_calls_add(struct timeline_private *p, uint32_t process, const struct event_cursor *event, uint64_t at_ns);
void gpu_calls_prepare(struct timeline_private *p);
/* How long THREAD waited for a device between FROM and TO, relative, by its calls; and how much that took of CPU_NS, its CPU time in WALL_NS that hold SYNC_NS of it. */
uint64_t gpu_sync_within(const struct timeline_private *p, const struct thread_build *thread, uint64_t from_ns, uint64_t to_ns);
uint64_t gpu_sync_cpu(const struct thread_build *thread, uint64_t sync_ns, uint64_t wall_ns, uint64_t cpu_ns);
/* The call that asked for this work, or NULL. */
const struct gpu_call *gpu_call_of(const struct timeline_private *p, const struct gpu_span *span);
/* The stack of LANE was NODE from FROM to TO, relative: calls made then were made there. */
void gpu_calls_run(struct timeline_private *p, struct lane *lane, uint32_t node, uint64_t from_ns, uint64_t to_ns);
void gpu_sites_build(struct timeline_private *p); /* after functions and nodes are exported */

/* gpu_idle.c: why devices did nothing. */
void gpu_gaps_find(struct timeline_private *p);
/* A call of LANE's thread, from START to END (relative), ended; NODE. */
void gpu_gaps_close(struct timeline_private *p, struct lane *lane, uint32_t node, uint64_t start_ns, uint64_t end_ns);
/* The parts of [start, end) that are due to each cause, before work that CALL asked for (NULL = not known); absolute times. */
struct idle_parts { uint64_t ns[GPU_IDLE_CAUSES]; };
struct idle_parts gpu_idle_explain(const struct timeline_private *p, uint64_t start_ns, uint64_t end_ns, const struct gpu_call *call);
void gpu_idle_build(struct timeline_private *p);        /* of devices */
void gpu_idle_stacks_build(struct timeline_private *p); /* after nodes are exported */

/* gpu_streams.c */
void gpu_streams_build(struct timeline_private *p);

/* rests.c: when threads that drive devices had nothing to do themselves. */
struct replay;
void rests_run(struct timeline_private *p, const struct replay *replay, uint64_t from_ns, uint64_t to_ns);
void rests_open(struct timeline_private *p, const struct replay *replay);
void rests_close(struct timeline_private *p, const struct replay *replay, uint64_t at_ns, bool open_end);
/* Adds what samples say, and takes out the time in which scopes were open. */
void rests_build(struct timeline_private *p);

/* scopes.c */
void scopes_begin(struct timeline_private *p, uint32_t lane, const struct event_cursor *event, uint64_t at_ns);
void scopes_end(struct timeline_private *p, uint32_t lane, const struct event_cursor *event, uint64_t at_ns);
void scopes_mark(struct timeline_private *p); /* names that the patterns make scopes */
void scopes_call(struct timeline_private *p, uint32_t function, uint64_t start_ns, uint64_t end_ns, bool open_start, bool open_end); /* relative */
void scopes_melt(struct timeline_private *p); /* what is open at the end is closed there; fills scopes_open */
void scopes_build(struct timeline_private *p); /* after functions are exported */

/* counters.c */
void counters_thread(struct timeline_private *p, uint32_t process, const struct event_cursor *event);
void counters_sample(struct timeline_private *p, uint32_t process, const struct event_cursor *event);
void counters_build(struct timeline_private *p); /* after functions are exported */

/* syscalls.c */
void syscalls_add(struct timeline_private *p, const struct lane *lane, const struct event_cursor *event, uint64_t at_ns);
void syscalls_prepare(struct timeline_private *p); /* before the calls */
/* A moment of a thread whose stack is wanted; node is NONE where nobody knows it, after syscalls_join(). Returns its number, NONE when there are too many. */
uint32_t syscalls_ask(struct timeline_private *p, uint32_t process, uint32_t tid, uint64_t at_ns);
uint32_t syscalls_answer(const struct timeline_private *p, uint32_t asked);
/* The stack of LANE was NODE from FROM to TO, relative. */
void syscalls_run(struct timeline_private *p, struct lane *lane, uint32_t node, uint64_t from_ns, uint64_t to_ns);
void syscalls_join(struct timeline_private *p);  /* after the samples have nodes */
void syscalls_build(struct timeline_private *p); /* after functions, nodes and operations are exported */

/* turns.c */
void turns_reading(struct timeline_private *p, uint64_t at_ns, int64_t cpu_ns);
void turns_build(struct timeline_private *p); /* after totals */

/* wall.c */
void wall_add(struct timeline_private *p, const struct event_cursor *event, uint64_t at_ns);
void wall_build(struct timeline_private *p);

/* The element that would stand at WANTED (below COUNT) if ITEMS were sorted. 0 of none. */
uint64_t nth_of(const uint64_t *items, size_t count, size_t wanted);
/* The element in the middle, the later of two. 0 of none. */
uint64_t middle_of(const uint64_t *items, size_t count);
/* Which of COUNT sorted elements, from 1 on, is the nearest rank: the first that at least PERCENT of them do not exceed. Beyond COUNT where PERCENT is above 100. */
uint64_t percentile_rank(uint64_t count, double percent);
/* That element. PERCENT is at most 100. 0 of none. */
uint64_t percentile_of(const uint64_t *sorted, size_t count, unsigned percent);
/* moments.c: what samples saw each thread do. After totals_build(). */
void moments_build(struct timeline_private *p);

/* operations.c: each kernel, copy, runtime call, wait, system call; then all of them. */
void operations_add(struct timeline_private *p, const struct event_cursor *event);
void operations_build(struct timeline_private *p);
void operations_done(struct timeline_private *p);

/* tasks.c: TASK, TASK_RUN and TASK_WAIT; a sample of THREAD by its state. */
void tasks_name(struct timeline_private *p, uint32_t process, const struct event_cursor *event);
void tasks_run(struct timeline_private *p, uint32_t process, const struct event_cursor *event, uint64_t at_ns);
void tasks_sample(struct timeline_private *p, const struct thread_build *thread, uint64_t at_ns, enum thread_state state, uint64_t weight_ns);
void tasks_wait(struct timeline_private *p, uint32_t process, const struct event_cursor *event);
void tasks_build(struct timeline_private *p);
void tasks_done_building(struct timeline_private *p);
void tasks_done(struct timeline_private *p);

/* memory.c: samples of allocations. LANE: index. */
void memory_add(struct timeline_private *p, uint32_t lane, const struct event_cursor *event, uint64_t at_ns);
void memory_prepare(struct timeline_private *p); /* before functions are exported */
void memory_build(struct timeline_private *p); /* after that */
void memory_done_building(struct timeline_private *p);
void memory_done(struct timeline_private *p);

/* Room for what an event tells, as list_add_or_fail; what comes at the limit is counted. */
static inline void *room_or_left_out(struct timeline_private *p, void *room)
{
	p->timeline.quality.beyond_limits += !room;
	return room;
}
#define keep_event(p, list, limit) ((__typeof__((list)->items))room_or_left_out(p, list_add_or_fail(list, limit, &(p)->failed)))

/* lists.c: arrays of the timeline that are kept as they are. */
void *timeline_keep(struct timeline_private *p, size_t count, size_t size); /* zeroed, the timeline's; NULL and p->failed when out of memory */
void lists_threads(struct timeline_private *p);
void lists_windows(struct timeline_private *p);
void lists_throttles(struct timeline_private *p); /* after functions are exported */
void lists_processes(struct timeline_private *p);
void lists_small(struct timeline_private *p);     /* counters, captures, devices */
/* Adds VALUE at AT_NS, unless it is earlier than the one before. */
void counter_point_add(struct timeline_private *p, struct counter_points *points, uint64_t at_ns, int64_t value);
void lists_quality(struct timeline_private *p);

/* totals.c: fills timeline's arrays from all the above. */
void totals_build(struct timeline_private *p);

#endif
