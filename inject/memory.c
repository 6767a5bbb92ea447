/* process_vm_readv, process_vm_writev and /proc/PID/mem, whole or not at all. */
#include "inject/memory.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* The kernel says EIO where nothing is mapped, and nothing is left to read once the process has ended or replaced itself. */
static ssize_t descriptor_read(int fd, uint64_t addr, void *buffer, size_t size)
{
	ssize_t got = addr > INT64_MAX - size ? 0 : pread(fd, buffer, size, (off_t)addr);

	return got < 0 && errno == EIO ? 0 : got;
}

static void note_trouble(const struct memory *memory)
{
	if (memory->trouble && errno != EFAULT && errno != ESRCH)
		__atomic_store_n(memory->trouble, errno, __ATOMIC_RELAXED);
}

int memory_read(const struct memory *memory, uint64_t addr, void *buffer, size_t size)
{
	struct iovec here = { buffer, size }, there = { (void *)(uintptr_t)addr, size };
	ssize_t got;

	if (size == 0)
		return 0;
	got = memory->fd > 0 ? descriptor_read(memory->fd, addr, buffer, size) : -1;
	if (memory->fd <= 0 || (got < 0 && errno == EBADF)) /* a process of ours that keeps no descriptors (inject/holder.c) */
		got = process_vm_readv(memory->pid, &here, 1, &there, 1, 0);
	if (got == (ssize_t)size)
		return 0;
	if (got >= 0)
		errno = EFAULT;
	note_trouble(memory);
	return -1;
}

size_t memory_read_many(const struct memory *memory, const struct iovec *here, const struct iovec *there, size_t count)
{
	ssize_t got = memory->fd > 0 ? 0 : process_vm_readv(memory->pid, here, count, there, count, 0);
	size_t whole = 0;

	while (whole < count && got >= (ssize_t)here[whole].iov_len)
		got -= (ssize_t)here[whole++].iov_len;
	return whole;
}

int memory_write(pid_t pid, uint64_t addr, const void *bytes, size_t size)
{
	struct iovec here = { (void *)(uintptr_t)bytes, size }, there = { (void *)(uintptr_t)addr, size };
	ssize_t put;

	if (size == 0)
		return 0;
	put = process_vm_writev(pid, &here, 1, &there, 1, 0);
	if (put == (ssize_t)size)
		return 0;
	if (put >= 0)
		errno = EFAULT;
	return -1;
}

ssize_t memory_read_string(const struct memory *memory, uint64_t addr, char *buffer, size_t size)
{
	size_t length = 0;

	while (length + 1 < size) {
		size_t piece = 256 - (addr + length) % 256; /* never across a page that may be absent */

		if (piece > size - 1 - length)
			piece = size - 1 - length;
		if (memory_read(memory, addr + length, buffer + length, piece) < 0)
			return -1;
		if (memchr(buffer + length, '\0', piece))
			return (ssize_t)strlen(buffer);
		length += piece;
	}
	buffer[length] = '\0';
	return (ssize_t)length;
}
