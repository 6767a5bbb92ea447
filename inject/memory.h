/* Memory of another process, read and written without stopping it. */
#ifndef INFERSCOPE_INJECT_MEMORY_H
#define INFERSCOPE_INJECT_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* All SIZE bytes, or -1 with errno. */
int memory_read(pid_t pid, uint64_t addr, void *buffer, size_t size);
int memory_write(pid_t pid, uint64_t addr, const void *bytes, size_t size);
/* A string of at most SIZE-1 bytes, always terminated here. Its length, or -1. */
ssize_t memory_read_string(pid_t pid, uint64_t addr, char *buffer, size_t size);

#endif
