/* What a process's environment says of its place among others. Nothing else of an environment is read into a trace but sizes of thread pools (pools.h). */
#ifndef INFERSCOPE_SESSION_ENVIRONMENT_H
#define INFERSCOPE_SESSION_ENVIRONMENT_H

#include "base/procfs.h"

/* Read once, as it was when the process began; what a program sets later is not in it. */
struct environment { char *bytes; size_t size; /* 0: not readable */ };

void environment_read(const struct procfs *procfs, pid_t pid, struct environment *out);
void environment_done(struct environment *environment);

struct place {
	long rank, local_rank, world; /* -1: not told */
	char pod[256];                /* name of the Kubernetes pod; empty: not told */
};

/* ENVIRONMENT: LENGTH bytes, NAME=VALUE each ended by a NUL, as /proc/PID/environ has them; any bytes. */
void environment_place(const char *environment, size_t length, struct place *out);
/* The number that NAME's value begins with; -1: not set, or no number. */
long environment_number(const char *environment, size_t length, const char *name);

#endif
