/* What `nsys export --type sqlite` writes: kernels, copies, memsets, synchronisation, runtime calls, NVTX ranges, calls of the C library. For this layer alone. */
#ifndef INFERSCOPE_IMPORT_NSYS_H
#define INFERSCOPE_IMPORT_NSYS_H

#include "base/error.h"

/* How a database of SQLite begins. */
#define NSYS_MAGIC "SQLite format 3"

/* Turns the database at PATH into a trace of ours, written to FD. A damaged one gives what could be read, and the trace says where it broke. */
int nsys_convert(const char *path, int fd, struct error *err);

#endif
