/* A process that measures itself by us helps: it has opened its memory to us, and loads the collector itself (abi/inside.h). Nothing of it is traced. */
#ifndef INFERSCOPE_SESSION_INSIDE_H
#define INFERSCOPE_SESSION_INSIDE_H

#include <sys/types.h>

#include "abi/handover.h"
#include "base/error.h"
#include "base/procfs.h"

struct inside;

/* FD is our end of the socket, whose other one process PID has; it stays the caller's, and outlives *OUT. ERR_INSIDE. */
int inside_open(const struct procfs *procfs, int fd, pid_t pid, struct inside **out, struct error *err);
void inside_close(struct inside *inside);
/* Of its /proc/PID/mem; as long as INSIDE is. */
int inside_memory(const struct inside *inside);

/* Asks it to call the collector's entry with *HANDOVER. Answers come in inside_handover(). ERR_INSIDE, ERR_MEMORY. */
int inside_enter(struct inside *inside, const struct handover *handover, struct error *err);
/* What both see of the call that was asked for last. */
struct handover *inside_handover(const struct inside *inside);
/* Has that call ended? 1 yes, 0 not yet, -1 it could not be made: ERR_INSIDE, ERR_EXITED. Waits for at most TIMEOUT_MS. */
int inside_ended(struct inside *inside, int timeout_ms, struct error *err);

#endif
