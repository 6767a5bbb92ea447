/* The process that a command line names. */
#ifndef INFERSCOPE_CLI_PROCESS_H
#define INFERSCOPE_CLI_PROCESS_H

#include "cli/command.h"
#include "inject/inject.h"

/* The word GIVEN as a pid. ERR_PID_SYNTAX, ERR_OWN_PROCESS. */
int process_pid(const char *given, int *out, struct error *err);
/* From the argument or --pid. REQUIRED: it must be given; else *out = 0 without. */
int process_named(const struct invocation *invocation, bool required, pid_t *out, struct error *err);
/* What target_open() found, line by line. */
void findings_print(const struct target *target, bool colour);
void findings_json(pid_t pid, const struct target *target, const struct error *refusal);

#endif
