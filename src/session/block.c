/* One line of /proc, and what its system call means. */
#include "session/block.h"

#include <stdio.h>
#include <string.h>

#include "abi/syscall.h"
#include "session/syscalls.h"

/* Where the kernel does not tell the system call. */
static enum block_result by_letter(const struct procfs *procfs, pid_t pid, pid_t tid, struct block *out)
{
	struct proc_times times;

	if (procfs_times(procfs, pid, tid, &times) < 0)
		return BLOCK_GONE;
	if (times.state == 'R')
		return BLOCK_RUNNING;
	*out = (struct block){ .number = BLOCK_NOT_TOLD };
	return BLOCK_BLOCKED;
}

enum block_result block_read(const struct procfs *procfs, pid_t pid, pid_t tid, struct block *out)
{
	enum proc_call_state state;
	struct proc_call call;

	if (procfs_call(procfs, pid, tid, &state, &call) < 0)
		return by_letter(procfs, pid, tid, out);
	if (state != PROC_CALL_BLOCKED)
		return BLOCK_RUNNING;
	*out = (struct block){ call.number < 0 ? BLOCK_NO_CALL : (int64_t)syscall_in_traces((uint64_t)call.number), call.args[0], call.sp, call.pc };
	return BLOCK_BLOCKED;
}

/*
 * From 3.11 on the main interpreter lies within (280 to 460 KB, 3.11 to 3.13); before, only the little that all interpreters share. Not a byte more than that: behind it
 * lie words that other libraries' threads wait for.
 */
struct block_runtime block_runtime_at(uint64_t start, uint64_t size, uint32_t python_hex)
{
	uint64_t most = python_hex >= 0x030b0000 ? 1 << 20 : 1 << 14;

	return (struct block_runtime){ start, start ? start + (size && size < most ? size : most) : 0 };
}

bool block_same(const struct block *a, const struct block *b)
{
	return a->number == b->number && a->argument == b->argument && a->sp == b->sp && a->pc == b->pc;
}

void block_name(const struct block *block, const struct block_runtime *runtime, char *out, size_t size)
{
	*out = '\0';
	if (block->number < 0)
		return;
	syscall_name((uint64_t)block->number, out, size);
	if (strncmp(out, "futex", 5) == 0 && block->argument >= runtime->start && block->argument < runtime->end)
		snprintf(out, size, "gil");
}

enum thread_state block_state(const struct block *block, const struct block_runtime *runtime)
{
	static const struct { const char *name; enum thread_state state; } rows[] = {
		{ "gil", THREAD_GIL_WAIT }, { "futex", THREAD_LOCK_WAIT }, { "futex_wait", THREAD_LOCK_WAIT }, { "futex_waitv", THREAD_LOCK_WAIT },
		{ "nanosleep", THREAD_SLEEP }, { "clock_nanosleep", THREAD_SLEEP }, { "pause", THREAD_SLEEP }, { "restart_syscall", THREAD_SLEEP }, { "rt_sigsuspend", THREAD_SLEEP },
		{ "epoll_wait", THREAD_IDLE }, { "epoll_pwait", THREAD_IDLE }, { "epoll_pwait2", THREAD_IDLE }, { "poll", THREAD_IDLE }, { "ppoll", THREAD_IDLE },
		{ "select", THREAD_IDLE }, { "pselect6", THREAD_IDLE }, { "accept", THREAD_IDLE }, { "accept4", THREAD_IDLE }, { "rt_sigtimedwait", THREAD_IDLE },
		{ "wait4", THREAD_IDLE }, { "waitid", THREAD_IDLE },
	};
	char name[32];

	if (block->number == BLOCK_NOT_TOLD)
		return THREAD_UNKNOWN;
	if (block->number < 0)
		return THREAD_IO_WAIT; /* a page fault that reads from a disk */
	block_name(block, runtime, name, sizeof name);
	/* select() without descriptors is a sleep: time.sleep() up to 3.10. */
	if (block->argument == 0 && (strcmp(name, "select") == 0 || strcmp(name, "pselect6") == 0))
		return THREAD_SLEEP;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (strcmp(rows[i].name, name) == 0)
			return rows[i].state;
	return THREAD_IO_WAIT;
}
