/* Looking for what an attach left, or another one holds. */
#include "session/residue.h"

#include <dirent.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "abi/handover.h"
#include "abi/page.h"
#include "base/clock.h"

static bool maps_read(const char *path, struct residue *out)
{
	FILE *maps = fopen(path, "re");
	char *line = NULL;
	size_t capacity = 0;

	if (!maps)
		return false;
	while (getline(&line, &capacity, maps) > 0) {
		const char *name = strchr(line, '/');

		out->mappings++;
		if (!out->lanes_addr && name && strncmp(name, "/memfd:" LANES_MEMFD_NAME, strlen("/memfd:" LANES_MEMFD_NAME)) == 0)
			out->lanes_addr = strtoull(line, NULL, 16);
	}
	free(line);
	fclose(maps);
	return true;
}

static bool fds_read(const char *path, struct residue *out)
{
	DIR *folder = opendir(path);
	const struct dirent *entry;

	if (!folder)
		return false;
	while ((entry = readdir(folder))) {
		char link[64];
		ssize_t length;

		if (entry->d_name[0] == '.')
			continue;
		out->fds++;
		length = readlinkat(dirfd(folder), entry->d_name, link, sizeof link - 1);
		if (length <= 0)
			continue;
		link[length] = '\0';
		out->descriptors += strncmp(link, "/memfd:inferscope-", strlen("/memfd:inferscope-")) == 0;
	}
	closedir(folder);
	return true;
}

bool residue_read(const struct procfs *procfs, pid_t pid, struct residue *out)
{
	struct residue residue = { 0 };
	struct proc_times times;
	char path[256];

	snprintf(path, sizeof path, "%s/%d/maps", procfs->root, (int)pid);
	if (!maps_read(path, &residue))
		return false;
	snprintf(path, sizeof path, "%s/%d/fd", procfs->root, (int)pid);
	if (!fds_read(path, &residue) || procfs_times(procfs, pid, 0, &times) < 0)
		return false;
	residue.threads = times.threads;
	*out = residue;
	return true;
}

bool residue_busy(const struct target *target, uint64_t lanes_addr, uint32_t *attacher_pid, uint64_t *deadline)
{
	struct page page;
	size_t head = offsetof(struct page, arm) + sizeof page.arm;
	uint64_t now;

	memset(&page, 0, sizeof page);
	if (target_read(target, lanes_addr, &page, head) < 0 || page.magic != PAGE_MAGIC || page.arm == ARM_DISARMED || page.arm == ARM_FAILED || page.arm == ARM_CANCELLED)
		return false;
	*attacher_pid = page.attacher_pid;
	*deadline = page.deadline_ticks;
	now = page.clock == CLOCK_TSC ? clock_tsc() : clock_monotonic_ns();
	return now < page.deadline_ticks;
}
