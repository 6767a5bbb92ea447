/* Memfds that the target was made to create. */
#ifndef INFERSCOPE_INJECT_MEMFD_H
#define INFERSCOPE_INJECT_MEMFD_H

#include <sys/types.h>

#include "base/error.h"
#include "base/procfs.h"

/*
 * Opens descriptor FD of process PID with FLAGS (O_WRONLY, O_RDWR), if it is the empty memfd called NAME. The number comes from the target, which may have put any
 * file there that it can read, a pipe or a device: we may be root where it is not, so nothing is opened before it is known to be that memfd.
 * The caller closes it. ERR_INJECT.
 */
int memfd_open(const struct procfs *procfs, pid_t pid, int fd, const char *name, int flags, struct error *err);

#endif
