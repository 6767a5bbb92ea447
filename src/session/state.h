/* The inside of a session, shared by its parts: session.c begins and ends it, record.c is the loop between, closing.c tells how it was. */
#ifndef INFERSCOPE_SESSION_STATE_H
#define INFERSCOPE_SESSION_STATE_H

#include "session/around.h"
#include "session/drain.h"
#include "session/gpu_look.h"
#include "session/gpu_relay.h"
#include "session/handshake.h"
#include "session/observe.h"
#include "session/rearm.h"
#include "session/residue.h"
#include "session/sampler.h"
#include "session/session.h"
#include "session/thread_counts.h"

enum { SESSION_LANE = 0, FIRST_TARGET_LANE = 1 };

/* What native libraries allocate: libraries with slots for malloc, those with none that may be exchanged, slots that hold something else; events for which there was no memory. */
struct heap_part { uint32_t libraries, read_only; uint64_t others, lost; bool cut; };

/* The device's part. */
struct device_part {
	struct gpu_look look;
	struct gpu_relay *relay; /* NULL: it is not wanted, or there is no memory for it */
	bool asked;              /* the collector was told to begin */
	uint64_t look_ns;        /* when the process is looked at again, while it has no driver */
	char refused[256];       /* why the collector could not be told; or "" */
	char holder[64];         /* who took CUPTI over while we measured; or "" */
};

struct kernel_calls;

/* What its threads' counters came to. */
struct counting {
	struct thread_counts *counts; /* NULL: not wanted, or over */
	uint64_t begun_ns;
	struct thread_counts_totals totals;
};

struct session {
	struct target *target;
	const struct target_facts *facts;
	const struct session_options *options;
	const struct procfs *procfs;
	struct spool *spool;
	enum clock_kind clock_kind;
	struct clock_map clock;
	uint64_t start_ns;
	uint64_t cpu_start_ns, cpu_now_ns; /* of the process */
	int pidfd; /* -1 where the kernel has none */

	bool armed;    /* hooks may be on in the target */
	bool left;
	struct handshake handshake;
	struct pool pool;
	struct drain *drain;
	struct receipt enter, leave;
	uint64_t hold_max_ns, hold_total_ns;
	struct rearm rearm;
	bool rearm_failed;  /* said once */
	uint64_t pushed_ns, lapses_ns; /* when the deadline was moved last, and when it is over */
	bool fell_silent;   /* too late for it once */

	struct device_part device;
	struct heap_part heap;
	struct observe observe;
	uint64_t ended_due_ns;      /* before that nobody asks all threads of a namespaced process whether one of them has ended */
	struct around around;
	struct kernel_calls *calls; /* NULL: system calls are not traced */
	struct counting counting;
	struct sampler *sampler;
	bool samples_off;           /* for a turn of --alternate */
	uint64_t switches_told; /* of observe.switches, to the sampler */
	uint64_t sampler_stolen_ns; /* as last counted: how long threads stood still for it */
	uint64_t startstack; /* of the program that runs: another one after an exec */
	struct error runtime_unread; /* why the interpreter was not found, where its memory could not be read */
	uint64_t counted_told[COUNTED_MAX]; /* calls of page.counted that are in the trace */
	uint64_t hooks_on_seen, hooks_seen; /* looks at page.hooks_on */

	struct event_builder events; /* of the SESSION lane, not yet in the trace */
	uint64_t chunk_sequence;
	enum session_end end;
	struct residue before;
	char warnings[SESSION_WARNINGS][256];
	uint32_t warning_count;
};

/* With so many THREADS of its own. */
enum may_start session_may_start(const struct target_facts *facts, uint64_t threads);
/* A thread of the target by the number that we know it by. */
uint32_t session_outer_tid(struct session *session, uint32_t inner_tid);
uint64_t session_ticks(const struct session *session);
/* How long after its beginning the moment TICKS was, 1 at least; of 0, which is no moment, 0. */
uint64_t session_after_ns(const struct session *session, uint64_t ticks);
uint64_t session_ticks_ns(const struct session *session, uint64_t ticks);
void session_warn(struct session *session, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* wall.c: a reading of the wall clock, as an event. */
void session_wall(struct session *session);
/* Counts what one entry cost the target. */
void session_hold(struct session *session, const struct receipt *receipt);
/* Puts the SESSION lane's events into the trace. */
void session_flush(struct session *session);
struct counter_row { const char *name; uint64_t value; };
/* A COUNTER event; a value that is too large for one (the target may have written anything) is told as the largest. */
void session_counter(struct session *session, uint64_t ticks, const char *name, uint64_t value);
void session_counter_rows(struct session *session, uint64_t ticks, const struct counter_row *rows, size_t count);
/* All that is counted, at this moment. */
void session_counters(struct session *session, uint64_t ticks);
/* The process's CPU time until now, for what the overhead is compared with. */
void session_read_cpu(struct session *session);
/* A COUNTER event of it, to the nanosecond. */
void session_cpu_reading(struct session *session);
/* The same of the sampler; and how it worked, as CAPTURE events. */
void sampled_counters(struct session *session, uint64_t ticks);
void sampled_rows(struct session *session, uint64_t ticks);
/* What went wrong with them. */
void sampled_warnings(struct session *session);
/* What all but hooks and allocations took since session_read_cpu(), for the collector to leave room for. */
void session_samples_cost(struct session *session);
/* Moves the dead man's deadline, and warns where that comes too late. */
void session_push_deadline(struct session *session, uint64_t ahead_ns);
/* The same, as far as usual; where there are no hooks, nothing. */
void session_hooks_keep(struct session *session);
/* Cost of the hooks over CPU time of the process since the session began, ppm. */
uint64_t session_overhead_ppm(const struct session *session, uint64_t cost_ticks);

/* heap.c: what native libraries allocate. */
void heap_plan(struct session *session, struct page *settings); /* before arming */
void heap_chunk(struct session *session, const struct chunk *chunk, uint64_t events); /* one of a memory lane */
void heap_rows(struct session *session, uint64_t ticks);

/* device.c: the device's part, from first look to last record. */
void device_plan(struct session *session, struct page *settings); /* before arming */
void device_chunk(struct session *session, const struct chunk *chunk, uint64_t events); /* one that the drain hands on */
void device_step(struct session *session, uint64_t now_ns);
/* Lets it end while lanes are still drained: within seconds, whatever CUPTI does. */
uint64_t device_cost_ns(const struct session *session); /* what it has cost the target */
void device_leave(struct session *session);
/* After the last chunk: what is left, then what became of it. */
void device_rows(struct session *session, uint64_t ticks);
void device_done(struct session *session);

/* kernel_calls.c: system calls by tracepoints, where they are wanted and permitted. */
void kernel_calls_begin(struct session *session); /* after a first reading of the threads, before the sampler */
void kernel_calls_threads(struct session *session); /* after each reading of them */
void kernel_calls_read(struct session *session);
uint64_t kernel_calls_cost_ns(const struct session *session); /* what it cost the process so far */
void kernel_calls_counters(struct session *session, uint64_t ticks);
void kernel_calls_rows(struct session *session, uint64_t ticks);
void kernel_calls_end(struct session *session);

/* counting.c: counters of threads, where they are wanted. */
void counting_begin(struct session *session); /* after a first reading of the threads */
void counting_threads(struct session *session); /* after each reading of them */
void counting_read(struct session *session, uint64_t ticks);
void counting_rows(struct session *session, uint64_t ticks);
/* A last reading; no descriptor of perf_event is left open after it. */
void counting_end(struct session *session);

/* closing.c: warnings and last rows, when the process was left. */
void session_closing(struct session *session, const struct session_receipt *receipt);

/* Field 28 of /proc/PID/stat, 0 when not told. */
uint64_t session_startstack(const struct session *session);
/* Has the process replaced itself? Then our mapping is gone, and another program runs that we must not touch. */
bool session_execed(const struct session *session);

#endif
