/*
 * How long a switch of threads takes here: two threads of ours pass a byte to and fro on one CPU. For what makes switches take longer, and is measured without
 * and with it.
 */
#ifndef INFERSCOPE_SESSION_SWITCHING_H
#define INFERSCOPE_SESSION_SWITCHING_H

#include <stdint.h>
#include <sys/types.h>

struct switching;

/* Until it is closed the caller runs on one CPU only. NULL where that, or a thread, is not to be had. */
struct switching *switching_open(void);
void switching_close(struct switching *switching); /* accepts NULL */
/* Both threads; the first is the caller's. */
void switching_tids(const struct switching *switching, pid_t out[2]);
/* Of one switch, as cold_ns() has it. 0: it could not be measured. */
uint64_t switching_ns(const struct switching *switching);

#endif
