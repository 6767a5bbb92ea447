/*
 * The threads of the target as the sampler knows them: which there are, what each was found in at its last look, and which are due for
 * another one. Reading one thread costs some microseconds, so that of many threads those that stay in one block are looked at in turn.
 */
#ifndef INFERSCOPE_SESSION_CENSUS_H
#define INFERSCOPE_SESSION_CENSUS_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/event.h"
#include "base/procfs.h"

/* Where a thread is blocked, as /proc/PID/task/TID/syscall says. */
struct block { int64_t number; uint64_t argument, sp, pc; };

struct seen_thread {
	pid_t tid, inner_tid;
	bool present;           /* in the present reading */
	bool ours;              /* a thread of the collector */
	bool running;           /* at its last look */
	bool holds_gil;         /* the same */
	uint32_t python, stack; /* ids of its Python stack and of its whole stack then; 0 = none */
	struct block block;
	enum thread_state state;
	uint32_t quiet;         /* looks in a row that found it in the same block */
	uint64_t walked_ns;     /* when its native stack was looked at, blocked; 0 = never */
	uint64_t at_ns;         /* of the look in progress: when its stack was like that */
	bool wants_python;      /* the same: only its Python frames can be had, by the reader of all threads */
	uint64_t looked_ns;     /* when; its next sample stands for the time since. 0 = never */
};

struct census {
	const struct procfs *procfs;
	pid_t pid;
	bool namespaced;
	uint64_t runtime, runtime_end; /* a futex in there is the GIL's */
	struct seen_thread *threads;   /* by tid */
	size_t count, capacity, turn;  /* turn: where the quiet ones are gone on with */
};

enum { CENSUS_QUIET_LOOKS = 24 /* at each look, of threads that stay blocked */ };

void census_init(struct census *census, const struct procfs *procfs, pid_t pid, bool namespaced, uint64_t runtime, uint64_t runtime_end);
void census_done(struct census *census);
/* Reads which threads there are. False: the process is gone. */
bool census_read(struct census *census);
struct seen_thread *census_by_inner(const struct census *census, pid_t inner_tid);
/* Fills OUT (room for all threads) with those to look at now; returns how many. */
size_t census_due(struct census *census, struct seen_thread **out);

enum block_result { BLOCK_GONE = -1, BLOCK_RUNNING = 0, BLOCK_BLOCKED = 1 };
/* What the thread does this moment; *OUT only when it is blocked. */
enum block_result census_block(const struct census *census, pid_t tid, struct block *out);
/* What a thread that is blocked there waits for, as far as the call tells. */
enum thread_state census_state(const struct census *census, const struct block *block);

#endif
