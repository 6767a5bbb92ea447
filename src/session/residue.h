/* What of InferScope is to be seen in a process: mapped lanes, descriptors, a live attacher. */
#ifndef INFERSCOPE_SESSION_RESIDUE_H
#define INFERSCOPE_SESSION_RESIDUE_H

#include "inject/inject.h"

struct residue {
	uint64_t lanes_addr;     /* of mapped lanes, 0 = none */
	uint32_t descriptors;    /* that are memfds of ours */
	uint64_t fds, mappings, threads; /* all of the process's */
};

/* False when the process cannot be looked at (gone, or not allowed). */
bool residue_read(const struct procfs *procfs, pid_t pid, struct residue *out);
/* True when the lanes at ADDR are armed and their deadline is not over. *ATTACHER_PID 0 = not told; *DEADLINE moves as long as the attacher lives. */
bool residue_busy(const struct target *target, uint64_t lanes_addr, uint32_t *attacher_pid, uint64_t *deadline);

#endif
