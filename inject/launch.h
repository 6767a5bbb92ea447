/*
 * Start a program so that measuring begins before its first line: the child waits at the entry of Py_RunMain, with the interpreter
 * ready and the GIL given up. Arguments, environment, stdio, signals, process group are the caller's, as exec would give them.
 * Until the gate opens the child is killed with us, afterwards it is a process like any other.
 */
#ifndef INFERSCOPE_INJECT_LAUNCH_H
#define INFERSCOPE_INJECT_LAUNCH_H

#include "inject/inject.h"

struct launch;

/* ARGV[0] is looked up in PATH. ENVIRONMENT NULL = ours. The child gets the calling thread's signal mask, and every signal that is ignored at this
 * call. Scripts, shells and the usual wrappers (env, nice, pyenv's shims, …) are followed through exec, not through fork.
 * Returns when the child stands at its gate, no longer traced but asleep in a loop that only launch_release() ends, so that inject_enter() works on
 * it as on any process. ERR_LAUNCH when it could not be started; ERR_LAUNCH_REFUSED when it is no Python that can be gated: it has been ended before its
 * own first instruction. If the program ends before the gate (e.g. --version), *out is set, launch_at_gate() is false and launch_wait() gives its status. */
int launch_start(char *const argv[], char *const environment[], struct launch **out, struct error *err);
/* The same; TICK (or NULL) is called at least every 20 ms with the child's pid meanwhile: for signals that are to be forwarded. */
int launch_start_watched(char *const argv[], char *const environment[], void (*tick)(void *context, pid_t pid), void *context,
                         struct launch **out, struct error *err);
bool launch_at_gate(const struct launch *launch);
pid_t launch_pid(const struct launch *launch);
/* Lets it run. */
int launch_release(struct launch *launch, struct error *err);
/* Waits for its end without blocking longer than TIMEOUT_MS (-1 = for ever). 1 and the wait status, 0 not yet (or a signal came), -1 error.
 * Signals that are for the child are the caller's to forward; what a terminal sends, it has got already. */
int launch_wait(struct launch *launch, int timeout_ms, int *status, struct error *err);
/* A child that still waits at its gate is killed; one that runs is left alone, and collected only if launch_wait() saw its end. */
void launch_close(struct launch *launch);

#endif
