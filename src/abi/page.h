/*
 * The page that collector and attacher share, at the start of the lanes mapping. The attacher fills "settings" before it lets
 * the collector map it, then only moves `deadline_ticks`, `command` and the free list; the rest is the collector's to write.
 * Every field has a fixed size; PAGE_VERSION changes with any of them. All cross-process fields by __atomic builtins.
 */
#ifndef INFERSCOPE_ABI_PAGE_H
#define INFERSCOPE_ABI_PAGE_H

#include "abi/lane.h"

#define PAGE_MAGIC 0x31454741504b5349ull /* "ISKPAGE1", little-endian */
enum { PAGE_VERSION = 11, PAGE_BYTES = 256 * 1024, PAGE_SKIP_BYTES = 4096, PAGE_TEXT_BYTES = 512, COUNTED_MAX = 256 };

enum collector_state { COLLECTOR_UNINITIALIZED = 0, COLLECTOR_IDLE = 1, COLLECTOR_COLLECTING = 2, COLLECTOR_FINALIZED = 3 };

/* Arming is a race that the attacher may leave: PENDING → ARMED by the collector under the GIL, PENDING → CANCELLED by the attacher, each by compare-and-swap. */
enum arm_state { ARM_PENDING = 0, ARM_ARMED = 1, ARM_CANCELLED = 2, ARM_FAILED = 3, ARM_DISARMED = 4 };

enum backend { BACKEND_AUTO = 0, BACKEND_NONE = 1, BACKEND_MONITORING = 2, BACKEND_EVALUATOR = 3, BACKEND_SETPROFILE = 4, BACKEND_SETTRACE = 5 };
enum c_calls { C_CALLS_AUTO = 0, C_CALLS_ALL = 1, C_CALLS_NONE = 2 };

/* page.switch_word: what the switch thread (if there is one) sleeps on, a futex. The collector sets SWITCH_OFF with a wake when
 * a window ends and `switch_at_ticks` when the next begins; SWITCH_QUIT makes it end. */
enum { SWITCH_NONE = 0, SWITCH_RUNNING = 1, SWITCH_OFF = 2, SWITCH_QUIT = 3 };

/* Whether there may be a switch thread. From 3.12 on os.fork() warns on the program's stderr of a second thread: there is one of ours only beside others. */
enum may_start { SWITCHER_NO = 0, SWITCHER_ALWAYS = 1, SWITCHER_BESIDE = 2 /* it ends when the program has ended its other threads */ };

/* Why arming failed or a backend was refused, or hooks stayed (MEMORY): page.reason; page.reason_text says more. Names are in docs/errors. */
enum collector_reason {
	REASON_NONE = 0,
	REASON_NOT_PYTHON, REASON_NOT_INITIALIZED, REASON_FINALIZING, REASON_VERSION, REASON_FREE_THREADED,
	REASON_SYMBOLS,       /* reason_text: the first one missing */
	REASON_MEMORY, REASON_HOOK_TAKEN, REASON_AUDIT_HOOK, REASON_TOOL_IDS_TAKEN, REASON_PYTHON_ERROR, REASON_THREAD, REASON_LAYOUT,
};

/* What became of the device's part; gpu_status.state. From GPU_ENDED on no call into CUPTI follows. */
enum gpu_state {
	GPU_OFF = 0,      /* not wanted, or not yet begun */
	GPU_STARTING = 1,
	GPU_WAITING = 2,  /* the driver is there, but the program has not initialised CUDA yet */
	GPU_ON = 3,
	GPU_LEAVING = 4,
	GPU_ENDED = 5,    /* was on; gpu_status.text says why when nobody asked for it */
	GPU_FAILED = 6,   /* never was; gpu_status.text says why */
	GPU_BUSY = 7,     /* never was: another tool has CUPTI; its name in gpu_status.holder, if it is told */
};
enum gpu_wish { GPU_NO = 0, GPU_NOW = 1, GPU_LATER = 2 /* when page.gpu_begin or HANDOVER_GPU says */ };
enum gpu_detach { GPU_DETACH_NONE = 0, GPU_DETACH_HARD = 1 /* CUPTI is gone from the process */, GPU_DETACH_SOFT = 2 /* it stays, without work */ };
/* Whether collections of garbage are told; page.gc_state. */
enum gc_state { GC_OFF = 0, GC_TOLD = 1, GC_UNKNOWN = 2 /* gc.callbacks is not what it should be */, GC_LEFT = 3 /* our entry stays there, without effect: others stand behind it, and a collection was running */ };
/* Sampling of allocations; page.memory_state. The last three are said at disarm. */
enum memory_state {
	MEMORY_OFF = 0, MEMORY_SAMPLED = 1,
	MEMORY_NO_ROOM = 2,   /* for the table */
	MEMORY_NO_LAYER = 3,  /* allocators changed too often under us: nothing is touched any more, and nothing was unless memory_ended_ticks says so */
	MEMORY_TAKEN_OFF = 4, /* the allocators are what they were */
	MEMORY_LEFT = 5,      /* another tool stands on our functions: they stay, and pass everything on */
	MEMORY_TOO_DEAR = 7,  /* passing on alone costs more than the budget, and nobody is there to put us back after a rest: the allocators are what they were */
	MEMORY_CUT = 6,       /* another tool put back what was there before it, and us: the end of the window was not seen */
};
enum { MEMORY_FRAMES_MAX = 16, MEMORY_NATIVE = 3 /* domain of what native libraries allocate; raw is 0, mem 1, object 2 */ };
/* Sampling of what native libraries allocate; page.heap_state. From HEAP_TAKEN_OUT on, said at disarm. */
enum heap_state {
	HEAP_OFF = 0, HEAP_SAMPLED = 1,
	HEAP_NO_ROOM = 2,   /* for the table */
	HEAP_OTHER = 3,     /* an earlier session found other functions, or stands in there still: no slot was touched */
	HEAP_TOO_DEAR = 4,  /* passing on alone costs more than the budget */
	HEAP_TAKEN_OUT = 5, /* all slots are what they were, but for heap_left of them, which another tool has changed */
};
enum heap_function { HEAP_MALLOC = 0, HEAP_CALLOC, HEAP_REALLOC, HEAP_FREE, HEAP_POSIX_MEMALIGN, HEAP_ALIGNED_ALLOC, HEAP_FUNCTIONS };
#define HEAP_FUNCTION_NAMES { "malloc", "calloc", "realloc", "free", "posix_memalign", "aligned_alloc" }
enum { HEAP_SLOTS_MAX = 4096 };
enum gpu_graphs { GPU_GRAPHS_NODE = 0, GPU_GRAPHS_GRAPH = 1 };
enum { GPU_PATH_BYTES = 512, GPU_HOLDER_BYTES = 64 };

/* The collector's: written by its GPU thread and by CUPTI's threads, under a lock of the collector's. */
struct gpu_status {
	uint32_t state;   /* enum gpu_state, stored with release */
	int32_t result;   /* of the call that failed: CUPTI's, or the driver's */
	uint32_t version; /* cuptiGetVersion() */
	uint32_t driver;  /* cuDriverGetVersion() */
	uint32_t api;     /* 1, 2: which family of CUPTI's functions */
	uint32_t detach;  /* enum gpu_detach */
	uint32_t tid;     /* of its thread, 0 = none */
	uint32_t taken;   /* 1: it ended because another tool took CUPTI's buffers over */
	char text[PAGE_TEXT_BYTES];
	char library[GPU_PATH_BYTES];
	char holder[GPU_HOLDER_BYTES];
	uint64_t records, kernels, copies, calls; /* decoded; calls: of runtime and driver */
	uint64_t dropped;    /* by CUPTI, as it says itself */
	uint64_t discarded;  /* buffers it asked for and did not get */
	uint64_t invalid;    /* records without times, or with impossible ones */
	uint64_t unfinished; /* work that had not ended when we left */
	uint64_t unknown;    /* records of kinds we do not know */
	uint64_t malformed;  /* shorter than their kind can be, or outside their buffer */
	uint64_t skipped;    /* calls not recorded, because a lock was taken just then */
	uint64_t buffers, buffer_bytes;
	uint64_t overhead_ns; /* CUPTI's own work, as it says itself */
	uint64_t work_ns;     /* ours */
	uint64_t beats, beats_seen; /* our own call, each tick, and its records: they stop coming when somebody takes our buffers */
	uint64_t free_bytes_first, free_bytes_last; /* device memory, all devices in use; 0 = not told */
	uint64_t attach_ns, detach_ns;
};

/* A function that is only counted: hot, tiny, and its events were more than the budget holds. Its writer holds the GIL. */
struct counted {
	uint32_t ref; /* as CODE has it; stored with release after the row is valid */
	uint32_t reserved;
	uint64_t calls; /* since the function is counted; never taken back */
};

struct page {
	/* settings: the attacher's, constant after arm */
	uint64_t magic;
	uint32_t version;
	uint32_t page_bytes;
	uint64_t mapping_bytes;  /* page and all sub-buffers, allocated or not */
	uint32_t subbuf_count;   /* that fit the mapping */
	uint32_t clock;          /* enum clock_kind */
	uint64_t ticks_per_second;
	uint32_t attacher_pid;   /* as the target's namespace sees it, 0 if it does not; for people */
	uint32_t backend;        /* enum backend, as asked */
	uint32_t c_calls;        /* enum c_calls */
	uint32_t max_overhead_ppm; /* 50 000 = 5 %; 0 = no limit */
	uint32_t lines;          /* settrace: also LINE events */
	uint32_t seed;           /* 1: put the frames on the stack at arm into the lanes */
	uint32_t skip_default;   /* 1: leave out our own code and the frozen import machinery */
	uint32_t skip_presets;   /* bit 0 dunder, bit 1 internals (threading, asyncio, contextlib, functools, abc, typing, collections …) */
	uint32_t may_start_thread; /* enum may_start; the one setting that the attacher changes later: REARM looks again whether there are other threads by now */
	uint32_t alternate_ms;   /* the switch thread turns all on and off, so long each; 0 = no */
	uint32_t gpu;            /* enum gpu_wish */
	uint32_t thread_tid_offset; /* in glibc's struct pthread: where its tid stands; 0 = unknown */
	uint32_t gpu_memory;     /* 1: allocations on the device too */
	uint32_t gpu_graphs;     /* enum gpu_graphs */
	uint64_t gpu_records_max; /* the device's part ends by itself after so many records */
	uint32_t gc;             /* 1: an entry of ours in gc.callbacks */
	uint32_t gpu_ranges;     /* 1: CUPTI is told of NVTX ranges in this process: record them */
	uint64_t memory_interval; /* bytes between samples of allocations, on average; 0 = no allocator is touched */
	uint32_t heap_slot_count; /* 0: no slot is touched */
	uint32_t heap_unbound;    /* 1: slots that lead into their own library's code, as they do before the first call, too */
	uint64_t heap_functions[HEAP_FUNCTIONS]; /* what bound slots hold; 0: that function's are left alone */
	uint64_t heap_slots[HEAP_SLOTS_MAX]; /* addresses, and enum heap_function in their low three bits */
	char skip_patterns[PAGE_SKIP_BYTES]; /* globs over "qualname" and over "file", each NUL-terminated, ends with an empty one */
	uint64_t attach_id;

	/* the attacher's, moving */
	uint64_t deadline_ticks __attribute__((aligned(64))); /* past it the hooks take themselves off */
	uint32_t stop;           /* 1: take hooks off at the next call; the orderly disarm follows */
	uint32_t pool_count;     /* sub-buffers given to the pool so far; only grows */
	uint32_t gpu_stop;       /* 1: the device's part is to end */
	uint32_t gpu_begin;      /* 1: the driver is there now, and the device's part is to begin: the switch thread looks */
	uint32_t samples_ppm;    /* what samples and the device's part take of max_overhead_ppm: the hooks have the rest */

	/* both, by compare-and-swap */
	uint32_t arm __attribute__((aligned(64))); /* enum arm_state */
	uint32_t pad_arm;
	uint64_t free_head;      /* low 32: index + 1 of the first free sub-buffer (0 = none); high 32: tag against ABA */
	uint64_t order;          /* last given subbuf.order */

	/* the collector's */
	uint32_t state __attribute__((aligned(64))); /* enum collector_state */
	uint32_t reason;         /* enum collector_reason */
	char reason_text[PAGE_TEXT_BYTES];
	uint32_t backend_used;   /* enum backend, may change in mid-session */
	uint32_t python_hex;     /* PY_VERSION_HEX of the target */
	uint32_t hooks_on;       /* 1: a window is open */
	uint64_t arm_ns;         /* GIL held for arming, ns */
	uint64_t cost_ps_py;     /* calibrated cost of one Python enter or leave event, picoseconds */
	uint64_t cost_ps_c;
	uint64_t cost_ticks;     /* all hooks together, since arm (estimate: events × calibrated cost) */
	uint64_t on_ticks;       /* time with hooks on since arm, windows closed so far */
	uint64_t window_count;
	uint64_t brake_count;    /* how often the budget took the hooks off */
	uint64_t events;         /* as lanes count them, for the status line */
	uint64_t code_count;
	uint64_t code_overflow;  /* events of functions beyond the table: charged to "other" */
	uint64_t lane_overflow;  /* events of threads that found no lane */
	uint64_t unmatched;      /* leaves without an enter */
	uint64_t unhooked_threads;
	uint64_t fork_children;  /* forks seen while armed */
	uint32_t switch_word;    /* futex */
	uint32_t switch_tid;
	uint64_t switch_at_ticks;
	uint64_t holder_ns_max;  /* longest time the collector itself kept the GIL outside hooks */
	uint64_t rearm_wanted;   /* a throttled target without a switch thread: the attacher may re-enter (at most once per 10 s) to re-arm */

	uint64_t counted_calls;  /* sum over counted[] */
	uint32_t counted_count;  /* rows in use; stored with release */
	uint32_t alternate_off;  /* 1: a pause of alternate_ms: no hooks, and no samples */
	uint32_t gc_state;       /* enum gc_state */
	uint32_t memory_state;   /* enum memory_state */
	uint64_t memory_calls;   /* of allocators, that our functions passed on, releases not counted */
	uint64_t memory_samples;
	uint64_t memory_missed;  /* samples where nothing could be written: by us, without the GIL, in another interpreter; told with the next that is, or at the end */
	uint64_t memory_full;    /* samples whose end is not told: too many live */
	uint64_t memory_cost_ns; /* of all that: estimate, calls × calibrated cost and samples as measured */
	uint64_t memory_interval_now; /* the budget doubles it */
	uint64_t memory_pauses;  /* turns without, of alternate_ms, and rests where passing each call on all the time is too dear */
	uint64_t memory_ended_ticks; /* the moment since which they are sampled no more, although they were; 0: they are, or never were */
	uint32_t heap_state;     /* enum heap_state */
	uint32_t heap_slots_used;
	uint64_t heap_foreign;   /* slots that hold something else by now */
	uint64_t heap_refused;   /* that must not be written */
	uint64_t heap_left;      /* that another tool has changed since */
	uint64_t heap_calls, heap_samples, heap_full, heap_cost_ns, heap_interval_now; /* as of memory_… */
	uint64_t heap_late;      /* times that the lock was not to be had, and a later allocation was told */
	uint64_t heap_ends_missed;
	uint64_t heap_ended_ticks;
	struct counted counted[COUNTED_MAX];

	struct gpu_status gpu_status;

	struct lane_slot lanes[LANES_MAX] __attribute__((aligned(64)));
};
_Static_assert(sizeof(struct page) <= PAGE_BYTES, "the page fits");

#endif
