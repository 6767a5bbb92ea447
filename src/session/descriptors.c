/* One byte for each descriptor: they are asked for at each system call. */
#include "session/descriptors.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "abi/syscall.h"

enum kind { KIND_NOT_LOOKED_AT, KIND_UNKNOWN, KIND_FILE, KIND_SOCKET, KIND_PIPE, KIND_EPOLL, KIND_EVENT, KIND_TIMER, KIND_MEMORY, KIND_TERMINAL, KIND_GPU, KIND_DEVICE, KIND_RING, KIND_OTHER };

static const char *const names[] = { "", "", "file", "socket", "pipe", "epoll", "eventfd", "timerfd", "memfd", "terminal", "gpu", "device", "io_uring", "other" };

/* What the link of a descriptor begins with; the first that fits. */
static const struct { const char *begin; enum kind kind; } links[] = {
	{ "socket:", KIND_SOCKET }, { "pipe:", KIND_PIPE }, { "anon_inode:[eventpoll]", KIND_EPOLL }, { "anon_inode:[eventfd]", KIND_EVENT }, { "anon_inode:[timerfd]", KIND_TIMER },
	{ "anon_inode:[io_uring]", KIND_RING }, { "anon_inode:", KIND_OTHER }, { "/memfd:", KIND_MEMORY }, { "/dev/pts/", KIND_TERMINAL }, { "/dev/tty", KIND_TERMINAL },
	{ "/dev/nvidia", KIND_GPU }, { "/dev/dri/", KIND_GPU }, { "/dev/kfd", KIND_GPU }, { "/dev/shm/", KIND_FILE }, { "/dev/", KIND_DEVICE }, { "/", KIND_FILE },
};

static const struct { uint16_t what; enum kind kind; } made[] = {
	{ SYSCALL_MAKES_FILE, KIND_FILE /* or a device; it may be closed before it could be looked at */ },
	{ SYSCALL_MAKES_SOCKET, KIND_SOCKET }, { SYSCALL_MAKES_EPOLL, KIND_EPOLL }, { SYSCALL_MAKES_EVENT, KIND_EVENT }, { SYSCALL_MAKES_TIMER, KIND_TIMER }, { SYSCALL_MAKES_MEMORY, KIND_MEMORY },
};

bool descriptors_open(const struct procfs *procfs, pid_t pid, struct descriptors *out)
{
	*out = (struct descriptors){ .procfs = procfs, .pid = pid, .kinds = calloc(DESCRIPTORS_MAX, 1) };
	return out->kinds != NULL;
}

void descriptors_done(struct descriptors *descriptors)
{
	free(descriptors->kinds);
	descriptors->kinds = NULL;
}

static enum kind look(const struct descriptors *descriptors, uint64_t fd)
{
	char path[PATH_MAX], link[64];
	ssize_t length;

	if (snprintf(path, sizeof path, "%s/%d/fd/%d", descriptors->procfs->root, (int)descriptors->pid, (int)fd) >= (int)sizeof path)
		return KIND_UNKNOWN;
	length = readlink(path, link, sizeof link - 1);
	link[length > 0 ? length : 0] = '\0';
	for (size_t i = 0; length > 0 && i < sizeof links / sizeof *links; i++)
		if (strncmp(link, links[i].begin, strlen(links[i].begin)) == 0)
			return links[i].kind;
	return KIND_UNKNOWN;
}

const char *descriptors_kind(struct descriptors *descriptors, uint64_t fd)
{
	if (fd >= DESCRIPTORS_MAX)
		return "";
	if (descriptors->kinds[fd] == KIND_NOT_LOOKED_AT)
		descriptors->kinds[fd] = (uint8_t)look(descriptors, fd);
	return names[descriptors->kinds[fd]];
}

void descriptors_seen(struct descriptors *descriptors, uint64_t number, uint64_t first, int64_t result)
{
	const struct syscall_row *row = syscall_row(number);

	if (!row || result < 0)
		return;
	if (row->what & SYSCALL_CLOSES && first < DESCRIPTORS_MAX)
		descriptors->kinds[first] = KIND_NOT_LOOKED_AT;
	if (result >= DESCRIPTORS_MAX)
		return;
	if (row->what & SYSCALL_COPIES)
		descriptors->kinds[result] = first < DESCRIPTORS_MAX ? descriptors->kinds[first] : KIND_NOT_LOOKED_AT;
	for (size_t i = 0; i < sizeof made / sizeof *made; i++)
		if (row->what & made[i].what)
			descriptors->kinds[result] = (uint8_t)made[i].kind;
}
