/*
 * Profiles to services that collect them. What is to be sent stands in a queue of files, bounded and for their owner alone, so that it outlives a service that is down, and
 * us; it is sent oldest first, and where a service does not answer, again after longer and longer waits.
 */
#ifndef INFERSCOPE_CLI_SHIP_H
#define INFERSCOPE_CLI_SHIP_H

#include "cli/options.h"

struct ship;

/* From --ship; *out is NULL where there is none. The queue lies in KEEP, which is there. ERR_OPTION_VALUE, ERR_OUTPUT. */
int ship_open(const struct options *options, const char *keep, struct ship **out, struct error *err);
void ship_close(struct ship *ship); /* accepts NULL */
/* What every round must be written as: the INDEXth name of a format, NULL after the last. */
const char *ship_format(const struct ship *ship, size_t index);
/* Queues the profiles in FOLDER, of a round from FROM to UNTIL (ns since 1970). Returns how many of the oldest had to go for them, or -1. */
int ship_queue(struct ship *ship, const char *folder, uint64_t from_unix_ns, uint64_t until_unix_ns, struct error *err);
/* Sends what is due, until UNTIL_NS (CLOCK_MONOTONIC) or *STOP is not 0. What a service refuses for good is thrown away. */
void ship_send(struct ship *ship, uint64_t until_ns, const volatile int *stop);
/* When something is due: CLOCK_MONOTONIC; UINT64_MAX = nothing is queued. */
uint64_t ship_due_ns(const struct ship *ship);

/* Since it was asked last. */
struct ship_counts { size_t sent, refused, waiting; char why[256]; /* of the last failure; "" = there was none */ };
struct ship_counts ship_counts(struct ship *ship);

/* How long to wait after FAILURES in a row: doubled each time, bounded, and not for all senders the same (SEED); what a server asks for is heeded. */
uint64_t ship_wait_ns(unsigned failures, uint64_t retry_after_s, uint64_t seed);

#endif
