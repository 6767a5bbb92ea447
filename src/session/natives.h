/*
 * The whole stack of one thread: registers, stack bytes and Python frames of one moment, walked, joined and named afterwards. Running threads
 * are held for the copy; blocked ones stand still by themselves and are read where they are.
 */
#ifndef INFERSCOPE_SESSION_NATIVES_H
#define INFERSCOPE_SESSION_NATIVES_H

#include "inject/hold.h"
#include "session/census.h"
#include "session/stacks.h"
#include "unwind/join.h"

struct natives_settings {
	const struct target *target;  /* these three must outlive the natives */
	const struct procfs *procfs;
	struct pyreader *reader;
	struct stacks *stacks;
	pid_t pid;
	int python_minor;
	bool debuginfod;
};

struct natives_totals {
	struct hold_totals holds;
	uint64_t stolen_ns;                      /* of these: time that threads stood still */
	bool holder_lost;                        /* no thread could be held any more from some moment on */
	uint64_t joins[JOIN_PYTHON + 1];         /* by enum join_result */
	uint64_t ends[WALK_CUT_TABLES + 1];      /* by enum walk_end */
	uint64_t not_now, refused, prone;        /* threads that were not held, and why */
	uint64_t moved;                          /* blocked threads that woke while they were looked at */
	uint64_t naming_ns;                      /* CPU time spent on names */
};

struct natives;

/* In the thread that will use it: what holds ends with it. *HOLDS is false when no thread can be held, and WHY (of SIZE) says so. */
int natives_open(const struct natives_settings *settings, struct natives **out, bool *holds, char *why, size_t size, struct error *err);
void natives_close(struct natives *natives); /* accepts NULL */
/* After threads came or went: which of them run Python, and what is mapped. */
void natives_refresh(struct natives *natives, const struct census *census);
/* Does the thread run Python, as far as is known? */
bool natives_knows(const struct natives *natives, pid_t tid);

enum natives_result {
	NATIVES_SEEN,      /* thread's stack, python and holds_gil are those of *AT_NS */
	NATIVES_SAME,      /* blocked as it was before: nothing has changed */
	NATIVES_BLOCKED,   /* it has blocked meanwhile */
	NATIVES_NOT_SEEN,
};
enum natives_result natives_running(struct natives *natives, struct seen_thread *thread, uint64_t *at_ns);
/* SAME_BLOCK: it is in the block of the last look, so far as /proc tells. */
enum natives_result natives_blocked(struct natives *natives, const struct census *census, struct seen_thread *thread, bool same_block, uint64_t *at_ns);
struct natives_totals natives_totals(const struct natives *natives);

#endif
