/* The perf map and JIT dumps of one process: where they lie, and reading what was added to them. */
#ifndef INFERSCOPE_UNWIND_JITFILES_H
#define INFERSCOPE_UNWIND_JITFILES_H

#include "base/arena.h"
#include "unwind/jitnames.h"
#include "unwind/modules.h"

struct jitfiles;

/* PROCESS_ROOT is a descriptor of the process's root folder, which stays the caller's; like PROCFS, MODULES and NAMES it must outlive the result.
 * NULL: out of memory. */
struct jitfiles *jitfiles_open(const struct procfs *procfs, pid_t pid, int process_root, const struct modules *modules, struct strings *names);
void jitfiles_close(struct jitfiles *files);
/* As jitnames_find(), after a look at the files when ADDR is not known yet (at most every 200 ms). */
bool jitfiles_find(struct jitfiles *files, uint64_t addr, const char **name, const char **file, uint32_t *line);
/* "perf map /tmp/perf-12.map", "JIT dump …", or why there is none. Valid until the next call. */
const char *jitfiles_source(struct jitfiles *files);

#endif
