/* Readings from /proc: clocks, states and names of threads. */
#include "session/observe.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/search.h"

enum { THREADS_MAX = 65536, NO_TID = 1 << 22 /* the kernel's PID_MAX_LIMIT */, LATE_PART = 20 };

void observe_init(struct observe *observe, const struct procfs *procfs, pid_t pid, bool namespaced)
{
	memset(observe, 0, sizeof *observe);
	observe->procfs = procfs;
	observe->pid = pid;
	observe->namespaced = namespaced;
}

void observe_done(struct observe *observe)
{
	free(observe->threads);
	tidmap_done(&observe->inner);
	tidmap_done(&observe->late);
	memset(observe, 0, sizeof *observe);
}

const struct observe_thread *observe_by_tid(const struct observe *observe, pid_t tid)
{
	size_t at = search_first(observe->count, i, observe->threads[i].tid < tid);

	return at < observe->count && observe->threads[at].tid == tid ? &observe->threads[at] : NULL;
}

const struct observe_thread *observe_by_inner(const struct observe *observe, pid_t inner_tid)
{
	const struct observe_thread *thread;

	if (!observe->namespaced)
		return observe_by_tid(observe, inner_tid);
	thread = observe_by_tid(observe, tidmap_outer(&observe->inner, inner_tid));
	return thread && thread->inner_tid == inner_tid ? thread : NULL;
}

static bool is_gone(int error)
{
	return error == ENOENT || error == ESRCH;
}

/* What the thread waits in now: "" while it runs, is not told, or ended. */
static void observe_wait(const struct observe *observe, pid_t tid, char *out, size_t size)
{
	struct block block;

	*out = '\0';
	if (block_read(observe->procfs, observe->pid, tid, &block) == BLOCK_BLOCKED)
		block_name(&block, &observe->runtime, out, size);
}

static struct observe_thread *thread_insert(struct observe *observe, pid_t tid)
{
	size_t at = observe->count;

	if (observe->count == observe->capacity) {
		size_t capacity = observe->capacity ? observe->capacity * 2 : 64;
		struct observe_thread *threads = realloc(observe->threads, capacity * sizeof *threads);

		if (!threads)
			return NULL;
		observe->threads = threads;
		observe->capacity = capacity;
	}
	while (at > 0 && observe->threads[at - 1].tid > tid)
		at--;
	memmove(observe->threads + at + 1, observe->threads + at, (observe->count - at) * sizeof *observe->threads);
	observe->count++;
	memset(&observe->threads[at], 0, sizeof *observe->threads);
	observe->threads[at].tid = observe->threads[at].inner_tid = tid;
	return &observe->threads[at];
}

static const char *status_field(const char *status, const char *name)
{
	const char *at = strstr(status, name);

	return at ? at + strlen(name) : NULL;
}

static uint64_t status_number(const char *status, const char *name)
{
	const char *at = status_field(status, name);

	return at ? strtoull(at, NULL, 10) : 0;
}

/* The last of "NSpid:\t12\t3\n". */
static pid_t status_inner(const char *status, pid_t otherwise)
{
	const char *at = status_field(status, "\nNSpid:");
	pid_t inner = otherwise;

	while (at && *at && *at != '\n') {
		char *end;
		long number = strtol(at, &end, 10);

		if (end == at)
			break;
		inner = (pid_t)number;
		at = end;
	}
	return inner;
}

/* Which threads there are that the last reading does not know. 0: all of them are found, or an errno. */
static int late_read(struct observe *observe)
{
	pid_t *tids = NULL;
	ssize_t count = procfs_threads_all(observe->procfs, observe->pid, THREADS_MAX, &tids);
	int error = count < 0 ? errno : 0;

	tidmap_clear(&observe->late);
	for (ssize_t i = 0; i < count; i++) {
		struct procfs_text status;

		if (observe_by_tid(observe, tids[i]))
			continue;
		if (procfs_status_text(observe->procfs, observe->pid, tids[i], &status) < 0) {
			error = is_gone(errno) ? error : errno;
			continue;
		}
		tidmap_add(&observe->late, status_inner(status.text, tids[i]), tids[i]);
		procfs_text_done(&status);
	}
	tidmap_sort(&observe->late);
	free(tids);
	return observe->late.failed || observe->inner.failed ? ENOMEM : error;
}

pid_t observe_outer(struct observe *observe, pid_t inner_tid)
{
	const struct observe_thread *thread = observe_by_inner(observe, inner_tid);
	pid_t found = thread ? thread->tid : observe->namespaced ? tidmap_outer(&observe->late, inner_tid) : inner_tid;
	uint64_t now_ns;
	int error;

	if (found)
		return found;
	now_ns = clock_monotonic_ns();
	if (now_ns < observe->late_due_ns)
		return -1;
	error = late_read(observe);
	observe->late_due_ns = clock_monotonic_ns() + (clock_monotonic_ns() - now_ns) * LATE_PART;
	found = tidmap_outer(&observe->late, inner_tid);
	return found || !error || is_gone(error) ? found : -1;
}

uint32_t observe_told(struct observe *observe, pid_t inner_tid)
{
	pid_t tid = observe_outer(observe, inner_tid);

	if (tid > 0)
		return (uint32_t)tid;
	return observe_by_tid(observe, inner_tid) ? (uint32_t)inner_tid | NO_TID : (uint32_t)inner_tid;
}

/* -1: it is gone. */
static int name_read(const struct observe *observe, const struct observe_thread *thread, char *out, size_t size)
{
	const char *named = observe->naming ? naming_find(observe->naming, thread->inner_tid) : NULL;
	char file[48];

	if (named) {
		snprintf(out, size, "%s", named);
		return 0;
	}
	snprintf(file, sizeof file, "task/%d/comm", (int)thread->tid);
	if (procfs_read(observe->procfs, observe->pid, file, out, size) <= 0)
		return -1;
	out[strcspn(out, "\n")] = '\0';
	return 0;
}

static void thread_name(struct observe *observe, struct observe_thread *thread, bool fresh, uint64_t ticks, struct event_builder *builder)
{
	char name[sizeof thread->name];
	struct proc_times times = { 0 };

	if (name_read(observe, thread, name, sizeof name) < 0 || (!fresh && strcmp(name, thread->name) == 0))
		return;
	snprintf(thread->name, sizeof thread->name, "%s", name);
	procfs_times(observe->procfs, observe->pid, thread->tid, &times);
	event_add(builder, ticks, EVENT_THREAD, (uint32_t)thread->tid, 0, times.start_ticks, thread->name);
}

/* Our own threads bear our name from their first moment; the one that stays is also told by its id. */
static bool thread_ours(const struct observe *observe, const struct observe_thread *thread, const char *status)
{
	static const char name[] = "Name:\tinferscope\n";

	return thread->inner_tid == observe->own_inner_tid || (thread->tid != observe->pid && strncmp(status, name, sizeof name - 1) == 0);
}

static void clocks_read(struct observe *observe, struct observe_thread *thread, bool fresh, const char *status, uint64_t ticks, struct event_builder *builder)
{
	uint64_t run_ns = 0, wait_ns = 0, voluntary = status_number(status, "\nvoluntary_ctxt_switches:"), other = status_number(status, "\nnonvoluntary_ctxt_switches:");

	if (procfs_schedstat(observe->procfs, observe->pid, thread->tid, &run_ns, &wait_ns) < 0) {
		struct proc_times times;

		if (procfs_times(observe->procfs, observe->pid, thread->tid, &times) == 0)
			run_ns = times.user_ns + times.system_ns;
	}
	thread->cpu_ns = run_ns;
	if (!fresh && voluntary + other > thread->switches)
		observe->switches += voluntary + other - thread->switches;
	thread->switches = voluntary + other;
	event_add(builder, ticks, EVENT_THREAD_TIME, (uint32_t)thread->tid, 0, run_ns, wait_ns, voluntary, other, (uint32_t)(unsigned char)thread->state, thread->wait);
}

static void thread_tell(struct observe *observe, struct observe_thread *thread, bool fresh, const char *status, uint64_t ticks, struct event_builder *builder)
{
	const char *state;

	thread->seen = true;
	observe->fresh |= fresh;
	if (fresh)
		thread->inner_tid = status_inner(status, thread->tid);
	thread->ours = thread_ours(observe, thread, status);
	if (thread->ours)
		return;
	state = status_field(status, "\nState:\t");
	thread->state = state ? *state : '?';
	thread_name(observe, thread, fresh, ticks, builder);
	thread->wait[0] = '\0';
	if (thread->state != 'R')
		observe_wait(observe, thread->tid, thread->wait, sizeof thread->wait);
	clocks_read(observe, thread, fresh, status, ticks, builder);
}

static void thread_read(struct observe *observe, pid_t tid, uint64_t ticks, struct event_builder *builder)
{
	struct observe_thread *thread = (struct observe_thread *)observe_by_tid(observe, tid);
	struct procfs_text status;
	bool fresh = !thread;

	if (procfs_status_text(observe->procfs, observe->pid, tid, &status) < 0) {
		/* Where it is we that lack something, a thread that is known stays so, or it would be taken for a new one the next time. */
		if (thread && !is_gone(errno))
			thread->seen = true;
		return;
	}
	if (*status.text && (thread || (thread = thread_insert(observe, tid))))
		thread_tell(observe, thread, fresh, status.text, ticks, builder);
	procfs_text_done(&status);
}

static void threads_sweep(struct observe *observe)
{
	size_t kept = 0;

	for (size_t i = 0; i < observe->count; i++)
		if (observe->threads[i].seen)
			observe->threads[kept++] = observe->threads[i];
	observe->count = kept;
}

static void threads_index(struct observe *observe)
{
	tidmap_clear(&observe->late);
	tidmap_clear(&observe->inner);
	for (size_t i = 0; i < observe->count && observe->namespaced; i++)
		tidmap_add(&observe->inner, observe->threads[i].inner_tid, observe->threads[i].tid);
	tidmap_sort(&observe->inner);
}

bool observe_read(struct observe *observe, uint64_t ticks, struct event_builder *builder)
{
	struct proc_times times;
	pid_t *tids = NULL;
	ssize_t count = procfs_threads_all(observe->procfs, observe->pid, THREADS_MAX, &tids);
	bool gone;

	if (count < 0 || procfs_times(observe->procfs, observe->pid, 0, &times) < 0) {
		gone = is_gone(errno); /* else we lack something, and look again next time */
		free(tids);
		return !gone;
	}
	if (count == 0 || times.state == 'Z' || times.state == 'X') {
		free(tids);
		return false;
	}
	if (observe->naming)
		naming_refresh(observe->naming, observe->fresh);
	observe->fresh = false;
	for (size_t i = 0; i < observe->count; i++)
		observe->threads[i].seen = false;
	for (ssize_t i = 0; i < count; i++)
		thread_read(observe, tids[i], ticks, builder);
	for (size_t i = 0; i < observe->count; i++)
		if (!observe->threads[i].seen) /* it may have been passed over */
			thread_read(observe, observe->threads[i].tid, ticks, builder);
	threads_sweep(observe);
	threads_index(observe);
	event_add(builder, ticks, EVENT_PROCESS_TIME, (uint32_t)observe->pid, 0, times.user_ns, times.system_ns, times.rss_bytes, times.minor_faults,
	          times.major_faults, times.threads);
	free(tids);
	return true;
}
