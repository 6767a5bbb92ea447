/* attach --every: measuring again and again, into a folder that stays bounded. */
#ifndef INFERSCOPE_CLI_ROUNDS_H
#define INFERSCOPE_CLI_ROUNDS_H

#include "cli/command.h"

/* Until the first Ctrl-C. A round that fails is told and does not end the others; wrong words do. Returns as a command does. */
int rounds_attach(struct invocation *invocation, struct error *err);

/* Removes the oldest rounds of FOLDER until the rest is no larger than MOST_BYTES; the latest one stays in any case. Touches nothing but folders that are named as
 * rounds, and files in them. Returns how many went, or -1. */
int rounds_prune(const char *folder, uint64_t most_bytes, struct error *err);

#endif
