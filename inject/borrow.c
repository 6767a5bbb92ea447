/* Holds threads, one after the other, until one of them has been sent into the stub; tells refusals from bad luck. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "inject/attempt.h"

#define HOLD_MS 50
#define RUNNABLE_MS 10000
#define MAX_PATIENCE_MS 800
#define SEIZE_TRIES 20
#define SEIZE_NAP_US 2000
#define TRIES_PER_WINDOW 20

static void fill_window(struct attempt *attempt, const struct candidate *thread)
{
	struct window *window = attempt->window;
	const struct target *target = attempt->target;
	const struct image *images[2] = { &target->libc, &target->loader };
	struct proc_status status;
	char path[512];
	int count = 0;

	window->tid = thread->tid;
	window->inner_tid = thread->inner_tid;
	window->tid_offset = target->facts.tid_offset;
	window->block_below = target->block_below;
	window->memory_fd = target->memory_fd;
	snprintf(window->fd_folder, sizeof window->fd_folder, "%.40s/%d/fd/", target->procfs.root, (int)target->pid);
	snprintf(window->stat_path, sizeof window->stat_path, "%.40s/%d/task/%d/stat", target->procfs.root, (int)target->pid, (int)thread->tid);
	window->slot_entry = attempt->slot.addr + STUB_ENTRY_OFFSET;
	window->slot_saved = attempt->slot.addr + STUB_DATA_OFFSET;
	window->single_thread_flag = target->single_thread_flag;
	memset(window->libc_text, 0, sizeof window->libc_text);
	for (int i = 0; i < 2; i++)
		for (uint32_t j = 0; j < images[i]->segment_count && count < 4; j++)
			if (images[i]->segments[j].executable) {
				window->libc_text[count][0] = images[i]->segments[j].start;
				window->libc_text[count++][1] = images[i]->segments[j].end;
			}
	if (procfs_status(&target->procfs, target->pid, 0, &status) == 0) {
		window->signals_caught = status.signals_caught;
		window->memory_locked = status.vm_locked_kb > 0;
	}
	window->seccomp = thread->seccomp == 2;
	window->clone_flags = attempt->data.clone_flags;
	window->max_tries = TRIES_PER_WINDOW;
	window->stop_timeout_ms = attempt->patience_ms;
	/* Woken by us, or about to wait, it may say EINTR to its program unless it is repaired: wait until it gets to a CPU. It is not held meanwhile. */
	window->runnable_timeout_ms = RUNNABLE_MS;
	window->hold_timeout_ms = thread->kind > THREAD_RUNNING ? ALARM_MS : HOLD_MS;
	window->step = attempt->options ? attempt->options->step : NULL;
	window->step_context = attempt->options ? attempt->options->step_context : NULL;
	window->status_fd = -1;
	window->watched_since_ns = 0;
	window->call_fd = -1;
	window->kind = thread->kind;
	window->judged = (struct waiting){ .nr = thread->nr, .sp = thread->sp, .pc = thread->pc };
	memcpy(window->judged.args, thread->args, sizeof window->judged.args);
	if (thread->kind != THREAD_PRONE_FINITE && MACHINE_BORROWS_RUNNING)
		return;
	window->watched_since_ns = thread->first_seen_ns;
	window->switches = thread->switches;
	snprintf(path, sizeof path, "%s/%d/task/%d/status", target->procfs.root, (int)target->pid, (int)thread->tid);
	window->status_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (MACHINE_BORROWS_RUNNING)
		return;
	snprintf(path, sizeof path, "%s/%d/task/%d/syscall", target->procfs.root, (int)target->pid, (int)thread->tid);
	window->call_fd = open(path, O_RDONLY | O_CLOEXEC);
}

static const char *reason_text(const struct window *window)
{
	static const char *const texts[REASON_COUNT] = {
		"", "signals kept arriving", "signals were pending", "it stayed inside restartable sequences",
		"it did not stay in a system call",
		"it is single-threaded and stayed inside malloc or the loader"
	};
	int most = REASON_SIGNAL;

	for (int i = REASON_SIGNAL; i < REASON_COUNT; i++)
		if (window->reasons[i] > window->reasons[most])
			most = i;
	return texts[most];
}

static int refuse_seize(const struct attempt *attempt, int error, struct error *err)
{
	pid_t pid = attempt->target->pid;
	struct proc_status status;
	char comm[64] = "?";

	if (procfs_status(&attempt->target->procfs, pid, attempt->window->tid, &status) == 0 && status.tracer) {
		if (procfs_read(&attempt->target->procfs, status.tracer, "comm", comm, sizeof comm) > 0)
			comm[strcspn(comm, "\n")] = '\0';
		return fail(err, ERR_ALREADY_TRACED, "cannot attach to %d: already traced by %d (%s)", (int)pid, (int)status.tracer, comm);
	}
	return fail(err, ERR_PERMISSION, "cannot attach to %d: ptrace: %s (a security module, or a container's seccomp profile)", (int)pid,
	            strerror(error));
}

/* 1: entered. 0: choose again. -1: refused, for good. */
static int judge_window(struct attempt *attempt, struct error *err)
{
	const struct window *window = attempt->window;
	int pid = (int)attempt->target->pid;

	switch ((enum window_result)window->result) {
	case WINDOW_ENTERED:
		return 1;
	case WINDOW_GONE:
		if (target_alive(attempt->target) && clock_monotonic_ns() >= attempt->deadline_ns)
			return fail(err, ERR_NO_THREAD, "cannot attach to %d: each thread that was chosen ended before it was held (%u tries)", pid, attempt->receipt->tries);
		return target_alive(attempt->target) ? 0 : target_gone(attempt->target, err);
	case WINDOW_NO_SEIZE:
		/* A sampler, or another attach, holds a thread for microseconds: try again before calling it traced. */
		if (attempt->seize_refused++ < SEIZE_TRIES) {
			attempt_nap_us(SEIZE_NAP_US);
			return 0;
		}
		return refuse_seize(attempt, window->error, err);
	case WINDOW_STOPPED:
		fail(err, ERR_STOPPED, "cannot attach to %d: it has just been stopped", pid);
		return fail_hint(err, STOPPED_HINT, pid);
	case WINDOW_SECCOMP_KILLS:
	case WINDOW_SECCOMP_FORBIDS:
		return fail(err, ERR_SECCOMP, "cannot attach to %d: its seccomp filter %s system call %d, which attaching needs", pid,
		            window->result == WINDOW_SECCOMP_KILLS ? "kills it for" : "forbids", window->error);
	case WINDOW_SECCOMP_UNREADABLE:
		return fail(err, ERR_SECCOMP, "cannot attach to %d: its seccomp filter cannot be read: %s", pid, strerror(window->error));
	case WINDOW_FAILED:
		return fail(err, ERR_INJECT, "cannot attach to %d: holding thread %d failed: %s", pid, (int)window->tid, strerror(window->error));
	case WINDOW_NO_MOMENT:
		if (clock_monotonic_ns() >= attempt->deadline_ns)
			return fail(err, ERR_NO_THREAD, "cannot attach to %d: no good moment in %u tries: %s", pid, attempt->receipt->tries, reason_text(window));
		return 0;
	case WINDOW_NO_STOP:
	case WINDOW_ODD_THREAD:
	case WINDOW_NOT_RUN:
		if (clock_monotonic_ns() >= attempt->deadline_ns)
			return fail(err, ERR_NO_THREAD, "cannot attach to %d: no thread of it came to a stop in time (%u tries): its CPUs are busy, or it hangs in the "
			            "kernel", pid, attempt->receipt->tries);
		/* The machine may be so busy that nobody gets to a CPU: everybody gets longer next time. */
		if (window->result != WINDOW_ODD_THREAD && attempt->patience_ms < MAX_PATIENCE_MS)
			attempt->patience_ms *= 2;
		choice_exclude(&attempt->choice, window->tid, window->result == WINDOW_ODD_THREAD);
		return 0;
	}
	return fail(err, ERR_INTERNAL, "window result %d", window->result);
}

static void describe_thread(const struct attempt *attempt, const struct candidate *thread)
{
	struct receipt *receipt = attempt->receipt;
	const struct window *window = attempt->window;
	char name[32];

	receipt->tid = thread->tid;
	if (window->call < 0)
		snprintf(receipt->thread_state, sizeof receipt->thread_state, "running");
	else
		snprintf(receipt->thread_state, sizeof receipt->thread_state, "%s%s",
		         resume_call_name(window->call, name, sizeof name), window->repaired ? " restarted" : window->part ? " continued" : "");
}

static int run_window(struct attempt *attempt, const struct candidate *thread, struct error *err)
{
	fill_window(attempt, thread);
	window_run(attempt->window);
	if (attempt->window->status_fd >= 0)
		close(attempt->window->status_fd);
	if (attempt->window->call_fd >= 0)
		close(attempt->window->call_fd);
	attempt->receipt->tries += attempt->window->tries;
	attempt->receipt->hold_ns = attempt->window->hold_ns;
	attempt->receipt->hold_total_ns = attempt->window->hold_total_ns;
	return judge_window(attempt, err);
}

/* Choosing may take seconds, so it happens without the lock; whoever is chosen is looked at again with it. */
int attempt_borrow(struct attempt *attempt, struct error *err)
{
	struct candidate thread;
	int verdict = 0;

	while (verdict == 0) {
		if (threads_choose(attempt->target, &attempt->choice, attempt->deadline_ns, &thread, err) < 0 || attempt_prepare(attempt, err) < 0)
			return -1;
		if (attempt->started_ns == 0)
			attempt->started_ns = clock_monotonic_ns();
		if (thread_still_fit(attempt->target, &attempt->choice, &thread))
			verdict = run_window(attempt, &thread, err);
		else
			verdict = threads_choose_again(attempt->target, &attempt->choice, attempt->deadline_ns, err);
		if (verdict == 0)
			attempt_unlock(attempt);
		if (verdict == 0 && attempt_stopped(attempt, err))
			return -1;
	}
	if (verdict > 0)
		describe_thread(attempt, &thread);
	return verdict < 0 ? -1 : 0;
}
