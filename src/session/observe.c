/* Readings from /proc: clocks, states and names of threads. */
#include "base/search.h"
#include "session/observe.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS_MAX = 65536, STATUS_BYTES = 4096 };

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
	memset(observe, 0, sizeof *observe);
}

const struct observe_thread *observe_by_tid(const struct observe *observe, pid_t tid)
{
	size_t at = search_first(observe->count, i, observe->threads[i].tid < tid);

	return at < observe->count && observe->threads[at].tid == tid ? &observe->threads[at] : NULL;
}

const struct observe_thread *observe_by_inner(const struct observe *observe, pid_t inner_tid)
{
	if (!observe->namespaced)
		return observe_by_tid(observe, inner_tid);
	for (size_t i = 0; i < observe->count; i++)
		if (observe->threads[i].inner_tid == inner_tid)
			return &observe->threads[i];
	return NULL;
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

/* False when the thread is gone. */
static bool thread_read(struct observe *observe, pid_t tid, uint64_t ticks, struct event_builder *builder)
{
	struct observe_thread *thread = (struct observe_thread *)observe_by_tid(observe, tid);
	char file[48], status[STATUS_BYTES];
	uint64_t run_ns = 0, wait_ns = 0, voluntary, other;
	const char *state;
	bool fresh = !thread;

	snprintf(file, sizeof file, "task/%d/status", (int)tid);
	if (procfs_read(observe->procfs, observe->pid, file, status, sizeof status) <= 0)
		return false;
	if (fresh && !(thread = thread_insert(observe, tid)))
		return true;
	thread->seen = true;
	observe->fresh |= fresh;
	if (fresh)
		thread->inner_tid = status_inner(status, tid);
	thread->ours = thread_ours(observe, thread, status);
	if (thread->ours)
		return true;
	state = status_field(status, "\nState:\t");
	thread->state = state ? *state : '?';
	thread_name(observe, thread, fresh, ticks, builder);
	thread->wait[0] = '\0';
	if (thread->state != 'R')
		observe_wait(observe, tid, thread->wait, sizeof thread->wait);
	if (procfs_schedstat(observe->procfs, observe->pid, tid, &run_ns, &wait_ns) < 0) {
		struct proc_times times;

		if (procfs_times(observe->procfs, observe->pid, tid, &times) == 0)
			run_ns = times.user_ns + times.system_ns;
	}
	thread->cpu_ns = run_ns;
	voluntary = status_number(status, "\nvoluntary_ctxt_switches:");
	other = status_number(status, "\nnonvoluntary_ctxt_switches:");
	if (!fresh && voluntary + other > thread->switches)
		observe->switches += voluntary + other - thread->switches;
	thread->switches = voluntary + other;
	event_add(builder, ticks, EVENT_THREAD_TIME, (uint32_t)tid, 0, run_ns, wait_ns, voluntary, other, (uint32_t)(unsigned char)thread->state, thread->wait);
	return true;
}

static void threads_sweep(struct observe *observe)
{
	size_t kept = 0;

	for (size_t i = 0; i < observe->count; i++)
		if (observe->threads[i].seen)
			observe->threads[kept++] = observe->threads[i];
	observe->count = kept;
}

bool observe_read(struct observe *observe, uint64_t ticks, struct event_builder *builder)
{
	struct proc_times times;
	size_t room = observe->count + 256;
	pid_t *tids;
	ssize_t count;
	bool gone;

	if (room > THREADS_MAX)
		room = THREADS_MAX;
	tids = calloc(room, sizeof *tids);
	if (!tids)
		return true;
	count = procfs_threads(observe->procfs, observe->pid, tids, room);
	if (count < 0 || procfs_times(observe->procfs, observe->pid, 0, &times) < 0) {
		gone = errno == ENOENT || errno == ESRCH; /* else we lack something, and look again next time */
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
	for (size_t i = 0; i < (size_t)count && i < room; i++)
		thread_read(observe, tids[i], ticks, builder);
	threads_sweep(observe);
	event_add(builder, ticks, EVENT_PROCESS_TIME, (uint32_t)observe->pid, 0, times.user_ns, times.system_ns, times.rss_bytes, times.minor_faults,
	          times.major_faults, times.threads);
	free(tids);
	return true;
}
