/*
 * The small process behind hold.h: waits for a question, looks at the thread without touching it, holds it for the copy, answers. While the
 * thread is held: raw system calls and the caller's `extra`, nothing else.
 */
#include "inject/holder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/ptrace.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "inject/calls.h"
#include "inject/target.h"
#include "inject/threads.h"
#include "inject/tracee.h"

#define PAGE 4096u
#define RUNNABLE_MS 1000 /* for a thread that only lacks a CPU to stop in */
#define TERM_BIT (1ull << (SIGTERM - 1))

struct holding {
	const struct hold_work *work;
	struct alarm alarm;
	pid_t tid;
	char status_path[PATH_MAX], stat_path[PATH_MAX];
	struct thread_registers registers;
};

/* Blocked in a write the thread may have written a part already: a stop would make it say so, and C code often takes no notice. */
static bool may_be_cut_short(const struct candidate *thread)
{
	return thread->nr == SYS_write || thread->nr == SYS_writev;
}

/* Would go on by restart_syscall(), which a filter may not allow. */
static bool may_need_restart_call(const struct candidate *thread)
{
	return thread->seccomp != 0 && (thread->nr == SYS_poll || thread->nr == SYS_nanosleep || thread->nr == SYS_clock_nanosleep || thread->nr == SYS_futex);
}

static bool has_ended(const struct hold_work *work, pid_t tid)
{
	struct proc_status status;

	return procfs_status(&work->target->procfs, work->target->pid, tid, &status) < 0 || status.state == 'Z' || status.state == 'X';
}

static enum hold_result judge_blocked(const struct hold_work *work, pid_t tid)
{
	struct candidate thread = { 0 };

	if (!thread_look(work->target, tid, &thread))
		return HOLD_NOT_NOW;
	if (thread.kind == THREAD_RUNNING)
		return HOLD_COPIED;
	return thread.kind != THREAD_BLOCKED || may_be_cut_short(&thread) || may_need_restart_call(&thread) ? HOLD_PRONE : HOLD_COPIED;
}

/* What TID does now. HOLD_COPIED: it may be held. */
static enum hold_result look(const struct hold_work *work, pid_t tid, bool force, struct hold_copy *copy)
{
	struct candidate thread = { 0 };
	char name[48], line[256];

	copy->syscall_nr = -1;
	copy->regs[MACHINE_SP] = copy->regs[MACHINE_PC] = 0;
	snprintf(name, sizeof name, "task/%d/syscall", (int)tid);
	if (procfs_read(&work->target->procfs, work->target->pid, name, line, sizeof line) <= 0)
		return has_ended(work, tid) ? HOLD_GONE : HOLD_PRONE;
	if (strncmp(line, "running", 7) == 0)
		return HOLD_COPIED;
	thread_classify(line, &thread);
	if (thread.nr < 0 && has_ended(work, tid))
		return HOLD_GONE;
	copy->syscall_nr = thread.nr;
	copy->regs[MACHINE_SP] = thread.sp;
	copy->regs[MACHINE_PC] = thread.pc;
	if (force)
		return judge_blocked(work, tid);
	if (thread.kind == THREAD_RUNNING) /* in the kernel for a page fault, say, or stopped */
		return HOLD_NOT_NOW;
	return thread.kind == THREAD_BLOCKED && !may_be_cut_short(&thread) ? HOLD_BLOCKED : HOLD_PRONE;
}

/* Looked at again if we lost the CPU in between: the shorter the time from look to stop, the rarer it slips into a call. */
static enum hold_result look_freshly(const struct hold_work *work, pid_t tid, bool force, struct hold_copy *copy)
{
	enum hold_result result;
	uint64_t since_ns;
	int tries = 0;

	do {
		since_ns = raw_now_ns();
		result = look(work, tid, force, copy);
	} while (result == HOLD_COPIED && !force && raw_now_ns() - since_ns > 200000 && ++tries < 3);
	return result;
}

static bool under_seccomp(const struct holding *holding)
{
	static const char key[] = "\nSeccomp:\t";
	char text[4096];
	long fd = raw_call(SYS_openat, AT_FDCWD, (long)holding->status_path, O_RDONLY | O_CLOEXEC, 0, 0, 0), got;

	if (fd < 0)
		return true;
	got = raw_call(SYS_read, fd, (long)text, sizeof text, 0, 0, 0);
	raw_call(SYS_close, fd, 0, 0, 0, 0, 0);
	for (long i = 0; i + (long)sizeof key <= got; i++) {
		size_t same = 0;

		while (same < sizeof key - 1 && text[i + (long)same] == key[same])
			same++;
		if (same == sizeof key - 1)
			return text[i + (long)same] != '0';
	}
	return true;
}

/* Leaves the call that the thread slipped into as if nobody had stopped it. */
static void mend(struct holding *holding, struct hold_copy *copy)
{
	copy->repaired = tracee_disturbed(holding->tid, &holding->registers);
	/* It had only just begun, so that beginning anew changes nothing, and needs no restart_syscall(). */
	if (copy->repaired || (tracee_needs_restart_call(&holding->registers) && under_seccomp(holding)))
		tracee_repeat_call(holding->tid);
}

/* Above the thread pointer lies the thread's control block, or what is above that, not its stack; the first thread's stack ends where its mapping does. */
static uint32_t copy_stack(pid_t tid, uint64_t sp, uint64_t thread_pointer, unsigned char *out)
{
	uint64_t size = thread_pointer > sp && thread_pointer - sp < HOLD_STACK_MAX ? thread_pointer - sp : HOLD_STACK_MAX;
	struct iovec here = { out, size }, there = { (void *)(uintptr_t)sp, size };
	long got = raw_call(SYS_process_vm_readv, tid, (long)&here, 1, (long)&there, 1, 0);

	return got > 0 ? (uint32_t)got : 0;
}

static enum hold_result copy_held(struct holding *holding, struct hold_copy *copy)
{
	const struct hold_work *work = holding->work;
	uint64_t since_ns;

	copy->at_ns = raw_now_ns();
	if (registers_read(holding->tid, &holding->registers) < 0)
		return HOLD_GONE;
	mend(holding, copy);
	raw_alarm(&holding->alarm, work->page->timeout_ms);
	if (!registers_are_native(&holding->registers)) {
		copy->error = ENOEXEC;
		return HOLD_REFUSED;
	}
	registers_copy(&holding->registers, copy->regs);
	copy->thread_pointer = registers_thread_pointer(&holding->registers);
	copy->syscall_nr = tracee_call(&holding->registers);
	copy->stack_size = copy_stack(holding->tid, registers_sp(&holding->registers), copy->thread_pointer, copy->stack);
	if (work->extra) {
		since_ns = raw_now_ns();
		copy->extra_size = work->extra(work->context, holding->tid, copy->extra, HOLD_EXTRA_MAX);
		copy->extra_ns = raw_now_ns() - since_ns;
	}
	return HOLD_COPIED;
}

static enum hold_result hold_stopped(struct holding *holding, struct hold_copy *copy)
{
	const struct patience patience = { &holding->alarm, holding->work->page->timeout_ms, RUNNABLE_MS, holding->stat_path };
	enum hold_result result = HOLD_NOT_NOW;
	uint64_t moving_ns, now_ns;
	int signal;

	switch (tracee_wait(holding->tid, &patience, &signal, &moving_ns)) {
	case TRACEE_STOPPED:
		result = copy_held(holding, copy);
		tracee_detach(holding->tid, 0);
		break;
	case TRACEE_JOB:
		tracee_detach(holding->tid, 0);
		break;
	case TRACEE_SIGNAL:
		tracee_pass_signal(holding->tid, signal);
		break;
	case TRACEE_NOT_YET:
		holding->work->page->leaving = true;
		break;
	case TRACEE_GONE:
		result = HOLD_GONE;
		break;
	}
	now_ns = raw_now_ns();
	copy->hold_ns = now_ns - moving_ns;
	copy->stood_ns = copy->at_ns ? now_ns - copy->at_ns : 0;
	return result;
}

static enum hold_result hold(struct holding *holding, struct hold_copy *copy)
{
	struct hold_page *page = holding->work->page;
	enum hold_result result;
	long error;

	raw_alarm(&holding->alarm, ALARM_MS);
	error = raw_ptrace(PTRACE_SEIZE, holding->tid, 0, NULL);
	if (error < 0) {
		raw_alarm(&holding->alarm, 0);
		copy->error = (int)-error;
		return error == -ESRCH ? HOLD_GONE : HOLD_REFUSED;
	}
	if (!tracee_is_of(holding->stat_path)) { /* a stranger has its number: our end lets go of it */
		page->leaving = true;
		raw_alarm(&holding->alarm, 0);
		return HOLD_GONE;
	}
	page->interrupted_ns = raw_now_ns();
	page->held = true;
	raw_ptrace(PTRACE_INTERRUPT, holding->tid, 0, NULL);
	result = hold_stopped(holding, copy);
	page->held = false;
	raw_alarm(&holding->alarm, 0);
	return result;
}

/* A thread that ended while it was ours is its parent's only when we have taken notice, or have ended. */
static bool still_ours(pid_t tid)
{
	int status;

	return raw_call(SYS_wait4, tid, (long)&status, __WALL | WNOHANG, 0, 0, 0) == 0;
}

static void answer(const struct hold_work *work, struct holding *holding)
{
	struct hold_page *page = work->page;
	struct hold_copy *copy = &page->copy;
	enum hold_result result;

	copy->error = 0;
	copy->at_ns = copy->hold_ns = copy->extra_ns = copy->stood_ns = 0;
	copy->repaired = false;
	copy->stack_size = copy->extra_size = 0;
	holding->tid = page->tid;
	result = look_freshly(work, holding->tid, page->force, copy);
	if (result == HOLD_COPIED) {
		snprintf(holding->status_path, sizeof holding->status_path, "%s/%d/task/%d/status", work->target->procfs.root, (int)work->target->pid, (int)holding->tid);
		snprintf(holding->stat_path, sizeof holding->stat_path, "%s/%d/task/%d/stat", work->target->procfs.root, (int)work->target->pid, (int)holding->tid);
		result = hold(holding, copy);
		if (result == HOLD_REFUSED && copy->error == EPERM && has_ended(work, holding->tid))
			result = HOLD_GONE;
		page->leaving |= result == HOLD_GONE && still_ours(holding->tid);
	}
	page->result = (int)result;
}

static void close_all(void)
{
	if (raw_call(SYS_close_range, 0, UINT_MAX, 0, 0, 0, 0) == 0)
		return;
	for (long fd = 0; fd < 1024; fd++) /* kernels before 5.9 */
		raw_call(SYS_close, fd, 0, 0, 0, 0, 0);
}

/* SIGTERM is what we get when the attacher is gone: it ends us where we wait for questions, and nowhere else. */
static void wait_for_question(struct hold_page *page, uint32_t last)
{
	uint64_t term = TERM_BIT;

	raw_call(SYS_rt_sigprocmask, SIG_UNBLOCK, (long)&term, 0, 8, 0, 0);
	while (__atomic_load_n(&page->asked, __ATOMIC_ACQUIRE) == last)
		raw_call(SYS_futex, (long)&page->asked, FUTEX_WAIT, last, 0, 0, 0);
	raw_call(SYS_rt_sigprocmask, SIG_BLOCK, (long)&term, 0, 8, 0, 0);
}

void holder_process(const struct hold_work *work)
{
	struct hold_page *page = work->page;
	struct holding holding = { .work = work };
	uint32_t last = page->answered;

	holding.alarm = raw_process(page, sizeof *page, (uintptr_t)&holder_process, TERM_BIT);
	raw_call(SYS_prctl, PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0, 0);
	raw_call(SYS_prctl, PR_SET_NAME, (long)"inferscope-hold", 0, 0, 0, 0);
	close_all();
	while (!page->leaving && raw_call(SYS_getppid, 0, 0, 0, 0, 0, 0) == work->parent) {
		wait_for_question(page, last);
		answer(work, &holding);
		last++;
		__atomic_store_n(&page->answered, last, __ATOMIC_RELEASE);
		raw_call(SYS_futex, (long)&page->answered, FUTEX_WAKE, 1, 0, 0, 0);
	}
	for (;;)
		raw_call(SYS_exit_group, 0, 0, 0, 0, 0, 0);
}
