/*
 * The threads of the target as the sampler knows them: which there are, what each was found in at its last look, and which are due for
 * another one. Reading one thread costs some microseconds, so that of many threads those that stay in one block are looked at in turn.
 */
#ifndef INFERSCOPE_SESSION_CENSUS_H
#define INFERSCOPE_SESSION_CENSUS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/tidmap.h"
#include "session/block.h"

struct sight;

struct seen_thread {
	pid_t tid, inner_tid;
	bool present;           /* in the present reading */
	bool ours;              /* a thread of the collector */
	bool by_perf, perf_tried; /* perf_event samples it while it runs; that was tried */
	bool running;           /* at its last look */
	bool holds_gil;         /* the same */
	bool seen;              /* the same: blocked, and what was seen was passed on */
	bool wants_hold;        /* its next look is to be a hold */
	bool was_asked;         /* a hold was asked for in this block: once is enough */
	struct block block;
	enum thread_state state;
	uint64_t glimpse_hash;  /* of its Python frames then */
	uint32_t quiet;         /* looks in a row that found it in the same block */
	uint64_t walked_ns;     /* when its native stack was looked at, blocked; 0 = never */
	uint64_t looked_ns;     /* when; its next sample stands for the time since. 0 = never */
	struct sight *pending;  /* of the look in progress */
};

struct census {
	const struct procfs *procfs;
	pid_t pid;
	bool namespaced;
	struct block_runtime runtime;
	struct seen_thread *threads;   /* by tid */
	struct tidmap inner;           /* where namespaced: of the last reading */
	size_t count, capacity, turn;  /* turn: where the quiet ones are gone on with */
};

enum { CENSUS_QUIET_LOOKS = 24 /* at each look, of threads that stay blocked */ };

void census_init(struct census *census, const struct procfs *procfs, pid_t pid, bool namespaced, struct block_runtime runtime);
void census_done(struct census *census);
/* Reads which threads there are; calls GONE (may be NULL) with each that is no more. False: the process is gone; where we lack something, all is as it was. */
bool census_read(struct census *census, void (*gone)(void *context, pid_t tid), void *context);
struct seen_thread *census_by_tid(const struct census *census, pid_t tid);
struct seen_thread *census_by_inner(const struct census *census, pid_t inner_tid);
/* Fills OUT (room for all threads) with those to look at now; returns how many. */
size_t census_due(struct census *census, struct seen_thread **out);

#endif
