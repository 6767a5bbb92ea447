/* What one inject_enter() works with, and its three parts. For the files of this folder only. */
#ifndef INFERSCOPE_INJECT_ATTEMPT_H
#define INFERSCOPE_INJECT_ATTEMPT_H

#include "inject/critical.h"
#include "inject/scratch.h"
#include "inject/slot.h"
#include "inject/target.h"
#include "inject/threads.h"

#define NS_PER_MS 1000000ull

struct attempt {
	struct target *target;
	const struct payload *payload;
	const void *argument;
	size_t argument_size;
	const struct inject_options *options;
	struct receipt *receipt;
	int process_fd; /* locks this process, until the library is in it */
	int lock_fd;    /* locks all processes of its interpreter file, for milliseconds */
	struct slot slot;
	size_t slots_usable;
	struct stub_data data;
	uint64_t attach_id;
	struct scratch scratch;
	struct window *window;
	struct choice choice;
	uint64_t entry;  /* of a library that is there already; 0 = load */
	unsigned loaded; /* libraries of this name so far */
	uint64_t deadline_ns, started_ns;
	uint32_t seize_refused;
	uint32_t patience_ms; /* with one thread that does not stop */
};

void attempt_nap_us(long us);
/* Tells a test that STEP was taken. */
void attempt_step(const struct attempt *attempt, int step);
/* True, and ERR filled, when the caller wants to give up. */
bool attempt_stopped(const struct attempt *attempt, struct error *err);

/* prepare.c: takes the locks, chooses slot and scratch, writes the stub. */
int attempt_prepare(struct attempt *attempt, struct error *err);
/* Gives back the lock that attempt_prepare() took; may be called again and again. */
void attempt_unlock(struct attempt *attempt);
/* … and the lock of the process. */
void attempt_end(struct attempt *attempt);

/* borrow.c: until a thread has been sent into the stub. Leaves the lock taken. */
int attempt_borrow(struct attempt *attempt, struct error *err);

/* guest.c: from the raw thread's first sign to the call of the entry. Gives the lock back as soon as the borrowed thread is free. */
int attempt_guest(struct attempt *attempt, struct error *err);

#endif
