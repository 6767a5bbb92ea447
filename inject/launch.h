/*
 * Start a program so that measuring begins before its first line: the child waits at the entry of Py_RunMain (a breakpoint set by
 * its own parent, removed before anything runs). Arguments, environment, stdio, signals, process group are the caller's, as
 * exec would give them. The child is killed with us only until the gate opens (PTRACE_O_EXITKILL).
 */
#ifndef INFERSCOPE_INJECT_LAUNCH_H
#define INFERSCOPE_INJECT_LAUNCH_H

#include "inject/inject.h"

struct launch;

/* ARGV[0] is looked up in PATH. ENVIRONMENT NULL = ours. Returns when the child stands at its gate, the breakpoint already removed, detached from
 * ptrace but unable to pass (a spinning two-byte jump to itself, or a futex — see launch.c), so that inject_enter() works on it as on any
 * process. ERR_LAUNCH when it could not be started, ERR_LAUNCH_REFUSED when it is no supported Python. If the program ends before the gate
 * (e.g. --version), *out is set, launch_at_gate() is false and launch_wait() gives its status. */
int launch_start(char *const argv[], char *const environment[], struct launch **out, struct error *err);
bool launch_at_gate(const struct launch *launch);
pid_t launch_pid(const struct launch *launch);
/* Lets it run. */
int launch_release(struct launch *launch, struct error *err);
/* Waits for its end without blocking longer than TIMEOUT_MS (-1 = for ever). 1 and the wait status, 0 not yet, -1 error. Signals that are for the child are the caller's to forward. */
int launch_wait(struct launch *launch, int timeout_ms, int *status, struct error *err);
void launch_close(struct launch *launch);

#endif
