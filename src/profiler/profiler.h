/*
 * Measuring this very process from C: a program with Python inside samples all its threads between profiler_start() and profiler_stop(). The
 * samples are taken by the program `inferscope`, as a child that looks at this process from outside; no other engine is behind it.
 *
 * One measurement at a time in a process. Functions may be called from any thread, with or without the GIL; each returns 0 on success, and else -1 with
 * the reason in profiler_error().
 */
#ifndef INFERSCOPE_PROFILER_H
#define INFERSCOPE_PROFILER_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PROFILER_CALL __attribute__((visibility("default")))
#define PROFILER_INTERVAL_US 1000 /* between two samples: unless another one is set, and at least */

struct profiler_state {
	int32_t running;     /* 1 between start and stop */
	uint32_t interval_us;
	uint64_t elapsed_ns; /* since start; of the last measurement when none is running */
	uint64_t samples, stacks; /* of the last measurement that was stopped */
};

/* Takes effect at the next start, as the nearest interval of which a second has a whole number: profiler_get_state() tells that. Shorter intervals than PROFILER_INTERVAL_US are refused: they cost more than they tell. */
PROFILER_CALL int profiler_set_interval_us(uint32_t interval_us);

/*
 * Begins. Python must have been started in this process (Py_Initialize); memory, locks and signal handlers of the process are left alone. Where Yama
 * restricts ptrace, the child is named as tracer (PR_SET_PTRACER) until stop. The program is INFERSCOPE_PROGRAM of the environment, else the one beside
 * this library, in ../bin of its folder, or in PATH. Returns once the first sample may have been taken; waits for at most 30 s.
 */
PROFILER_CALL int profiler_start(void);

/* Ends; the result stays until the next start. May be started again. Waits for the child as long as it works on the result, for at most 10 min. */
PROFILER_CALL int profiler_stop(void);

/*
 * The last measurement. JSON: schema inferscope.profile/1 (docs/exports.md), each distinct stack of at most 128 frames once, innermost frame first, with
 * its count, instructions where the machine counts them, and memory_delta; what is not known is null, and the document says why. Summary: at most 24 lines of text. PATH is replaced; its mode is 0600.
 */
PROFILER_CALL int profiler_write_json(const char *path);
PROFILER_CALL int profiler_write_summary(const char *path);

PROFILER_CALL int profiler_get_state(struct profiler_state *out);

/* Why the last call in this thread failed, and what to do about it; "" before any failure. Valid until the thread's next failure. */
PROFILER_CALL const char *profiler_error(void);

#ifdef __cplusplus
}
#endif

#endif
