/* The target's memory and interpreter, as unwind/ reads them. */
#ifndef INFERSCOPE_SESSION_READER_H
#define INFERSCOPE_SESSION_READER_H

#include "base/error.h"
#include "inject/inject.h"
#include "unwind/pystack.h"

/* Place by place; TARGET must outlive it. */
struct remote_memory reader_memory(const struct target *target);
/* Where the interpreter's state lies, and its size in bytes (0 = not told). 0, and ERR_NOT_PYTHON or why memory could not be read, when it is not known. */
remote_addr reader_runtime(struct target *target, uint64_t *size, struct error *err);
/* pyreader_open(), which cannot tell what is not there from what could not be read. */
int reader_open(const struct target *target, const struct remote_memory *memory, remote_addr runtime, struct pyreader **out, struct error *err);

#endif
