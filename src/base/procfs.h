/* Reading /proc, or a folder that plays it in a test. All text of other processes is bounded and taken as bytes. */
#ifndef INFERSCOPE_BASE_PROCFS_H
#define INFERSCOPE_BASE_PROCFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct procfs {
	const char *root; /* "/proc" */
};
extern const struct procfs procfs_real;

/* Reads PID's file NAME ("status", "task/12/stat") whole, at most SIZE-1 bytes, NUL-terminated. Returns the length, or -1 with errno. */
ssize_t procfs_read(const struct procfs *procfs, pid_t pid, const char *name, char *buffer, size_t size);

struct proc_status {
	char name[64];      /* comm, as the kernel prints it */
	char state;         /* R S D T t Z X I */
	pid_t parent, tracer, thread_group;
	pid_t inner_pid;    /* last of NSpid; 0 when not told */
	uint32_t ns_depth;  /* how many pids NSpid lists */
	uid_t uid_real, uid_effective, uid_saved;
	gid_t gid_real, gid_effective, gid_saved;
	uint64_t signals_blocked, signals_caught;
	uint64_t cap_permitted, cap_effective;
	uint32_t threads;
	int seccomp; /* 0 off, 1 strict, 2 filter, -1 not told */
	bool no_new_privs;
	uint64_t vm_size_kb; /* 0 for kernel threads */
	uint64_t vm_locked_kb;
};
/* The file "status" of TID (0 = the process itself) as text: "Groups:" stands in the middle of it and may list 65 536. -1 with errno; else procfs_text_done(). */
struct procfs_text { const char *text; char *longer, here[4096]; };
int procfs_status_text(const struct procfs *procfs, pid_t pid, pid_t tid, struct procfs_text *out);
void procfs_text_done(struct procfs_text *text);
/* TID 0 = the process itself. */
int procfs_status(const struct procfs *procfs, pid_t pid, pid_t tid, struct proc_status *out);

struct proc_times {
	char state;
	uint64_t user_ns, system_ns; /* stat, by clock tick */
	uint64_t start_ticks;        /* since boot, clock ticks */
	uint64_t minor_faults, major_faults;
	uint64_t rss_bytes;
	uint32_t threads;
	uint32_t flags;              /* PF_KTHREAD = 0x00200000 */
	int processor;               /* that it ran on last; -1 = not told */
};
int procfs_times(const struct procfs *procfs, pid_t pid, pid_t tid, struct proc_times *out);
/* Now, as start_ticks counts. */
uint64_t procfs_now_ticks(void);
/* schedstat: exact CPU time and time on a run queue, ns. -1 where the kernel has none. */
int procfs_schedstat(const struct procfs *procfs, pid_t pid, pid_t tid, uint64_t *run_ns, uint64_t *wait_ns);

/* What a thread is blocked in. */
struct proc_call {
	int64_t number;   /* of the system call; -1: blocked in none, a page fault say */
	uint64_t args[6]; /* 0 without a call */
	uint64_t sp, pc;
};
enum proc_call_state { PROC_CALL_MALFORMED = -1, PROC_CALL_RUNNING, PROC_CALL_BLOCKED };
/* One line of /proc/PID/task/TID/syscall; *OUT is as far as it could be read, number -1 where it could not. */
enum proc_call_state procfs_call_parse(const char *line, struct proc_call *out);
/* The line itself, and what it says: 0, or -1 with errno where the kernel does not show it to us. */
int procfs_call(const struct procfs *procfs, pid_t pid, pid_t tid, enum proc_call_state *state, struct proc_call *out);

/* Thread ids of PID into TIDS (at most COUNT). Returns how many there are, or -1 with errno. */
ssize_t procfs_threads(const struct procfs *procfs, pid_t pid, pid_t *tids, size_t count);
/*
 * The same of all there are, but not more than MOST, into *OUT by size, the caller's to free. -1 with errno, ENOMEM too; then *OUT is untouched.
 * Where a thread ends meanwhile, the kernel may pass over others (first_tid() of fs/proc/base.c, 6.18): a thread that is not there has not ended for that alone.
 */
ssize_t procfs_threads_all(const struct procfs *procfs, pid_t pid, size_t most, pid_t **out);

#endif
