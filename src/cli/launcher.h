/* A process that only waits for those it started: where the work is. */
#ifndef INFERSCOPE_CLI_LAUNCHER_H
#define INFERSCOPE_CLI_LAUNCHER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct procfs;
struct launcher;

/* Begins to watch PID and what descends from it. NULL where it has started nothing. PROCFS must outlive it. */
struct launcher *launcher_open(const struct procfs *procfs, pid_t pid);
/* Where the work was since then, when the process used next to nothing and what descends from it was busy: "process 7 uses next to no CPU; …". False: it is not so. */
bool launcher_judge(struct launcher *launcher, char *out, size_t size);
void launcher_close(struct launcher *launcher); /* accepts NULL */

#endif
