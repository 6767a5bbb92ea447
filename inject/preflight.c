/* What can be known of a process before anything is done to it: is it fit, and is there room. gate.c and images.c have the rest. */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "inject/memory.h"
#include "inject/slot.h"
#include "inject/target.h"

#define KERNEL_THREAD_FLAG 0x00200000u /* PF_KTHREAD */
#define CAP_SYS_ADMIN_BIT 21
#define ROOM_BYTES (24ull << 20) /* scratch, a thread's stack, the library; malloc's arena may fail without harm */
#define ROOM_LOCKED (256ull << 20) /* where all that is mapped is locked: that, two arenas that glibc reserves (64 MiB each), and our tables for a moment */
#define CAPABILITY_IPC_LOCK 14
#define ROOM_MAPPINGS 32
#define ROOM_FDS 4
#define TRACER_LOOKS 10
#define TRACER_NAP_NS 2000000l
/* The collector's names, only to say beforehand that one is there; what is loaded is decided by build id at the entry. */
#define USUAL_MEMFD "inferscope-collector"
#define USUAL_ENTRY "inferscope_collector_entry"

static const char *command_of(const struct target *target, pid_t pid, char *buffer, size_t size)
{
	ssize_t length = procfs_read(&target->procfs, pid, "comm", buffer, size);

	if (length <= 0)
		return "?";
	buffer[strcspn(buffer, "\n")] = '\0';
	return buffer;
}

static void read_names(struct target *target)
{
	struct target_facts *facts = &target->facts;
	char path[512];
	ssize_t length;

	snprintf(facts->command, sizeof facts->command, "%s", target->status.name);
	snprintf(path, sizeof path, "%s/%d/exe", target->procfs.root, (int)target->pid);
	length = readlink(path, facts->executable, sizeof facts->executable - 1);
	facts->executable[length > 0 ? length : 0] = '\0';
}

/* A machine in trouble is not a process that is not there. */
static int refuse_unseen(struct target *target)
{
	bool absent = errno == ENOENT || errno == ESRCH, real = strcmp(target->procfs.root, procfs_real.root) == 0;

	if (absent && real && (kill(target->pid, 0) == 0 || errno == EPERM))
		return target_refuse(target, ERR_PERMISSION, "process", "run as root, or as the user of the process", "it is there, but /proc does not show it to this user (mounted with hidepid)");
	if (absent)
		return target_refuse(target, ERR_NO_PROCESS, "process", NULL, "there is no such process");
	return target_refuse(target, error_of(errno, ERR_PERMISSION), "process", NULL, "what /proc tells of it cannot be read (%s)", strerror(errno));
}

/* What /proc calls a pid, ptrace must call by it, too: else one process would be looked at, and another entered. */
static int preflight_procfs(struct target *target)
{
	char path[512], self[32] = "";
	ssize_t length;

	if (strcmp(target->procfs.root, procfs_real.root) != 0)
		return 0; /* a test's */
	snprintf(path, sizeof path, "%s/self", target->procfs.root);
	length = readlink(path, self, sizeof self - 1);
	if (length < 0)
		return target_refuse(target, ERR_NO_PROCESS, "process", "mount -t proc proc /proc", "%s is not mounted here, and says what a process is", target->procfs.root);
	self[length] = '\0';
	if (strtol(self, NULL, 10) == getpid())
		return 0;
	return target_refuse(target, ERR_NO_PROCESS, "process", "mount -t proc proc /proc in this pid namespace, or run InferScope in the other one (nsenter)", "%s is of another pid namespace than this process", target->procfs.root);
}

int preflight_process(struct target *target)
{
	const struct proc_status *status = &target->status;
	struct proc_times times;
	char name[64], hint[64];

	if (preflight_procfs(target) < 0)
		return -1;
	if (target->pid == getpid())
		return target_refuse(target, ERR_OWN_PROCESS, "process", NULL, "that is this very process");
	if (procfs_status(&target->procfs, target->pid, 0, &target->status) < 0 ||
	    procfs_times(&target->procfs, target->pid, 0, &times) < 0)
		return refuse_unseen(target);
	if (status->thread_group && status->thread_group != target->pid)
		return target_refuse(target, ERR_NO_PROCESS, "process", "give the process, not one of its threads", "it is a thread of process %d",
		                     (int)status->thread_group);
	target->facts.start_ticks = times.start_ticks;
	target->facts.inner_pid = status->inner_pid ? status->inner_pid : target->pid;
	target->facts.threads = status->threads;
	read_names(target);
	if (status->state == 'Z' || status->state == 'X')
		return target_refuse(target, ERR_ZOMBIE, "state", NULL, "it is a zombie");
	if (times.flags & KERNEL_THREAD_FLAG)
		return target_refuse(target, ERR_KERNEL_THREAD, "state", NULL, "it is a kernel thread (%s)", target->facts.command);
	/* Samplers and other attaches hold a thread for microseconds: only who stays is a tracer. */
	for (int look = 0; status->tracer && look < TRACER_LOOKS; look++) {
		nanosleep(&(struct timespec){ 0, TRACER_NAP_NS }, NULL);
		if (procfs_status(&target->procfs, target->pid, 0, &target->status) < 0)
			return refuse_unseen(target);
	}
	if (status->tracer && target->look_only)
		target_warn(target, "tracer", "traced by %d (%s)", (int)status->tracer, command_of(target, status->tracer, name, sizeof name));
	else if (status->tracer)
		return target_refuse(target, ERR_ALREADY_TRACED, "tracer", NULL, "already traced by %d (%s)", (int)status->tracer,
		                     command_of(target, status->tracer, name, sizeof name));
	snprintf(hint, sizeof hint, STOPPED_HINT, (int)target->pid);
	if (status->state == 'T' && target->look_only)
		target_warn(target, "state", "it is stopped, and does nothing as long as it is");
	else if ((status->state == 'T' || status->state == 't') && !target->look_only)
		return target_refuse(target, ERR_STOPPED, "state", hint, "it is stopped (state %c)", status->state);
	target_note(target, "process", "%s, %u threads, state %c%s", target->facts.command, status->threads, status->state,
	            status->ns_depth > 1 ? ", in a pid namespace of its own" : "");
	return 0;
}

static uint64_t limit_of(const char *limits, const char *name)
{
	const char *line = strstr(limits, name);

	if (!line)
		return UINT64_MAX;
	line += strlen(name);
	line += strspn(line, " ");
	return *line >= '0' && *line <= '9' ? strtoull(line, NULL, 10) : UINT64_MAX;
}

static uint64_t count_fds(const struct target *target)
{
	char path[512];
	uint64_t count = 0;
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof path, "%s/%d/fd", target->procfs.root, (int)target->pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir)))
		count += entry->d_name[0] != '.';
	if (dir)
		closedir(dir);
	return count;
}

static uint64_t max_mappings(const struct target *target)
{
	char path[512];
	unsigned long long value = 65530;
	FILE *file;

	snprintf(path, sizeof path, "%s/sys/vm/max_map_count", target->procfs.root);
	file = fopen(path, "re");
	if (file && fscanf(file, "%llu", &value) != 1)
		value = 65530;
	if (file)
		fclose(file);
	return value;
}

/* It has called mlockall, which nothing in /proc tells: what we map, and what the program maps later, counts to its limit. */
static int check_locked(struct target *target, uint64_t limit)
{
	const struct proc_status *status = &target->status;
	uint64_t locked = status->vm_locked_kb * 1024;

	if (limit == UINT64_MAX || status->cap_effective >> CAPABILITY_IPC_LOCK & 1 || status->vm_locked_kb < status->vm_size_kb / 2 || locked + ROOM_LOCKED <= limit)
		return 0;
	return target_refuse(target, ERR_INJECT, "limits", "raise its limit: prlimit --pid PID --memlock=…", "its memory is locked (mlockall), and its limit for that (%llu MiB) leaves no room: %llu MiB are used",
	                     (unsigned long long)(limit >> 20), (unsigned long long)(locked >> 20));
}

static int check_limits(struct target *target)
{
	char limits[4096];
	uint64_t bytes, fds;

	target->facts.fds = count_fds(target);
	if (procfs_read(&target->procfs, target->pid, "limits", limits, sizeof limits) <= 0) {
		target_warn(target, "limits", "its limits cannot be read (%s)", strerror(errno));
		return 0;
	}
	bytes = limit_of(limits, "Max address space");
	fds = limit_of(limits, "Max open files");
	if (bytes != UINT64_MAX && bytes < target->status.vm_size_kb * 1024 + ROOM_BYTES)
		return target_refuse(target, ERR_INJECT, "limits", "raise its address space limit: prlimit --pid PID --as=…",
		                     "its address space limit (%llu MiB) leaves no room: %llu MiB are used", (unsigned long long)(bytes >> 20),
		                     (unsigned long long)(target->status.vm_size_kb >> 10));
	if (fds != UINT64_MAX && fds < target->facts.fds + ROOM_FDS)
		return target_refuse(target, ERR_INJECT, "limits", "raise its limit: prlimit --pid PID --nofile=…",
		                     "it has %llu of %llu files open", (unsigned long long)target->facts.fds, (unsigned long long)fds);
	if (check_locked(target, limit_of(limits, "Max locked memory")) < 0)
		return -1;
	if (target->facts.mappings + ROOM_MAPPINGS > max_mappings(target))
		return target_refuse(target, ERR_INJECT, "limits", "raise vm.max_map_count", "it has %llu of %llu memory mappings",
		                     (unsigned long long)target->facts.mappings, (unsigned long long)max_mappings(target));
	target_note(target, "limits", "%llu files open, %llu mappings", (unsigned long long)target->facts.fds,
	            (unsigned long long)target->facts.mappings);
	return 0;
}

static int check_seccomp(struct target *target)
{
	struct proc_status own;

	if (target->status.seccomp == 1)
		return target_refuse(target, ERR_SECCOMP, "seccomp", NULL, "it runs in strict seccomp mode");
	if (target->status.seccomp != 2) {
		target_note(target, "seccomp", "off");
		return 0;
	}
	if (procfs_status(&target->procfs, getpid(), 0, &own) == 0 && (!(own.cap_effective >> CAP_SYS_ADMIN_BIT & 1) || own.seccomp > 0))
		return target_refuse(target, ERR_SECCOMP, "seccomp",
		                     "run as root on the host: reading the filter needs CAP_SYS_ADMIN and no seccomp filter of our own",
		                     "it has a seccomp filter that cannot be read from here, so nobody can tell whether it would kill it");
	target_note(target, "seccomp", "has a filter: it is read and evaluated before anything is done");
	return 0;
}

static int check_slots(struct target *target)
{
	struct slot slots[MAX_SLOTS];
	size_t count = slots_find(target, slots), usable = slots_usable(slots, count);

	if (usable == 0 && target->memory_trouble)
		return target_refuse(target, error_of(target->memory_trouble, ERR_INJECT), "memory", NULL, "its memory could not be read (%s)", strerror(target->memory_trouble));
	if (usable == 0 && count == 0)
		return target_refuse(target, ERR_NO_SLOT, "slots", "another build of its Python or libc may have room",
		                     "no padding behind code is large enough for the entry code");
	if (usable == 0)
		return target_refuse(target, ERR_NO_SLOT, "slots", NULL, "threads of earlier attaches are at work in all %zu places for the entry code", count);
	target_note(target, "slots", "%zu of %zu free, the first in %s", usable, count, slots[0].where);
	return 0;
}

static void look_for_dormant(struct target *target)
{
	unsigned loaded;

	target->facts.dormant_entry = target_dormant(target, USUAL_MEMFD, NULL, false, USUAL_ENTRY, &loaded, target->facts.dormant_build_id,
	                                             sizeof target->facts.dormant_build_id);
	if (loaded)
		target_note(target, "collector", "%u of earlier attaches mapped, build %.16s", loaded, target->facts.dormant_build_id);
	else
		target_note(target, "collector", "none yet");
}

int preflight_room(struct target *target)
{
	if (target->look_only)
		return 0;
	if (check_seccomp(target) < 0 || check_limits(target) < 0 || check_slots(target) < 0)
		return -1;
	look_for_dormant(target);
	if (target->no_proc && !target->facts.dormant_entry)
		return target_refuse(target, ERR_INJECT, "proc", "mount /proc in its root: the collector is loaded through /proc/self/fd",
		                     "there is no /proc inside its root directory");
	return 0;
}
