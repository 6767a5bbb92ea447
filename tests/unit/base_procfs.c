/* /proc of this process, and a folder that plays it with what processes may write there. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/procfs.h"
#include "tests/unit/folder.h"

static char root[FOLDER_BYTES];

static void arrange(void)
{
	folder_make(root);
	folder_way(root, "77/task/");
}

static void clean(void)
{
	folder_remove(root);
}

TestSuite(procfs, .init = arrange, .fini = clean);

static const struct procfs *played(void)
{
	static struct procfs procfs;

	procfs.root = root;
	return &procfs;
}

Test(procfs, knows_this_process)
{
	struct proc_status status;
	struct proc_times times;
	uint64_t run, wait;
	pid_t tids[4];

	cr_assert_eq(procfs_status(&procfs_real, getpid(), 0, &status), 0);
	cr_assert_eq(status.thread_group, getpid());
	cr_assert_eq(status.parent, getppid());
	cr_assert_eq(status.uid_effective, geteuid());
	cr_assert_eq(status.state, 'R');
	cr_assert_gt(status.vm_size_kb, 0u);
	cr_assert_eq(procfs_times(&procfs_real, getpid(), getpid(), &times), 0);
	cr_assert_gt(times.rss_bytes, 4096u);
	cr_assert_gt(times.start_ticks, 0u);
	cr_assert_eq(times.flags & 0x00200000u, 0u);
	if (procfs_schedstat(&procfs_real, getpid(), getpid(), &run, &wait) == 0)
		cr_assert_gt(run, 0u);
	cr_assert_geq(procfs_threads(&procfs_real, getpid(), tids, 4), 1);
	cr_assert_eq(tids[0], getpid());
}

Test(procfs, a_process_that_is_not_there_fails_with_errno)
{
	struct proc_status status;
	struct proc_times times;
	pid_t tid;

	errno = 0;
	cr_assert_eq(procfs_status(played(), 1, 0, &status), -1);
	cr_assert_eq(errno, ENOENT);
	cr_assert_eq(procfs_times(played(), 1, 0, &times), -1);
	cr_assert_eq(procfs_threads(played(), 1, &tid, 1), -1);
}

Test(procfs, a_name_may_look_like_the_rest_of_stat)
{
	struct proc_times times;

	folder_write(root, "77/stat", "77 (evil) R 1 1 (x) S 1 2 3 4 5 4194560 100 0 7 0 250 50 0 0 20 0 9 0 12345 0 3 0\n");
	cr_assert_eq(procfs_times(played(), 77, 0, &times), 0);
	cr_assert_eq(times.state, 'S');
	cr_assert_eq(times.user_ns, 2500000000u);
	cr_assert_eq(times.system_ns, 500000000u);
	cr_assert_eq(times.minor_faults, 100u);
	cr_assert_eq(times.major_faults, 7u);
	cr_assert_eq(times.threads, 9u);
	cr_assert_eq(times.start_ticks, 12345u);
}

Test(procfs, torn_files_are_refused)
{
	struct proc_status status;
	struct proc_times times;
	uint64_t run, wait;

	folder_write(root, "77/stat", "77 (python3");
	cr_assert_eq(procfs_times(played(), 77, 0, &times), -1);
	cr_assert_eq(errno, EBADMSG);
	folder_write(root, "77/stat", "77 (python3) S 1 2 3\n");
	cr_assert_eq(procfs_times(played(), 77, 0, &times), -1);
	folder_write(root, "77/status", "Name:\tx\n");
	cr_assert_eq(procfs_status(played(), 77, 0, &status), -1);
	cr_assert_eq(errno, EBADMSG);
	folder_write(root, "77/schedstat", "12\n");
	cr_assert_eq(procfs_schedstat(played(), 77, 0, &run, &wait), -1);
}

Test(procfs, reads_every_field_of_status)
{
	struct proc_status status;

	folder_write(root, "77/status",
		   "Name:\tpy thon\\n)\nState:\tt (tracing stop)\nTgid:\t77\nPPid:\t5\nTracerPid:\t42\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\n"
		   "NSpid:\t77\t8\t1\nVmSize:\t  1024 kB\nVmLck:\t  512 kB\nThreads:\t3\nSigPnd:\t0000000000000001\nShdPnd:\t0000000000000002\n"
		   "SigBlk:\t0000000000000004\nSigCgt:\tffffffffffffffff\nCapPrm:\t0000000000080000\nCapEff:\t0000000000000000\n"
		   "NoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t9\n");
	cr_assert_eq(procfs_status(played(), 77, 0, &status), 0);
	cr_assert_str_eq(status.name, "py thon\\n)");
	cr_assert_eq(status.state, 't');
	cr_assert_eq(status.tracer, 42);
	cr_assert_eq(status.uid_saved, 3u);
	cr_assert_eq(status.gid_effective, 6u);
	cr_assert_eq(status.inner_pid, 1);
	cr_assert_eq(status.ns_depth, 3u);
	cr_assert_eq(status.signals_blocked, 4u);
	cr_assert_eq(status.signals_caught, UINT64_MAX);
	cr_assert_eq(status.cap_permitted, 0x80000u);
	cr_assert_eq(status.seccomp, 2);
	cr_assert(status.no_new_privs);
	cr_assert_eq(status.vm_size_kb, 1024u);
	cr_assert_eq(status.vm_locked_kb, 512u);
}

Test(procfs, a_very_long_list_of_groups_hides_nothing)
{
	static char content[300000];
	struct proc_status status;
	size_t at;
	int i;

	at = (size_t)sprintf(content, "Name:\tx\nState:\tS (sleeping)\nUid:\t1\t1\t1\t1\nGroups:\t");
	for (i = 0; i < 30000; i++)
		at += (size_t)sprintf(content + at, "%d ", 100000 + i);
	strcpy(content + at, "\nThreads:\t5\n");
	folder_write(root, "77/status", content);
	cr_assert_eq(procfs_status(played(), 77, 0, &status), 0);
	cr_assert_eq(status.threads, 5u);
	cr_assert_eq(status.seccomp, -1);
}

Test(procfs, counts_all_threads_and_stores_what_fits)
{
	pid_t tids[2] = { 0 };

	folder_way(root, "77/task/77/");
	folder_way(root, "77/task/78/");
	folder_way(root, "77/task/79/");
	folder_way(root, "77/task/not_a_thread/");
	cr_assert_eq(procfs_threads(played(), 77, tids, 2), 3);
	cr_assert(tids[0] >= 77 && tids[1] >= 77);
}

Test(procfs, lists_all_threads_by_size)
{
	pid_t *tids = NULL;
	char name[32];

	for (int i = 300; i > 0; i--) {
		snprintf(name, sizeof name, "77/task/%d/", i);
		folder_way(root, name);
	}
	cr_assert_eq(procfs_threads_all(played(), 77, 1000, &tids), 300);
	for (int i = 0; i < 300; i++)
		cr_assert_eq(tids[i], 1 + i);
	free(tids);
	cr_assert_eq(procfs_threads_all(played(), 77, 10, &tids), 10, "no more than are wanted");
	free(tids);
	cr_assert_eq(procfs_threads_all(played(), 1, 10, &tids), -1);
	cr_assert_eq(errno, ENOENT);
}

Test(procfs, read_is_bounded_and_terminated)
{
	char buffer[5];

	folder_write(root, "77/comm", "python3.11\n");
	cr_assert_eq(procfs_read(played(), 77, "comm", buffer, sizeof buffer), 4);
	cr_assert_str_eq(buffer, "pyth");
	cr_assert_eq(procfs_read(played(), 77, "comm", buffer, 0), -1);
}

Test(procfs, tells_what_a_thread_is_blocked_in)
{
	struct proc_call call;

	cr_assert_eq(procfs_call_parse("running\n", &call), PROC_CALL_RUNNING);
	cr_assert_eq(procfs_call_parse("202 0x1 0x2 0x3 0x4 0x5 0x6 0x7ffc 0x7f00\n", &call), PROC_CALL_BLOCKED);
	cr_assert(call.number == 202 && call.args[0] == 1 && call.args[5] == 6 && call.sp == 0x7ffc && call.pc == 0x7f00);
	cr_assert_eq(procfs_call_parse("-1 0x7ffc 0x7f00\n", &call), PROC_CALL_BLOCKED, "a page fault");
	cr_assert(call.number == -1 && call.args[0] == 0 && call.sp == 0x7ffc && call.pc == 0x7f00);
	cr_assert_eq(procfs_call_parse("202 0x1 0x2", &call), PROC_CALL_MALFORMED);
	cr_assert_eq(call.number, 202);
	cr_assert_eq(procfs_call_parse("", &call), PROC_CALL_MALFORMED);
	cr_assert_eq(call.number, -1);
}
