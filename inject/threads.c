/* Classifies the target's threads by what they wait in, and picks one. */
#include "inject/threads.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "inject/calls.h"

#define WATCH_NS 2000000000ull /* for a better thread than one with a time limit that a stop would lose */
#define LOOK_AGAIN_NS 5000000l
#define MAX_WATCHED 256
#define MAX_UNREAD 100 /* looks at threads: half a second, where there is one */

void thread_classify(const char *line, struct candidate *out)
{
	struct proc_call call;
	enum proc_call_state state = procfs_call_parse(line, &call);

	out->nr = (long)call.number;
	out->timeout_ms = -1;
	if (state == PROC_CALL_RUNNING || call.number < 0) { /* in the kernel but not in a system call, a page fault say: nothing to restart */
		out->nr = -1;
		out->kind = THREAD_RUNNING;
		return;
	}
	memcpy(out->args, call.args, sizeof out->args);
	out->sp = call.sp;
	out->pc = call.pc;
	out->kind = state == PROC_CALL_MALFORMED ? THREAD_UNKNOWN : resume_kind(out->nr, out->args, &out->timeout_ms);
}

static uint64_t switches_of(const char *status)
{
	const char *line = strstr(status, "\nvoluntary_ctxt_switches:");

	return line ? strtoull(line + 25, NULL, 10) : 0;
}

static bool socket_has_limit(const struct target *target, int fd, int option)
{
	struct timeval limit = { 1, 0 };
	socklen_t size = sizeof limit;
	int process = (int)syscall(SYS_pidfd_open, target->pid, 0), copy = -1;
	bool known = false;

	if (process >= 0) {
		copy = (int)syscall(SYS_pidfd_getfd, process, fd, 0);
		close(process);
	}
	if (copy >= 0) {
		known = getsockopt(copy, SOL_SOCKET, option, &limit, &size) == 0;
		close(copy);
	}
	return !known || limit.tv_sec || limit.tv_usec;
}

/*
 * What the descriptor tells of a call that waits for it. On FUSE and some network file systems a stop is answered with EINTR, so: no files
 * proper. A socket says EINTR if it has a time limit. (The thread is in a call on it, so that the kernel holds on to it: our copy changes nothing.)
 */
static void judge_descriptor(const struct target *target, struct candidate *thread)
{
	bool writes = thread->nr == SYS_write || thread->nr == SYS_sendto;
	bool wants_all = writes || (thread->nr == SYS_recvfrom && (thread->args[3] & MSG_WAITALL));
	char path[512], name[64];
	ssize_t length;

	if (thread->kind == THREAD_UNKNOWN || !resume_needs_descriptor(thread->nr))
		return;
	snprintf(path, sizeof path, "%s/%d/fd/%d", target->procfs.root, (int)target->pid, (int)thread->args[0]);
	length = readlink(path, name, sizeof name - 1);
	name[length > 0 ? length : 0] = '\0';
	if (length <= 0 || !descriptor_is_stream(name))
		thread->kind = THREAD_UNKNOWN;
	else if (strncmp(name, "socket:", 7) == 0)
		thread->kind = socket_has_limit(target, (int)thread->args[0], writes ? SO_SNDTIMEO : SO_RCVTIMEO) ? THREAD_PRONE_FINITE
		               : wants_all ? THREAD_PRONE_INFINITE : THREAD_BLOCKED;
	else if (thread->nr == SYS_write && strncmp(name, "pipe:", 5) == 0 && thread->args[2] <= PIPE_BUF)
		thread->kind = THREAD_BLOCKED; /* all or nothing */
	else if (thread->nr != SYS_write && name[0] == '/')
		thread->kind = THREAD_PRONE_INFINITE; /* a terminal in raw mode may have given a part */
}

/* That of a thread that has ended is not there. */
static bool cannot_be_read(struct candidate *out, int error)
{
	out->unread = error == ENOENT || error == ESRCH ? 0 : error;
	return false;
}

bool thread_look(const struct target *target, pid_t tid, struct candidate *out)
{
	struct proc_status status;
	char name[64], text[4096];

	memset(out, 0, sizeof *out);
	out->tid = tid;
	if (procfs_status(&target->procfs, target->pid, tid, &status) < 0)
		return cannot_be_read(out, errno);
	/* D may last for ever (a dead NFS server); the rest is gone or held by others. */
	if (status.state != 'R' && status.state != 'S')
		return false;
	if (status.tracer)
		return false;
	out->inner_tid = status.inner_pid ? status.inner_pid : tid;
	out->seccomp = status.seccomp;
	snprintf(name, sizeof name, "task/%d/syscall", (int)tid);
	if (procfs_read(&target->procfs, target->pid, name, text, sizeof text) <= 0) {
		out->kind = status.state == 'R' ? THREAD_RUNNING : THREAD_UNKNOWN;
		out->nr = -1; /* a kernel without this file, or one that does not show it to us */
		if (out->kind == THREAD_UNKNOWN && errno != EACCES && errno != EPERM)
			cannot_be_read(out, errno);
		return errno != ESRCH && !out->unread;
	}
	thread_classify(text, out);
	judge_descriptor(target, out);
	if (!MACHINE_BORROWS_RUNNING && (out->nr < 0 || out->nr == SYS_write || out->nr == SYS_sendto))
		out->kind = THREAD_UNKNOWN;
	snprintf(name, sizeof name, "task/%d/status", (int)tid);
	if (procfs_read(&target->procfs, target->pid, name, text, sizeof text) < 0)
		return cannot_be_read(out, errno);
	out->switches = switches_of(text);
	out->first_seen_ns = clock_monotonic_ns();
	return out->kind != THREAD_UNFIT;
}

/* Those that did not stop in time may be tried again. */
static void choice_again(struct choice *choice)
{
	choice->tried_count = choice->odd_count;
}

void choice_exclude(struct choice *choice, pid_t tid, bool odd)
{
	if (choice->tried_count == MAX_TRIED)
		choice_again(choice);
	if (choice->tried_count == MAX_TRIED)
		return;
	choice->tried[choice->tried_count++] = tid;
	if (odd) {
		choice->tried[choice->tried_count - 1] = choice->tried[choice->odd_count];
		choice->tried[choice->odd_count++] = tid;
	}
}

static bool was_tried(const struct choice *choice, pid_t tid)
{
	for (size_t i = 0; i < choice->tried_count; i++)
		if (choice->tried[i] == tid)
			return true;
	return false;
}

static bool same_block(const struct candidate *before, const struct candidate *now)
{
	return before->nr == now->nr && before->sp == now->sp && before->timeout_ms == now->timeout_ms && before->switches == now->switches &&
	       now->switches != 0;
}

/* Keeps for how long each thread with a time limit has been seen in one and the same call. */
struct watch {
	struct candidate seen[MAX_WATCHED];
	size_t count;
};

static void watch_update(struct watch *watch, struct candidate *now)
{
	for (size_t i = 0; i < watch->count; i++) {
		struct candidate *before = &watch->seen[i];

		if (before->tid != now->tid)
			continue;
		if (same_block(before, now))
			now->first_seen_ns = before->first_seen_ns;
		*before = *now;
		return;
	}
	if (watch->count < MAX_WATCHED)
		watch->seen[watch->count++] = *now;
}

static bool better(const struct candidate *a, const struct candidate *b)
{
	if (a->kind != b->kind)
		return a->kind < b->kind;
	/* Seen longer, then the one with the shorter limit: less can be lost. */
	return a->kind == THREAD_PRONE_FINITE && a->first_seen_ns < b->first_seen_ns;
}

/* Of one that could not be read it is told. */
static bool looked_at(const struct target *target, struct choice *choice, pid_t tid, struct candidate *out)
{
	bool fit = thread_look(target, tid, out);

	if (out->unread) {
		choice->unread = out->unread;
		choice->unread_count++;
	}
	return fit;
}

static bool best_of(const struct target *target, struct choice *choice, struct watch *watch, const pid_t *tids, size_t count,
                    struct candidate *best)
{
	size_t first = choice->any && count ? (size_t)(clock_monotonic_ns() / 64 % count) : 0;
	bool any = false;

	for (size_t i = 0; i < count; i++) {
		pid_t tid = tids[(first + i) % count];
		struct candidate now;

		if (was_tried(choice, tid) || !looked_at(target, choice, tid, &now))
			continue;
		if (now.kind == THREAD_PRONE_FINITE)
			watch_update(watch, &now);
		if (!any || better(&now, best))
			*best = now;
		any = true;
		if (best->kind == THREAD_BLOCKED || (choice->any && best->kind == THREAD_RUNNING))
			break;
	}
	return any;
}

bool thread_still_fit(const struct target *target, struct choice *choice, struct candidate *thread)
{
	struct candidate now;

	if (!looked_at(target, choice, thread->tid, &now))
		return false;
	if (now.kind >= THREAD_PRONE_FINITE && now.kind > thread->kind)
		return false;
	if (same_block(thread, &now))
		now.first_seen_ns = thread->first_seen_ns;
	*thread = now;
	return true;
}

static void no_thread(const struct target *target, const struct choice *choice, const struct candidate *best, struct error *err)
{
	char name[32];

	if (choice->odd_count)
		fail(err, ERR_NO_THREAD, "cannot attach to %d: %zu of its threads are not glibc's (or another tid stands in their control block), and no "
		     "other could be borrowed", (int)target->pid, choice->odd_count);
	else if (best && best->nr >= 0)
		fail(err, ERR_NO_THREAD, "cannot attach to %d: its threads all wait in calls that being held could end early (%s)",
		     (int)target->pid, resume_call_name(best->nr, name, sizeof name));
	else
		fail(err, ERR_NO_THREAD, "cannot attach to %d: none of its threads %s", (int)target->pid,
		     MACHINE_BORROWS_RUNNING ? "could be borrowed in time" : "waits in a system call; on " MACHINE_NAME " no other can be borrowed");
}

static int unread(const struct target *target, const struct choice *choice, struct error *err)
{
	return fail(err, error_of(choice->unread, ERR_INJECT), "what the threads of process %d do cannot be read (%s)", (int)target->pid, strerror(choice->unread));
}

int threads_choose_again(const struct target *target, const struct choice *choice, uint64_t deadline_ns, struct error *err)
{
	if (choice->unread_count >= MAX_UNREAD)
		return unread(target, choice, err);
	if (clock_monotonic_ns() >= deadline_ns)
		return fail(err, ERR_NO_THREAD, "cannot attach to %d: each thread that was chosen did something else by the time it could be held", (int)target->pid);
	return 0;
}

int threads_choose(const struct target *target, struct choice *choice, uint64_t deadline_ns, struct candidate *out, struct error *err)
{
	uint64_t started_ns = clock_monotonic_ns(), now_ns;
	struct watch *watch = calloc(1, sizeof *watch);
	size_t room = 1024;
	pid_t *tids = malloc(room * sizeof *tids);
	int result = -1;

	if (!watch || !tids) {
		fail(err, ERR_MEMORY, "choosing a thread of %d", (int)target->pid);
		goto out;
	}
	for (;;) {
		ssize_t count = procfs_threads(&target->procfs, target->pid, tids, room);
		bool any;

		if (count < 0) {
			if (errno == ENOENT || errno == ESRCH)
				fail(err, ERR_EXITED, "process %d has ended", (int)target->pid);
			else
				fail(err, error_of(errno, ERR_INJECT), "the threads of process %d cannot be listed (%s)", (int)target->pid, strerror(errno));
			goto out;
		}
		any = best_of(target, choice, watch, tids, (size_t)count < room ? (size_t)count : room, out);
		now_ns = clock_monotonic_ns();
		if (any && (out->kind < THREAD_PRONE_FINITE ||
		            (out->kind == THREAD_PRONE_FINITE && (now_ns - started_ns >= WATCH_NS || now_ns >= deadline_ns)))) {
			result = 0;
			break;
		}
		if (choice->stop && *choice->stop) {
			fail(err, ERR_INTERRUPTED, "attaching to %d was interrupted", (int)target->pid);
			break;
		}
		if (!any && choice->tried_count > choice->odd_count) {
			choice_again(choice); /* all were slow: once more around, the caller has more patience now */
			continue;
		}
		if (!any && choice->unread_count >= MAX_UNREAD) {
			unread(target, choice, err);
			break;
		}
		if (now_ns >= deadline_ns || (!any && choice->odd_count > 0)) {
			no_thread(target, choice, any ? out : NULL, err);
			break;
		}
		nanosleep(&(struct timespec){ 0, LOOK_AGAIN_NS }, NULL);
	}
out:
	free(watch);
	free(tids);
	return result;
}
