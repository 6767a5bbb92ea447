/* What surrounds a process: its clock, its memory limit, what the kernel lets it do with memfds. Only read; most of it is a warning. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cgroups.h"
#include "base/smallfile.h"
#include "inject/target.h"

#define NS_PER_S 1000000000ll
#define SECONDS_MAX (INT64_MAX / NS_PER_S / 2 - 1) /* the difference of two fits as well */
#define NO_LIMIT (INT64_C(1) << 50) /* version 1 says LONG_MAX, in pages */
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

/* What FOLDER, a control group, has left of its limit; UINT64_MAX: it has none. */
static uint64_t memory_left(const char *folder, uint64_t *limit)
{
	static const char *const files[][2] = { { "memory.max", "memory.current" }, { "memory.limit_in_bytes", "memory.usage_in_bytes" } };

	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		char path[CGROUP_PATH + 32];
		int64_t most, used;

		snprintf(path, sizeof path, "%s/%s", folder, files[i][0]);
		most = smallfile_number(path, -1); /* "max", or not told */
		snprintf(path, sizeof path, "%s/%s", folder, files[i][1]);
		used = smallfile_number(path, -1);
		if (most < 0 || most >= NO_LIMIT || used < 0 || used > most)
			continue;
		*limit = (uint64_t)most;
		return (uint64_t)(most - used);
	}
	return UINT64_MAX;
}

/* Of its group and all above it that are shown, the one with least left. */
static void look_at_memory(struct target *target)
{
	uint64_t left = UINT64_MAX, limit = 0;
	char folder[CGROUP_PATH];
	struct cgroup_place place;

	if (cgroup_place_find(&target->procfs, target->pid, "memory", &place) != CGROUP_SHOWN)
		return;
	do {
		uint64_t here_limit = 0, here = cgroup_place_folder(&place, folder) ? memory_left(folder, &here_limit) : UINT64_MAX;

		if (here < left) {
			left = here;
			limit = here_limit;
		}
	} while (cgroup_place_up(&place));
	if (left < LOW_MEMORY && !target->look_only)
		target_warn(target, "memory", "its control group has %llu MiB left of %llu: attaching takes less than a megabyte of that, but it is close to being ended by the kernel",
		            (unsigned long long)left >> 20, (unsigned long long)limit >> 20);
	else if (left != UINT64_MAX)
		target_note(target, "memory", "its control group has %llu MiB left", (unsigned long long)left >> 20);
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
	if (!target->look_only && text_read(path, text, sizeof text) && text[0] == '2')
		return target_refuse(target, ERR_INJECT, "memfd", "set vm.memfd_noexec to 1 or 0: the collector is loaded from a memfd",
		                     "vm.memfd_noexec is 2, and code cannot be loaded from a memfd");
	return 0;
}
