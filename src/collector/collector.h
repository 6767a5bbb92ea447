/*
 * The collector's one state and what its files do for each other. Everything here is read and written under the GIL, except
 * what says otherwise.
 *
 *   entry     takes the attacher's commands; lane, code, seed write; budget opens and closes windows, switcher in time;
 *   counted chooses the functions that are only counted, or left out;
 *   greenlets sees that a thread goes on with another stack;
 *   garbage tells collections of garbage; memory samples allocations, which allocators passes on; heap those of native libraries, slots puts it there;
 *   gpu, gpu_*, cupti follow the device;
 *   monitoring, evaluator, setprofile, settrace are the ways to hook: they write lanes from the interpreter's hooks.
 */
#ifndef INFERSCOPE_COLLECTOR_COLLECTOR_H
#define INFERSCOPE_COLLECTOR_COLLECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include "abi/event.h"
#include "abi/page.h"
#include "collector/code.h"
#include "collector/gpu.h"
#include "collector/lane.h"
#include "collector/machine.h"
#include "collector/python.h"
#include "collector/sampled.h"
#include "collector/spending.h"

/* A way to hook. All are called under the GIL; open and close also from inside a hook, so they allocate as little as can be. */
struct hooks {
	enum backend kind;
	int (*install)(char *text, size_t size); /* 0 or a reason; hooks stay off */
	bool (*open)(void);                      /* hooks on; false: somebody else took the place */
	void (*close)(void);                     /* hooks off */
	void (*remove)(void);                    /* undoes install; hooks are off */
	bool (*hooked)(char *tstate);            /* is this thread watched? NULL: all are */
	void (*forked)(void);                    /* in a forked child, perhaps without the GIL: plain stores only. May be NULL */
	/* Per minor version: what one event costs a call-heavy program, in percent of our own part of it as calibrated. Two to
	 * three times what a quiet machine shows (tests/hot/run), as caches are colder in a real program. 0: does not exist there. */
	uint32_t cost_factor[16];
	bool counts[16]; /* per minor version: a counted call is so much cheaper than enter and leave that counting pays */
	bool leaves_out; /* a function that is not wanted costs nothing at all */
};
extern const struct hooks hooks_monitoring, hooks_evaluator, hooks_setprofile, hooks_settrace,
	hooks_monitoring_lines; /* settrace's place from 3.12 on */

/* monitoring.c: what it holds of the interpreter. */
enum { MONITORED_EVENTS = 12, MONITORING_TOOLS = 2 };
struct monitoring {
	PyObject *set_events, *register_callback, *free_tool_id, *disable;
	PyObject *no_events, *all_events;     /* int objects */
	PyObject *tools[MONITORING_TOOLS];    /* int objects: our tool ids */
	PyObject *events[MONITORED_EVENTS], *callbacks[MONITORED_EVENTS];
	int tool_count, tool;                 /* tool: the one in turn */
};

/* counted.c: what one function had of a lane's last events. */
struct tally {
	uint32_t ref, events, enters;
	uint32_t calls, leaves;   /* calls seen from enter to leave; those in which nothing else was seen … */
	uint64_t total, ticks;    /* … and their times */
};
enum { TALLIES = 256 };

/* A trace function that was there before ours. */
struct chained {
	char *tstate;
	trace_function function;
};
enum { CHAINED_MAX = 64 };

/* garbage.c: our entry in gc.callbacks. */
enum garbage_key { GARBAGE_GENERATION = 0, GARBAGE_COLLECTED, GARBAGE_UNCOLLECTABLE, GARBAGE_KEYS };
struct garbage {
	PyObject *keys[GARBAGE_KEYS]; /* str: what is asked of the interpreter's dict */
	uint64_t began;               /* ticks; 0 = none is running that began while we looked */
};

/* budget.c: asking for the process's CPU time; ticks. */
struct cpu_clock {
	uint64_t took, again; /* the last time; from when on it may be asked again */
};

/* memory.c. Not under the GIL: left, calls, missed, and of blocks random and the filter; they may be off a little where interpreters have GILs of their own or a program breaks the rules, and no more. */
enum { MEMORY_DOMAINS = 3 /* of the interpreter's: raw, which is left alone, mem, object */, MEMORY_LAYERS = 8 };
struct allocator { /* PyMemAllocatorEx */
	void *context;
	void *(*malloc)(void *context, size_t size);
	void *(*calloc)(void *context, size_t count, size_t size);
	void *(*realloc)(void *context, void *block, size_t size);
	void (*free)(void *context, void *block);
};
struct layer {
	struct allocator below; /* constant once used */
	bool used;
};
struct memory {
	int64_t left;      /* bytes to the next point; a large number when nothing is sampled */
	uint64_t calls;    /* passed on since they were last counted */
	uint64_t prober;   /* pthread_self() of who looks whether we are called; 0: nobody */
	bool probe_heard;
	uint64_t missed;   /* atomic: points that nothing could be told of, for the page */
	bool on, inside;   /* inside: we are at work, and what is allocated meanwhile is not told */
	int muted;         /* above 0: likewise */
	bool put_on[MEMORY_DOMAINS];
	uint64_t call_ps;  /* of passing on, as calibrated */
	uint64_t begun_at, on_since, off_since; /* ticks, the last two of the last time; 0: never */
	bool cut;          /* other functions were put in our place meanwhile */
	uint64_t rest_until; /* ticks, atomic; 0: no rest */
	struct spending spending;
	struct layer layers[MEMORY_DOMAINS][MEMORY_LAYERS];
	struct sampled blocks;
};

/* heap.c: what native libraries allocate. Without the GIL; busy is the lock of what is not atomic. */
enum { HEAP_COUNTERS_LOG2 = 9, HEAP_COUNTERS = 1 << HEAP_COUNTERS_LOG2, HEAP_PENDING = 1024 /* a thread that holds the lock may lose its CPU for milliseconds */ };
struct heap_counter {
	int64_t left;   /* bytes to the next point */
	uint64_t calls; /* passed on since they were last counted */
} __attribute__((aligned(64)));
struct heap_slot { uint64_t address /* 0: dealt with */, before; uint32_t which; };
struct heap {
	struct { /* constant once known; in the order of enum heap_function */
		void *(*malloc)(size_t size);
		void *(*calloc)(size_t count, size_t size);
		void *(*realloc)(void *block, size_t size);
		void (*free)(void *block);
		int (*posix_memalign)(void **out, size_t alignment, size_t size);
		void *(*aligned_alloc)(size_t alignment, size_t size);
	} real;
	bool busy;          /* atomic */
	bool on;
	bool any_pending;   /* atomic: an address is in pending */
	bool ready;         /* atomic: begun, and the switch thread may act */
	bool paused, dear;  /* a turn without; given up */
	uint64_t off_since; /* ticks; of the last turn without */
	uint32_t nobody;    /* no thread waits here */
	struct lane *lane;
	uint64_t call_ps;   /* of passing on, as calibrated */
	struct spending spending;
	uint64_t unpaid_ns, late, ends_missed, left; /* atomic, but for the last */
	uint64_t pending[HEAP_PENDING]; /* atomic: addresses whose end is still to be told */
	uint32_t slot_count;
	struct heap_slot slots[HEAP_SLOTS_MAX];
	struct heap_counter counters[HEAP_COUNTERS];
	struct sampled blocks;
};

struct collector {
	struct page *page;  /* NULL: not armed */
	struct page settings; /* as they were at arm, in memory of our own: the program may write over the page, and what we divide by or index with must hold */
	size_t mapping_bytes;
	const struct hooks *hooks;
	uint64_t look_at;   /* ticks: past it hooks go to budget_ask() as well */
	int64_t tokens;     /* events that may still be recorded before budget_ask(); below zero whenever hooks must do nothing */
	uint64_t window;    /* of this moment, never the same again in this process; changes when hooks go on or off */
	bool entered;       /* a command is being carried out, atomic */
	uint32_t holder;    /* the attacher whose command that is, or who measures; for people */
	bool waits_for_gil; /* that command; for people */
	uint64_t gil_since;   /* atomic: a thread of ours waits in gil_ensure() from then on, ns; 0: none */
	pthread_t gil_helper;
	uint32_t gil_help_over; /* atomic */
	bool gil_asked;       /* atomic: main is to keep it for a moment, and has not come to that yet */
	bool fork_watched;
	bool fork_told;     /* the interpreter calls us in forked children */
	int lanes_fd;       /* while the lanes are being made; 0 = none */
	struct page *mapped; /* … and from there on until they are armed or given up */
	uint64_t forks;     /* atomic: seen while armed, for the page */
	uint32_t fork_turn; /* atomic: the thread that forks, or keeps others from it; 0 = none */
	bool armed;         /* atomic */
	bool hooks_on;
	bool dead;          /* off for good: deadline, stop, or the interpreter ends */
	bool child;         /* a forked child: nothing here is ours */
	bool tsc;
	bool greenlets;     /* the program has imported greenlet */
	struct python python;
	struct codes codes;
	struct lanes lanes;
	/* budget */
	int64_t allowance;  /* tokens of one cycle in which the process runs all the time: the most that is ever saved */
	int64_t saved;      /* tokens earned while hooks are off; below zero: borrowed */
	int64_t unpaid;     /* tokens that budget_charge() wants */
	int64_t given, earned; /* tokens since the window opened or functions were last chosen to be counted */
	int64_t granted;    /* the tokens when they were last set: the difference has been used */
	int64_t used;       /* tokens of this stretch */
	uint64_t stretch_begin, stretch_end, stretches; /* ticks; how many there were */
	uint64_t used_per_second; /* tokens, smoothed over stretches */
	struct cpu_clock cpu_clock;
	uint64_t earned_cpu_ns, earned_at; /* up to when tokens were given */
	struct tally tallies[TALLIES]; /* room to work in */
	uint32_t counted_count; /* rows in use: what the page says may have been written over */
	uint64_t counted_before[COUNTED_MAX], counted_all_before; /* calls counted when given and earned were last zero */
	uint64_t cycle_ticks, cycle_end, opened_at;
	uint64_t random;
	uint64_t own_ps;    /* our own part of one event, as calibrated */
	uint64_t cost_ps;   /* of one event, all in all */
	struct monitoring monitoring;
	struct garbage garbage;
	struct memory memory;
	struct heap heap;
	long last_tool;        /* sys.monitoring tool id that had events last, also of an earlier session */
	struct {
		int offset;
		void (*hook)(char *tstate);
	} detector;            /* traced.c */
	struct chained chained[CHAINED_MAX]; /* settrace.c */
	uint32_t chained_count;
	struct {
		int block_word;  /* of struct pthread: the stack's address, then its size; -1 not found */
		uintptr_t main_top, main_size;
	} stack;
	struct gpu gpu; /* says itself what protects what */
	/* the switch thread */
	uint64_t alternate_at; /* ticks: its next turn; 0 = it takes none. Its own */
	int64_t alternate_saved; /* tokens at the end of the last turn: none are earned between */
	bool pausing;          /* a turn without hooks */
	pthread_t switcher;
	bool switcher_made;    /* windows are opened by it; or it was there, and has ended by itself: switcher_over */
	bool switcher_over;    /* nobody but the attacher opens windows */
	uint32_t switcher_sleep; /* atomic: enum switcher_sleep */
	bool switcher_quit; /* atomic: what the shared word says may be written over */
};
extern struct collector the;

static inline uint64_t monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

static inline uint64_t ticks_now(void)
{
	return __builtin_expect(the.tsc, 1) ? machine_ticks() : monotonic_ns();
}

/* After the attacher's death nobody reads what is written. For what is told beside calls, whatever the budget says of these. */
static inline bool may_tell(uint64_t now)
{
	return __atomic_load_n(&the.armed, __ATOMIC_ACQUIRE) && !the.child && the.page && now <= __atomic_load_n(&the.page->deadline_ticks, __ATOMIC_RELAXED) && !__atomic_load_n(&the.page->stop, __ATOMIC_RELAXED);
}

/* Gives up a reference of ours, if there is one. Under the GIL. */
static inline void object_drop(PyObject **object)
{
	if (*object)
		the.python.Py_DecRef(*object);
	*object = NULL;
}

static inline uint64_t ticks_to_ns(uint64_t ticks)
{
	return (uint64_t)((__uint128_t)ticks * 1000000000u / the.settings.ticks_per_second);
}

/* budget.c */
void budget_init(void); /* calibrates; before arm */
bool budget_ask(uint64_t now); /* the slow way of hook_may_record: decides, and changes windows. Keeps errno */
bool budget_is_over(uint64_t now);   /* the deadline has passed, or hooks are to go */
void budget_earn(uint64_t now);      /* brings the savings up to date */
void budget_charge(uint64_t ns);     /* what something beside the events cost: of what the hooks have earned, nine tenths at most go for it */
/* PLANNED: the moment from which on it is chance what runs; the GIL was perhaps had before it, where the program just waited. 0 = now. */
void window_open(uint64_t now, enum window_reason reason, uint64_t planned);
void window_close(uint64_t now, enum window_reason reason);
uint64_t process_cpu_ns(void);
/* The same, and what asking costs: the kernel adds up all threads, 8 us for 1 000 of them, 0.5 ms at best for 10 000 (measured on 6.18), with the GIL held. NOW is from when on it is not due for a while. */
uint64_t cpu_clock_ask(struct cpu_clock *clock, uint64_t now, uint64_t *cost_ns);
bool cpu_clock_is_due(const struct cpu_clock *clock, uint64_t now);
#define BUDGET_CYCLE_NS 250000000ull

/* switcher.c */
void switcher_start(bool again); /* with the GIL. AGAIN: not at arming, and hooks may be off */
void switcher_stop(void); /* without the GIL */
void switcher_tell(uint32_t word);
/* Before a fork: where only the thread that forks is there beside ours, ours goes first. In most cases it is gone when this returns. With the GIL. */
void switcher_give_way(void);

/* entry.c: the driver came after we were armed, and the device's part begins. Without the GIL. */
void device_follow(void);

/* May this hook call write an event? The page is only looked at while there are tokens: without, there may be none. */
static inline bool hook_may_record(uint64_t now)
{
	if (__builtin_expect(--the.tokens < 0 || now > the.look_at || __atomic_load_n(&the.page->stop, __ATOMIC_RELAXED), 0))
		return budget_ask(now);
	return true;
}

/* counted.c: over budget by LOAD (thousandths of it), with LANE's thread running. True: something was done that should be enough. *CHOSEN: something was done at all, and stacks
 * hold calls whose ends will not be told. */
bool counted_choose(const struct lane *lane, uint64_t now, uint64_t load, bool *chosen);
void write_throttle(uint64_t now, uint32_t ref, enum throttle what, uint64_t load);
void counted_note(void); /* given and earned begin anew: so does what is counted meanwhile */
enum { TALLY_LEAST = 500 /* events of a lane that say enough to choose by */ };

static inline void count_call(const struct code *code)
{
	the.page->counted[code->counted - 1].calls++;
	the.page->counted_calls++;
}

/* seed.c: stacks that were there before we looked. */
void seed_all(uint64_t now);
/* The stack of this thread from FRAME outwards becomes what the lane knows. */
void seed_lane(struct lane *lane, char *frame, uint64_t now);

/* The tid of a thread state's thread; 0 = cannot be told. */
uint32_t thread_tid(char *tstate, uint64_t pthread);
/* The tid of a pthread_t, as up to 3.10 a thread state knows no more; its thread may have ended. 0 = cannot be told. */
uint32_t pthread_tid(uint64_t pthread);

/* The lane of this thread in this window, with its stack known from FRAME outwards; NULL when there is none to be had. */
struct lane *lane_enter_window(char *frame, uint64_t now);

static inline void text_set(char *text, size_t size, const char *string)
{
	snprintf(text, size, "%s", string);
}

/* fork.c */
int fork_watch(void);
/* Between the two no other thread forks: it waits. For microseconds only, and never across a wait for the GIL, which a thread that forks may hold. */
void fork_forbid(void);
bool fork_try_forbid(void); /* false: somebody else has the turn, which may take seconds */
void fork_allow(void);

/* gil.c: as PyGILState_Ensure() and PyGILState_Release(), for a thread of ours that has no state yet. False: there is no memory for one. */
bool gil_ensure(int *gil);
void gil_release(int gil);
/* Between the two, both without the GIL, a thread of ours asks main for help where one of us waits for it for long; gil.c says how. One at a time. False: there is no thread for it. */
bool gil_help_begin(void);
void gil_help_end(bool begun);
/* This thread's state, if it holds the main interpreter's GIL. Up to 3.11 the interpreter knows one current state for all threads: it may be another thread's, and go. */
char *gil_holder(void);

/* C functions, in the lane of the Python function that calls them. What ends without having begun here is left out. */
static inline void c_call_begins(struct lane *lane, uint64_t now, const struct code *code)
{
	if (code->ref)
		lane_push(lane, now, code->ref, EVENT_C_ENTER);
}

static inline void c_call_ends(struct lane *lane, uint64_t now, struct code *code, bool raised)
{
	const struct event *last = lane->cursor - 1;

	if (!code->ref || !lane->depth || lane->depth > DEPTH_KNOWN || lane->refs[lane->depth - 1] != code->ref)
		return;
	/* A call that nothing was seen in: its time says whether this function is worth its events. */
	if (lane->written && last->kind == EVENT_C_ENTER && last->ref == code->ref)
		code->ticks += now - last->ticks;
	else
		code->ticks += the.settings.ticks_per_second / 10000;
	code->calls++;
	lane_pop(lane, now, code->ref, EVENT_C_LEAVE, raised ? EVENT_FLAG_EXCEPTION : 0);
}

/* scopes.c: what the program says of itself; both under the GIL, armed */
void scopes_begin(uint64_t now);
void scopes_end(void);

/* garbage.c: under the GIL, armed */
void garbage_begin(void);
void garbage_end(void);

/* memory.c: under the GIL, armed. begin is the last thing at arm, end the first at disarm: we allocate ourselves between. */
void memory_begin(void);
void memory_end(void);
void memory_take_off(void); /* as far as no other tool stands on us */
void memory_pause(void);    /* --alternate: a turn without */
void memory_resume(void);
/* Passing each call on was too dear all the time: is it to be resumed? */
bool memory_rested(uint64_t now);
/* Allocations, of NATIVE libraries or of Python, are sampled from NOW on, after OFF ticks without; or no more. LANE is the caller's to write to. */
void memory_tell_sampling(struct lane *lane, uint64_t now, bool on, bool native, uint64_t off);

/* heap.c: not under the GIL, armed */
void heap_begin(void);
void heap_end(void);
void heap_pause(void);  /* --alternate: a turn without */
void heap_resume(void);
void heap_tend(void);   /* now and then, by the switch thread: takes out what is to go */
void heap_forked(void); /* in a forked child */

/* skip.c */
bool skip_matches(const struct page *page, const char *name, const char *qualname, const char *file);

#endif
