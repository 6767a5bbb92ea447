/* Memory of another process, read and written without stopping it. */
#ifndef INFERSCOPE_INJECT_MEMORY_H
#define INFERSCOPE_INJECT_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct iovec;

/* Whose memory, and how it is read: FD is a descriptor of its /proc/PID/mem that the process opened itself, which asks for no right to trace it; 0 = process_vm_readv. */
struct memory {
	pid_t pid;
	int fd;
	int *trouble; /* gets why a read failed of memory that may well be there (ENOMEM, EPERM); NULL: nobody asks */
};

/* All SIZE bytes, or -1 with errno: EFAULT where nothing is mapped, or nothing any more. */
int memory_read(const struct memory *memory, uint64_t addr, void *buffer, size_t size);
/* Many places at one moment, or nearly: COUNT (<= 16) of them in this order, up to the first one that cannot be read whole. THERE[I] is as large as HERE[I]. How many were read;
 * 0, too, where the process is read by a descriptor, which has no call for it. */
size_t memory_read_many(const struct memory *memory, const struct iovec *here, const struct iovec *there, size_t count);
int memory_write(pid_t pid, uint64_t addr, const void *bytes, size_t size);
/* A string of at most SIZE-1 bytes, always terminated here. Its length, or -1. */
ssize_t memory_read_string(const struct memory *memory, uint64_t addr, char *buffer, size_t size);

#endif
