/* What a process's environment says of its place among others. Nothing else of an environment is read into a trace. */
#ifndef INFERSCOPE_SESSION_ENVIRONMENT_H
#define INFERSCOPE_SESSION_ENVIRONMENT_H

#include <stddef.h>

struct place {
	long rank, local_rank, world; /* -1: not told */
	char pod[256];                /* name of the Kubernetes pod; empty: not told */
};

/* ENVIRONMENT: LENGTH bytes, NAME=VALUE each ended by a NUL, as /proc/PID/environ has them; any bytes. */
void environment_place(const char *environment, size_t length, struct place *out);

#endif
