/* A folder of files that a target plays, such as /proc, in memory: made at the first input, removed at the end. */
#ifndef INFERSCOPE_FUZZ_TREE_H
#define INFERSCOPE_FUZZ_TREE_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char tree_root[64];
static int tree_fd;

static void tree_remove(void)
{
	char command[96];

	snprintf(command, sizeof command, "rm -rf %s", tree_root);
	if (system(command))
		abort();
}

/* With these folders in it, parents first. False: it was there already. */
static bool tree_make(const char *const *folders, size_t count)
{
	if (tree_root[0])
		return false;
	snprintf(tree_root, sizeof tree_root, "/dev/shm/inferscope-fuzz.XXXXXX");
	if (!mkdtemp(tree_root) || (tree_fd = open(tree_root, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
		abort();
	atexit(tree_remove);
	for (size_t i = 0; i < count; i++)
		if (mkdirat(tree_fd, folders[i], 0700) < 0)
			abort();
	return true;
}

static void tree_write(const char *name, const void *data, size_t size)
{
	int fd = openat(tree_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	close(fd);
}

/* proc/self/mountinfo: control groups of version 2, and of version 1 for the CONTROLLER, below sys/fs/cgroup. */
static inline void tree_write_mounts(const char *controller)
{
	char text[512];
	int length = snprintf(text, sizeof text, "30 20 0:26 / %s/sys/fs/cgroup rw - cgroup2 cgroup2 rw\n31 20 0:27 / %s/sys/fs/cgroup/%s rw shared:4 - cgroup cgroup rw,%s\n", tree_root, tree_root, controller, controller);

	tree_write("proc/self/mountinfo", text, (size_t)length);
}

#endif
