/*
 * Samples added up while they come: what each function and thread did in the present turn, and since the beginning. Reads the events of a sampler
 * (CODE, NATIVE, STACK, SAMPLE); what they name is kept, bounded, for as long as the tally lives.
 */
#ifndef INFERSCOPE_SESSION_TALLY_H
#define INFERSCOPE_SESSION_TALLY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "abi/event.h"
#include "base/error.h"

/* Time of one function, ns. Running: on a CPU, or wanting one. Waiting: blocked in anything. */
struct tally_time {
	uint64_t self_run_ns, self_wait_ns;   /* it was the innermost call */
	uint64_t total_run_ns, total_wait_ns; /* it was somewhere on the stack */
	uint64_t gil_ns;                      /* self, running, and the thread held the GIL */
	uint64_t launch_ns, gpu_wait_ns;      /* innermost Python call (or the CUDA call itself) while a CUDA call launched work, or waited for the device */
};

struct tally_function {
	const char *name, *file; /* as the target says: foreign text. Live as long as the tally */
	uint32_t line;
	bool native;
	struct tally_time now, all;
};

struct tally_thread {
	pid_t tid;
	enum thread_state state;                     /* of the last sample */
	uint32_t function;                           /* innermost then: index of a function, TALLY_NONE = not known */
	uint64_t gil_ns, gil_wait_ns, gpu_wait_ns;   /* of this turn */
	uint64_t seen_turn;
};

enum { TALLY_NONE = 0xffffffffu };

struct tally;

int tally_new(struct tally **out, struct error *err);
void tally_free(struct tally *tally);
/* Begins a turn: what is `now` becomes zero, threads not seen for some turns are forgotten. */
void tally_turn(struct tally *tally);
/* Adds SIZE bytes of events; damage ends the reading. */
void tally_add(struct tally *tally, const void *events, size_t size);
/* Ids of functions and stacks begin anew: those of another sampler follow. */
void tally_forget_ids(struct tally *tally);
/* Valid until the next tally_add(). */
const struct tally_function *tally_functions(const struct tally *tally, size_t *count);
const struct tally_thread *tally_threads(const struct tally *tally, size_t *count); /* by tid */
const struct tally_thread *tally_thread_find(const struct tally *tally, pid_t tid);  /* NULL: no sample of it */
bool tally_knows_gpu(const struct tally *tally); /* a CUDA call was seen on some stack */
uint64_t tally_samples(const struct tally *tally);
const char *thread_state_words(enum thread_state state); /* "waiting for the GIL" */
const char *thread_state_name(enum thread_state state);  /* "gil_wait" */

#endif
