/* A program run by Nsight Systems, and the report of what that recorded. */
#ifndef INFERSCOPE_CLI_NSYS_RUN_H
#define INFERSCOPE_CLI_NSYS_RUN_H

#include "cli/options.h"

/* Runs PROGRAM (an argument vector) under the nsys of the PATH and writes the reports that OPTIONS ask for. *STARTED: nsys ran, and *STATUS is how it ended, as waitpid() tells it: as the program did.
 * The result is that of the reports; ERR_NSYS: there is no nsys, or it exported nothing. */
int nsys_run(const struct options *options, char **program, int *status, bool *started, struct error *err);

#endif
