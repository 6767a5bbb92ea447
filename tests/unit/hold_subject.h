/* A child of the test that is held and let go while it goes on with some work, and tells what it notices of that. */
#ifndef INFERSCOPE_TESTS_HOLD_SUBJECT_H
#define INFERSCOPE_TESTS_HOLD_SUBJECT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "inject/hold.h"
#include "inject/target.h"

/* What a child tells: it lies in memory that both see. */
struct notes {
	atomic_int go, ready, stop;
	atomic_long rounds, eintr, wrong, signals;
	pid_t tid;
	const char *call;
};

struct subject {
	pid_t pid;
	struct notes *notes;
	struct target *target;
	struct holder *holder;
};

/* Starts it with BODY and opens a holder for it, with EXTRA as in hold.h; skips the test where ptrace is not permitted. */
struct subject subject_start(void (*body)(struct notes *notes), hold_extra extra, void *context);

/* Its exit status, 1000 + the signal that ended it, or -1 when it did not end by itself. */
int subject_end(struct subject *subject);

/* Asks until there is a copy; a test machine may be busy. */
const struct hold_copy *must_copy(struct subject *subject, pid_t tid, bool force);

/* Bodies, or parts of one. */
void spin(struct notes *notes);

/* From here on NUMBER is counted in NOTES. */
void count_signals(int number, struct notes *notes);

/* The letter of /proc/PID/stat. */
char state_of(pid_t pid);

#endif
