/*
 * May we ptrace this process? The kernel only says EPERM; this walks through its rules (__ptrace_may_access, commoncap, Yama) with
 * what /proc tells, so that the refusal names the gate that is closed. Where it finds none, the real call decides later.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inject/target.h"

#define CAP_SYS_PTRACE_BIT 19
#define CAP_ANY_FILE 0x6ull /* DAC_OVERRIDE, DAC_READ_SEARCH */

/* By bit, as linux/capability.h numbers them. */
static const char *const capability_names[] = {
	"chown", "dac_override", "dac_read_search", "fowner", "fsetid", "kill", "setgid", "setuid", "setpcap", "linux_immutable", "net_bind_service",
	"net_broadcast", "net_admin", "net_raw", "ipc_lock", "ipc_owner", "sys_module", "sys_rawio", "sys_chroot", "sys_ptrace", "sys_pacct", "sys_admin",
	"sys_boot", "sys_nice", "sys_resource", "sys_time", "sys_tty_config", "mknod", "lease", "audit_write", "audit_control", "setfcap", "mac_override",
	"mac_admin", "syslog", "wake_alarm", "block_suspend", "audit_read", "perfmon", "bpf", "checkpoint_restore",
};

static const char *capabilities_told(uint64_t set, char *out, size_t size)
{
	size_t length = 0;

	out[0] = '\0';
	for (unsigned bit = 0; bit < 64; bit++) {
		const char *name = bit < sizeof capability_names / sizeof *capability_names ? capability_names[bit] : "a later one";

		if (set >> bit & 1 && length < size)
			length += (size_t)snprintf(out + length, size - length, "%s%s", length ? " " : "", name);
	}
	return out;
}

static int yama_scope(const struct procfs *procfs)
{
	char path[512];
	int scope = -1;
	FILE *file;

	snprintf(path, sizeof path, "%s/sys/kernel/yama/ptrace_scope", procfs->root);
	file = fopen(path, "re");
	if (!file)
		return -1;
	if (fscanf(file, "%d", &scope) != 1)
		scope = -1;
	fclose(file);
	return scope;
}

static bool is_ancestor(const struct procfs *procfs, pid_t ancestor, pid_t pid)
{
	struct proc_status status;

	for (int depth = 0; depth < 64 && pid > 1; depth++) {
		if (pid == ancestor)
			return true;
		if (procfs_status(procfs, pid, 0, &status) < 0)
			return false;
		pid = status.parent;
	}
	return false;
}

/* The kernel gives the files of /proc/PID to root when the process is not dumpable, and to its effective user otherwise. */
static bool not_dumpable(const struct target *target)
{
	char path[512];
	struct stat info;

	snprintf(path, sizeof path, "%s/%d/stat", target->procfs.root, (int)target->pid);
	return stat(path, &info) == 0 && info.st_uid == 0 && target->status.uid_effective != 0;
}

static bool same_namespace(const struct target *target, const char *name)
{
	char path[512], ours[128], theirs[128];
	ssize_t a, b;

	snprintf(path, sizeof path, "%s/self/ns/%s", target->procfs.root, name);
	a = readlink(path, ours, sizeof ours);
	snprintf(path, sizeof path, "%s/%d/ns/%s", target->procfs.root, (int)target->pid, name);
	b = readlink(path, theirs, sizeof theirs);
	return a < 0 || b < 0 || (a == b && memcmp(ours, theirs, (size_t)a) == 0);
}

static int refuse_foreign_user(struct target *target, const struct proc_status *own)
{
	const struct proc_status *its = &target->status;

	return target_refuse(target, ERR_PERMISSION, "permission", NULL,
	                     "it runs as uid %u (gid %u), this is uid %u (gid %u) without CAP_SYS_PTRACE", (unsigned)its->uid_effective,
	                     (unsigned)its->gid_effective, (unsigned)own->uid_real, (unsigned)own->gid_real);
}

static int check_without_capability(struct target *target, const struct proc_status *own)
{
	const struct proc_status *its = &target->status;
	int scope = yama_scope(&target->procfs);
	char lacking[160];

	if (own->uid_real != its->uid_effective || own->uid_real != its->uid_real || own->uid_real != its->uid_saved ||
	    own->gid_real != its->gid_effective || own->gid_real != its->gid_real || own->gid_real != its->gid_saved) {
		if (own->uid_effective == 0)
			return target_refuse(target, ERR_CAPABILITY, "permission", NULL,
			                     "this is root without CAP_SYS_PTRACE, and it runs as another user (uid %u)", (unsigned)its->uid_effective);
		return refuse_foreign_user(target, own);
	}
	if (not_dumpable(target))
		return target_refuse(target, ERR_DUMPABLE, "permission", NULL, "it is not dumpable, and this process has no CAP_SYS_PTRACE");
	if ((its->cap_permitted & ~own->cap_effective) != 0)
		return target_refuse(target, ERR_CAPABILITY, "permission", "run with at least its capabilities, or with CAP_SYS_PTRACE",
		                     "it has capabilities that this process lacks: %s", capabilities_told(its->cap_permitted & ~own->cap_effective, lacking, sizeof lacking));
	if (scope >= 2 || (scope == 1 && !is_ancestor(&target->procfs, getpid(), target->pid)))
		return target_refuse(target, ERR_YAMA, "permission", NULL, "kernel.yama.ptrace_scope is %d, and this process has no CAP_SYS_PTRACE",
		                     scope);
	target_note(target, "permission", "same user%s", scope == 1 ? ", descendant of this process" : "");
	return 0;
}

/* /proc/PID/auxv, mem, fd and others are for their owner alone, whatever ptrace permits: a container's root that has CAP_SYS_PTRACE and nothing else. */
static int check_files(struct target *target, const struct proc_status *own)
{
	char path[512];
	struct stat info;

	snprintf(path, sizeof path, "%s/%d/auxv", target->procfs.root, (int)target->pid);
	if (stat(path, &info) < 0 || info.st_uid == own->uid_effective || (own->cap_effective & CAP_ANY_FILE))
		return 0;
	return target_refuse(target, ERR_CAPABILITY, "permission", "give it CAP_DAC_OVERRIDE beside CAP_SYS_PTRACE (docker run --cap-add), or run it as that user",
	                     "its files in /proc are for uid %u alone, and this is uid %u without CAP_DAC_OVERRIDE", (unsigned)info.st_uid, (unsigned)own->uid_effective);
}

int preflight_permission(struct target *target)
{
	struct proc_status own;
	int scope = yama_scope(&target->procfs);

	if (target->memory.fd > 0) {
		target_note(target, "permission", "it has opened its memory to this process itself");
		return 0;
	}
	if (procfs_status(&target->procfs, getpid(), 0, &own) < 0) {
		target_warn(target, "permission", "our own status cannot be read (%s): trying is the only way to know", strerror(errno));
		return 0;
	}
	if (scope == 3)
		return target_refuse(target, ERR_YAMA, "permission", "set kernel.yama.ptrace_scope lower at the next boot: 3 cannot be changed back",
		                     "kernel.yama.ptrace_scope is 3: nobody may attach to anything");
	if (!(own.cap_effective >> CAP_SYS_PTRACE_BIT & 1))
		return check_without_capability(target, &own);
	if (check_files(target, &own) < 0)
		return -1;
	if (!same_namespace(target, "user"))
		target_note(target, "permission", "CAP_SYS_PTRACE, in another user namespace than the target's");
	else
		target_note(target, "permission", "CAP_SYS_PTRACE");
	return 0;
}
