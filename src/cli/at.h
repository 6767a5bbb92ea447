/* --at: measuring begins at a moment of the wall clock, so that several machines begin together. */
#ifndef INFERSCOPE_CLI_AT_H
#define INFERSCOPE_CLI_AT_H

#include "cli/measure.h"

/* Is there a moment, and is it well-formed? *OUT: since 1970; 0 = none was asked for. */
int at_read(const struct options *options, uint64_t *out_unix_ns, struct error *err);
/* Waits for it, whatever is done to the clock meanwhile. ERR_INTERRUPTED once *STOP is not 0. */
int at_wait(uint64_t unix_ns, struct measure *measure, const volatile int *stop, struct error *err);

#endif
