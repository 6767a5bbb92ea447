/* Refusals, from a folder that plays /proc. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "inject/inject.h"
#include "tests/unit/folder.h"

static void put_status(const char *folder, int pid, char state, int tracer, unsigned caps, int flags)
{
	char text[1024], name[64];

	snprintf(text, sizeof text, "Name:\tpython\nState:\t%c (x)\nTgid:\t%d\nPid:\t%d\nPPid:\t1\nTracerPid:\t%d\nUid:\t%d\t%d\t%d\t%d\nGid:\t%d\t%d\t%d\t%d\n"
	         "Threads:\t1\nNSpid:\t%d\nVmSize:\t1000 kB\nSigBlk:\t0\nCapPrm:\t0\nCapEff:\t%x\nSeccomp:\t0\n", state, pid, pid, tracer, getuid(), getuid(), getuid(), getuid(),
	         getgid(), getgid(), getgid(), getgid(), pid, caps);
	snprintf(name, sizeof name, "%d/status", pid);
	folder_write(folder, name, text);
	snprintf(text, sizeof text, "%d (python) %c 1 1 1 0 -1 %d 0 0 0 0 0 0 0 0 20 0 1 0 100 1000000 100 0\n", pid, state, flags);
	snprintf(name, sizeof name, "%d/stat", pid);
	folder_write(folder, name, text);
}

static enum error_code refusal(const char *folder, pid_t pid, char *text, size_t size)
{
	struct procfs procfs = { folder };
	struct inject_options options = { .procfs = &procfs };
	struct target *target = NULL;
	struct error err = { 0 };

	cr_assert_eq(target_open(pid, &options, &target, &err), -1);
	snprintf(text, size, "%s", err.text);
	cr_assert(err.hint[0], "every refusal says what to do");
	target_close(target);
	return err.code;
}

static const char *play_proc(void)
{
	static char folder[FOLDER_BYTES];

	folder_make(folder);
	put_status(folder, getpid(), 'R', 0, 0x80000, 0); /* ours: CAP_SYS_PTRACE */
	return folder;
}

Test(refusal, names_the_state)
{
	const char *folder = play_proc();
	char text[1024];

	put_status(folder, 71, 'Z', 0, 0, 0);
	put_status(folder, 72, 'T', 0, 0, 0);
	put_status(folder, 73, 'S', 71, 0, 0);
	put_status(folder, 74, 'S', 0, 0, 0x00200000);
	folder_write(folder, "71/comm", "gdb\n");
	cr_assert_eq(refusal(folder, 70, text, sizeof text), ERR_NO_PROCESS);
	cr_assert_eq(refusal(folder, 71, text, sizeof text), ERR_ZOMBIE);
	cr_assert_eq(refusal(folder, 72, text, sizeof text), ERR_STOPPED);
	cr_assert_eq(refusal(folder, 73, text, sizeof text), ERR_ALREADY_TRACED);
	cr_assert_str_eq(text, "cannot attach to 73: already traced by 71 (gdb)");
	cr_assert_eq(refusal(folder, 74, text, sizeof text), ERR_KERNEL_THREAD);
	cr_assert_eq(refusal(folder, getpid(), text, sizeof text), ERR_OWN_PROCESS);
	folder_way(folder, "75/status/"); /* a machine in trouble is not a process that is not there */
	cr_assert_eq(refusal(folder, 75, text, sizeof text), ERR_PERMISSION);
	cr_assert_str_eq(text, "cannot attach to 75: what /proc tells of it cannot be read (Is a directory)");
	folder_remove(folder);
}

Test(refusal, names_yama_and_its_value)
{
	const char *folder = play_proc();
	char text[1024];

	put_status(folder, 71, 'S', 0, 0, 0);
	folder_write(folder, "sys/kernel/yama/ptrace_scope", "3\n");
	cr_assert_eq(refusal(folder, 71, text, sizeof text), ERR_YAMA);
	put_status(folder, getpid(), 'R', 0, 0, 0); /* no capability */
	folder_write(folder, "sys/kernel/yama/ptrace_scope", "1\n");
	cr_assert_eq(refusal(folder, 71, text, sizeof text), ERR_YAMA);
	cr_assert(strstr(text, "ptrace_scope is 1"), "%s", text);
	folder_write(folder, "sys/kernel/yama/ptrace_scope", "2\n");
	cr_assert_eq(refusal(folder, 71, text, sizeof text), ERR_YAMA);
	folder_remove(folder);
}

Test(refusal, warns_of_what_surrounds_it)
{
	const char *folder = play_proc();
	char proc[128], mounts[256], said[4096] = "";
	struct procfs procfs = { proc };
	struct inject_options options = { .procfs = &procfs };
	struct target *target = NULL;
	struct error err = { 0 };

	snprintf(proc, sizeof proc, "%s/proc", folder);
	folder_write(folder, "proc/self/timens_offsets", "monotonic 0 0\nboottime 0 0\n");
	put_status(proc, getpid(), 'R', 0, 0x80000, 0);
	put_status(proc, 71, 'S', 0, 0, 0);
	folder_write(proc, "71/timens_offsets", "monotonic 86400 500000000\nboottime 0 0\n");
	snprintf(mounts, sizeof mounts, "31 23 0:26 / %s/groups rw - cgroup2 cgroup2 rw\n", folder);
	folder_write(proc, "self/mountinfo", mounts);
	folder_write(proc, "71/cgroup", "0::/box/inner\n");
	folder_write(folder, "groups/box/memory.max", "104857600\n");
	folder_write(folder, "groups/box/memory.current", "103809024\n");
	folder_write(folder, "groups/box/inner/memory.max", "1048576000\n");
	folder_write(folder, "groups/box/inner/memory.current", "1048576\n");
	cr_assert_eq(target_open(71, &options, &target, &err), -1); /* there is no interpreter */
	for (size_t i = 0; i < target_finding_count(target); i++)
		snprintf(said + strlen(said), sizeof said - strlen(said), "%s\n", target_finding(target, i)->text);
	cr_assert(strstr(said, "86400.500 s"), "%s", said);
	cr_assert(strstr(said, "1 MiB left of 100"), "%s", said);
	cr_assert_eq(target_facts(target)->clock_ahead_ns, 86400500000000);
	target_close(target);
	folder_write(proc, "sys/vm/memfd_noexec", "2\n");
	cr_assert_eq(target_open(71, &options, &target, &err), -1);
	cr_assert_eq(err.code, ERR_INJECT);
	target_close(target);
	options.look_only = true; /* nothing is loaded, and nothing takes memory */
	cr_assert_eq(target_open(71, &options, &target, &err), -1);
	for (size_t i = 0; i < target_finding_count(target); i++)
		cr_assert(!strstr(target_finding(target, i)->text, "MiB left of") && !strstr(target_finding(target, i)->text, "memfd"), "%s", target_finding(target, i)->text);
	target_close(target);
	folder_remove(folder);
}

Test(refusal, names_a_program_of_another_architecture)
{
	unsigned char elf[64] = "\177ELF\1\1\1";
	const char *folder = play_proc();
	char text[1024];

	put_status(folder, 71, 'S', 0, 0, 0);
	folder_write_bytes(folder, "71/exe", elf, sizeof elf);
	cr_assert_eq(refusal(folder, 71, text, sizeof text), ERR_ARCHITECTURE);
	cr_assert(strstr(text, "32-bit"), "%s", text);
	elf[4] = 2;
	elf[18] = 183; /* AArch64 */
	folder_write_bytes(folder, "71/exe", elf, sizeof elf);
	cr_assert_eq(refusal(folder, 71, text, sizeof text), ERR_ARCHITECTURE);
	folder_remove(folder);
}

Test(refusal, names_a_process_without_an_interpreter)
{
	const char *folder = play_proc();
	char text[1024];

	put_status(folder, 71, 'S', 0, 0, 0);
	folder_write(folder, "71/maps", "");
	folder_write(folder, "71/auxv", "");
	cr_assert_eq(refusal(folder, 71, text, sizeof text), ERR_NOT_PYTHON);
	folder_remove(folder);
}
