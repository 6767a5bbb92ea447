/* The program `inferscope` as a child that measures its parent: found, started, awaited, ended. Leaves no file behind, whatever ends it. */
#ifndef INFERSCOPE_PROFILER_CHILD_H
#define INFERSCOPE_PROFILER_CHILD_H

#include <sys/types.h>

enum { PROFILER_ERROR_BYTES = 2048 };

struct child {
	pid_t pid;   /* 0: collected by the host before it was looked at */
	int process; /* pidfd of it; -1 where there is none */
	int out, err; /* what it writes, in memory */
};

/* Returns once it measures, at RATE_HZ. ERROR has PROFILER_ERROR_BYTES, and says why it does not. */
int child_start(struct child *child, unsigned rate_hz, char *error);
/* Lets it finish. What it wrote to stdout and stderr is the caller's to free; untouched after a failure. */
int child_stop(struct child *child, char **out, char **err, char *error);
/* Ends it at once, without a result. */
void child_abandon(struct child *child);
/* It is another process's. */
void child_forget(struct child *child);

#endif
