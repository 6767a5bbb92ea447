/*
 * Memory of our own in a program that may lock all of its memory (mlockall): there a mapping is filled and locked as it is made, and the kernel takes nothing back
 * (madvise says EINVAL). What is ours is to cost such a program no more than others.
 */
#ifndef INFERSCOPE_COLLECTOR_MAPPING_H
#define INFERSCOPE_COLLECTOR_MAPPING_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>

/* To read and write, not locked, and empty. FD: -1 for memory that nobody else has. NULL: errno says why not. */
static inline void *mapping_make(size_t bytes, int fd)
{
	/* Without access nothing can be filled in, however it is locked (Linux 5.10 to 6.18). */
	void *at = mmap(NULL, bytes, PROT_NONE, fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED, fd, 0);
	int error;

	if (at == MAP_FAILED)
		return NULL;
	if (madvise(at, bytes, MADV_DONTNEED))
		munlock(at, bytes);
	if (!mprotect(at, bytes, PROT_READ | PROT_WRITE))
		return at;
	error = errno;
	munmap(at, bytes);
	errno = error;
	return NULL;
}

/* Of memory that nobody else has: all zero, and given back. False: it has been locked since, and holds what it did. errno is kept. */
static inline bool mapping_empty(void *at, size_t bytes)
{
	int saved = errno;
	bool emptied = !madvise(at, bytes, MADV_DONTNEED);

	errno = saved;
	return emptied;
}

#endif
