/*
 * Any bytes as what a process shows before it is entered: its files in /proc, and its memory, in which headers, symbols, code and control blocks are looked for. Pieces follow each other,
 * each with a byte that says which of the rows below it is, or none of them (memory, by its address), and its size in two.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "inject/got.h"
#include "inject/slot.h"
#include "inject/target.h"
#include "inject/threads.h"
#include "tests/fuzz/tree.h"

enum { PIECE_HEAD = 3, ADDRESS = 8 };
#define PID 2000000005 /* beyond those that Linux gives */
#define OF_PROCESS "proc/2000000005"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const folders[] = {
	"proc", OF_PROCESS, OF_PROCESS "/task", OF_PROCESS "/task/2000000005", OF_PROCESS "/fd", OF_PROCESS "/ns", OF_PROCESS "/root", OF_PROCESS "/root/proc", "proc/own", "proc/self", "proc/sys",
	"proc/sys/vm", "proc/sys/kernel", "proc/sys/kernel/yama", "sys", "sys/fs", "sys/fs/cgroup", "sys/fs/cgroup/a", "sys/fs/cgroup/memory", "sys/fs/cgroup/memory/a",
};
/* Only ever added at the end: seeds have their numbers. */
static const char *const files[] = {
	OF_PROCESS "/status", OF_PROCESS "/stat", OF_PROCESS "/maps", OF_PROCESS "/limits", OF_PROCESS "/environ", OF_PROCESS "/cgroup", OF_PROCESS "/auxv", OF_PROCESS "/timens_offsets", OF_PROCESS "/comm",
	OF_PROCESS "/cmdline", OF_PROCESS "/exe", OF_PROCESS "/task/2000000005/status", OF_PROCESS "/task/2000000005/syscall", OF_PROCESS "/task/2000000005/stat", "proc/own/status", "proc/self/timens_offsets",
	"proc/sys/vm/memfd_noexec", "proc/sys/vm/max_map_count", "proc/sys/kernel/yama/ptrace_scope", "sys/fs/cgroup/a/memory.max", "sys/fs/cgroup/a/memory.current",
	"sys/fs/cgroup/memory/a/memory.limit_in_bytes", "sys/fs/cgroup/memory/a/memory.usage_in_bytes", "proc/self/mountinfo",
};
enum { FILES = sizeof files / sizeof *files };

/* What is looked at beyond the preflight itself, in the order of an attach. */
static void look(struct target *target)
{
	static const char *const names[] = { "malloc", "free" };
	struct slot slots[MAX_SLOTS];
	struct choice choice = { 0 };
	struct candidate thread;
	unsigned loaded = 0;
	struct got got = { 0 };
	char id[64] = "";
	struct error err;
	size_t count = slots_find(target, slots);

	if (count > MAX_SLOTS || slots_usable(slots, count) > count)
		abort();
	slots_choose(slots, count);
	slot_thread_lives(target, 5);
	target_symbol(target, "PyEval_SaveThread", NULL);
	target_dormant(target, "inferscope-collector", NULL, false, "collector_entry", &loaded, id, sizeof id);
	target_outer_tid(target, 5);
	if (target_got(target, names, 2, &got, &err) == 0)
		got_done(&got);
	if (threads_choose(target, &choice, clock_monotonic_ns(), &thread, &err) == 0) {
		choice_exclude(&choice, thread.tid, false);
		thread_still_fit(target, &choice, &thread);
	}
}

#ifndef RECORDING /* the program that made the seeds plays nothing */

static char proc_root[80];
static int memory;

/* What is no file of an input. */
static void links_make(void)
{
	char own[32], memory_name[32];

	if ((memory = memfd_create("fuzz", MFD_CLOEXEC)) < 0)
		abort();
	snprintf(own, sizeof own, "proc/%d", (int)getpid());
	snprintf(memory_name, sizeof memory_name, "/proc/self/fd/%d", memory);
	if (symlinkat("own", tree_fd, own) < 0 || symlinkat(memory_name, tree_fd, OF_PROCESS "/mem") < 0 || symlinkat("socket:[7]", tree_fd, OF_PROCESS "/fd/0") < 0 || symlinkat("pipe:[7]", tree_fd, OF_PROCESS "/fd/1") < 0 || symlinkat("user:[7]", tree_fd, OF_PROCESS "/ns/user") < 0)
		abort();
	snprintf(proc_root, sizeof proc_root, "%s/proc", tree_root);
}

static void memory_put(const uint8_t *data, size_t size)
{
	uint64_t addr;

	memcpy(&addr, data, sizeof addr);
	if (addr < UINT64_C(1) << 47 && pwrite(memory, data + ADDRESS, size - ADDRESS, (off_t)addr) < 0)
		abort();
}

static void pieces_put(const uint8_t *data, size_t size)
{
	for (size_t i = 0; i < FILES; i++)
		unlinkat(tree_fd, files[i], 0);
	tree_write_mounts("memory");
	if (ftruncate(memory, 0) < 0)
		abort();
	while (size > PIECE_HEAD) {
		size_t length = data[1] | (size_t)data[2] << 8;
		uint8_t what = data[0];

		data += PIECE_HEAD;
		size -= PIECE_HEAD;
		length = length < size ? length : size;
		if (what < FILES)
			tree_write(files[what], data, length);
		else if (length > ADDRESS)
			memory_put(data, length);
		data += length;
		size -= length;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct procfs procfs = { proc_root };
	struct inject_options options = { .procfs = &procfs, .unverified = size & 1, .look_only = size & 2 };
	struct target *target;
	struct error err;

	if (tree_make(folders, sizeof folders / sizeof *folders))
		links_make();
	pieces_put(data, size);
	options.memory_fd = memory;
	if (target_open(PID, &options, &target, &err) < 0 && !err.text[0])
		abort();
	if (!target)
		return 0;
	for (size_t i = 0; i < target_finding_count(target); i++)
		if (!target_finding(target, i)->text[0])
			abort();
	if (target->libc.base)
		look(target);
	/* The right to look at it at all is not asked for where a process has opened its memory itself. */
	target->finding_count = 0;
	target_refresh_maps(target);
	target->memory.fd = 0;
	preflight_permission(target);
	target_close(target);
	return 0;
}

#endif
