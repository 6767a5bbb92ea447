#include "inject/memfd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* The kernel's name of it cannot be had by a file, but for one in the root of a mount of its owner's. */
static bool is_called(const char *found, const char *name)
{
	char wanted[NAME_MAX];

	snprintf(wanted, sizeof wanted, "/memfd:%s (deleted)", name);
	return strcmp(found, wanted) == 0;
}

static bool is_fresh(int fd)
{
	struct stat status;
	struct statfs system;

	return fstat(fd, &status) == 0 && fstatfs(fd, &system) == 0 && S_ISREG(status.st_mode) && status.st_nlink == 0 && status.st_size == 0 && system.f_type == TMPFS_MAGIC;
}

int memfd_open(const struct procfs *procfs, pid_t pid, int fd, const char *name, int flags, struct error *err)
{
	char path[PATH_MAX], found[NAME_MAX];
	int place, own = -1;
	ssize_t length;

	snprintf(path, sizeof path, "%s/%d/fd/%d", procfs->root, (int)pid, fd);
	place = open(path, O_PATH | O_CLOEXEC); /* of no effect on what lies there */
	if (place < 0)
		return fail(err, error_of(errno, ERR_INJECT), "descriptor %d of %d, made for its %s, cannot be looked at: %s", fd, (int)pid, name, strerror(errno));
	snprintf(path, sizeof path, "%s/self/fd/%d", procfs->root, place);
	length = readlink(path, found, sizeof found - 1);
	if (length < 0) {
		fail(err, error_of(errno, ERR_INJECT), "descriptor %d of %d, made for its %s, cannot be looked at: %s", fd, (int)pid, name, strerror(errno));
		close(place);
		return -1;
	}
	found[length] = '\0';
	if (!is_fresh(place) || !is_called(found, name)) {
		close(place);
		return fail(err, ERR_INJECT, "descriptor %d of %d is not the memfd that was made for its %s: something in it takes descriptors away", fd, (int)pid, name);
	}
	own = open(path, flags | O_CLOEXEC);
	if (own < 0)
		fail(err, error_of(errno, ERR_INJECT), "the memfd made in %d for its %s cannot be opened: %s", (int)pid, name, strerror(errno));
	close(place);
	return own;
}
