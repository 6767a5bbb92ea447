/*
 * What the descriptors of a process are: by the calls that made them, as far as these were seen, else by /proc/PID/fd. What is asked for late may have been
 * closed, or be another one already: kinds are for grouping, not for proof.
 */
#ifndef INFERSCOPE_SESSION_DESCRIPTORS_H
#define INFERSCOPE_SESSION_DESCRIPTORS_H

#include "base/procfs.h"

enum { DESCRIPTORS_MAX = 65536 };

struct descriptors {
	const struct procfs *procfs;
	pid_t pid;
	uint8_t *kinds; /* by number, 0 = not looked at; DESCRIPTORS_MAX */
};

/* False: out of memory. */
bool descriptors_open(const struct procfs *procfs, pid_t pid, struct descriptors *out);
void descriptors_done(struct descriptors *descriptors);
/* "socket", "pipe", "file" …; "" when it is not known. Never NULL. */
const char *descriptors_kind(struct descriptors *descriptors, uint64_t fd);
/* Call NUMBER with first argument FIRST has returned RESULT. */
void descriptors_seen(struct descriptors *descriptors, uint64_t number, uint64_t first, int64_t result);

#endif
