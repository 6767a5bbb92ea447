/* What surrounds a process: its clock, its memory limit, what the kernel lets it do with memfds. Only read; most of it is a warning. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inject/target.h"

#define NS_PER_S 1000000000ll
#define SECONDS_MAX (INT64_MAX / NS_PER_S / 2 - 1) /* the difference of two fits as well */
#define NO_LIMIT (1ull << 50) /* version 1 says LONG_MAX, in pages */
#define LOW_MEMORY (16ull << 20) /* a thread's stack, the collector, its tables; the lanes are charged to us */

static bool text_read(const char *path, char *out, size_t size)
{
	FILE *file = fopen(path, "re");
	size_t got = file ? fread(out, 1, size - 1, file) : 0;

	if (file)
		fclose(file);
	out[got] = '\0';
	return got > 0;
}

/* time_namespaces(7): "monotonic SECONDS NANOSECONDS"; a kernel without them has no such file. */
static int64_t clock_offset_ns(const struct procfs *procfs, const char *process)
{
	char path[512], text[256];
	const char *line;
	long long seconds = 0, ns = 0;

	snprintf(path, sizeof path, "%s/%s/timens_offsets", procfs->root, process);
	line = text_read(path, text, sizeof text) ? strstr(text, "monotonic") : NULL;
	if (!line || sscanf(line, "monotonic %lld %lld", &seconds, &ns) != 2 || seconds > SECONDS_MAX || seconds < -SECONDS_MAX || ns < 0 || ns >= NS_PER_S)
		return 0;
	return seconds * NS_PER_S + ns;
}

static void look_at_clock(struct target *target)
{
	char process[32];
	int64_t ahead_ns, own_ns = clock_offset_ns(&target->procfs, "self");

	snprintf(process, sizeof process, "%d", (int)target->pid);
	ahead_ns = clock_offset_ns(&target->procfs, process) - own_ns;
	target->facts.own_clock_ahead_ns = own_ns;
	target->facts.clock_ahead_ns = ahead_ns;
	if (ahead_ns)
		target_note(target, "clock", "in a time namespace of its own: its CLOCK_MONOTONIC is %+.3f s from ours; the time stamp counter is the same", (double)ahead_ns / 1e9);
}

/* The path of its control group below HEAD ("0::" of version 2, ":memory:" of version 1), as cgroups(7) prints it. */
static bool group_path(const char *text, const char *head, char *out, size_t size)
{
	const char *found = strstr(text, head);
	size_t length;

	if (!found)
		return false;
	found += strlen(head);
	length = strcspn(found, "\n");
	snprintf(out, size, "%.*s", (int)length, found);
	return length < size && !strstr(out, "..");
}

static bool number_read(const struct target *target, const char *folder, const char *group, const char *name, uint64_t *out)
{
	char path[1024], text[64];

	/* Beside /proc, so that a test can play both. */
	snprintf(path, sizeof path, "%s/../sys/fs/cgroup%s%s/%s", target->procfs.root, folder, group, name);
	if (!text_read(path, text, sizeof text) || text[0] < '0' || text[0] > '9')
		return false; /* "max", or not told */
	*out = strtoull(text, NULL, 10);
	return true;
}

static void look_at_memory(struct target *target)
{
	char text[4096], group[512];
	uint64_t limit, used;
	bool told = false;

	if (procfs_read(&target->procfs, target->pid, "cgroup", text, sizeof text) <= 0)
		return;
	if (group_path(text, "0::", group, sizeof group))
		told = number_read(target, "", group, "memory.max", &limit) && number_read(target, "", group, "memory.current", &used);
	if (!told && group_path(text, ":memory:", group, sizeof group))
		told = number_read(target, "/memory", group, "memory.limit_in_bytes", &limit) && number_read(target, "/memory", group, "memory.usage_in_bytes", &used);
	told = told && limit < NO_LIMIT && used <= limit;
	if (told && limit - used < LOW_MEMORY)
		target_warn(target, "memory", "its control group has %llu MiB left of %llu: attaching takes less than a megabyte of that, but it is close to being ended by the kernel",
		            (unsigned long long)(limit - used) >> 20, (unsigned long long)limit >> 20);
	else if (told)
		target_note(target, "memory", "its control group has %llu MiB left", (unsigned long long)(limit - used) >> 20);
}

int preflight_surroundings(struct target *target)
{
	char path[512], text[32];

	look_at_clock(target);
	look_at_memory(target);
	if (target->status.no_new_privs)
		target_note(target, "privileges", "no_new_privs is set: nothing here needs new ones");
	/* 2: memfds may not be executable at all (Linux 6.3); 1 only takes the mode bit, which the loader does not ask for. */
	snprintf(path, sizeof path, "%s/sys/vm/memfd_noexec", target->procfs.root);
	if (text_read(path, text, sizeof text) && text[0] == '2')
		return target_refuse(target, ERR_INJECT, "memfd", "set vm.memfd_noexec to 1 or 0: the collector is loaded from a memfd",
		                     "vm.memfd_noexec is 2, and code cannot be loaded from a memfd");
	return 0;
}
