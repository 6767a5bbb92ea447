/* Threads and what they are blocked in, from /proc. */
#include "session/census.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session/syscalls.h"

enum { THREADS_MAX = 65536, QUIET = 3, NOT_TOLD = -2 /* number of a system call */ };

void census_init(struct census *census, const struct procfs *procfs, pid_t pid, bool namespaced, uint64_t runtime, uint64_t runtime_end)
{
	*census = (struct census){ .procfs = procfs, .pid = pid, .namespaced = namespaced, .runtime = runtime, .runtime_end = runtime_end };
}

void census_done(struct census *census)
{
	free(census->threads);
	census->threads = NULL;
	census->count = census->capacity = 0;
}

static size_t place_of(const struct census *census, pid_t tid)
{
	size_t low = 0, high = census->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (census->threads[middle].tid < tid)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct seen_thread *census_by_inner(const struct census *census, pid_t inner_tid)
{
	size_t at;

	if (!census->namespaced) {
		at = place_of(census, inner_tid);
		return at < census->count && census->threads[at].tid == inner_tid ? &census->threads[at] : NULL;
	}
	for (at = 0; at < census->count; at++)
		if (census->threads[at].inner_tid == inner_tid)
			return &census->threads[at];
	return NULL;
}

/* Threads of ours bear our name from their first moment. */
static bool identify(const struct census *census, struct seen_thread *thread)
{
	struct proc_status status;

	if (procfs_status(census->procfs, census->pid, thread->tid, &status) < 0)
		return false;
	thread->inner_tid = status.inner_pid ? status.inner_pid : thread->tid;
	thread->ours = thread->tid != census->pid && strcmp(status.name, "inferscope") == 0;
	return true;
}

static bool insert(struct census *census, size_t at, pid_t tid)
{
	struct seen_thread fresh = { .tid = tid, .present = true };

	if (!identify(census, &fresh))
		return true; /* gone already */
	if (census->count == census->capacity) {
		size_t capacity = census->capacity ? census->capacity * 2 : 64;
		struct seen_thread *threads = realloc(census->threads, capacity * sizeof *threads);

		if (!threads)
			return false;
		census->threads = threads;
		census->capacity = capacity;
	}
	memmove(census->threads + at + 1, census->threads + at, (census->count - at) * sizeof *census->threads);
	census->threads[at] = fresh;
	census->count++;
	return true;
}

static void sweep(struct census *census)
{
	size_t kept = 0;

	for (size_t i = 0; i < census->count; i++)
		if (census->threads[i].present)
			census->threads[kept++] = census->threads[i];
	census->count = kept;
}

bool census_read(struct census *census)
{
	size_t room = census->count + 256 < THREADS_MAX ? census->count + 256 : THREADS_MAX;
	pid_t *tids = calloc(room, sizeof *tids);
	ssize_t count = tids ? procfs_threads(census->procfs, census->pid, tids, room) : 0;

	for (size_t i = 0; i < census->count; i++)
		census->threads[i].present = !tids;
	for (size_t i = 0; i < room && (ssize_t)i < count; i++) {
		size_t at = place_of(census, tids[i]);

		if (at < census->count && census->threads[at].tid == tids[i])
			census->threads[at].present = true;
		else if (!insert(census, at, tids[i]))
			break;
	}
	sweep(census);
	free(tids);
	return !tids || count > 0;
}

/* Every look sees the threads that ran or moved lately, and a part of those that stay where they are. */
size_t census_due(struct census *census, struct seen_thread **out)
{
	size_t count = 0, quiet = 0, at = census->turn < census->count ? census->turn : 0;

	for (size_t i = 0; i < census->count; i++)
		if (!census->threads[i].ours && census->threads[i].quiet < QUIET)
			out[count++] = &census->threads[i];
	for (size_t i = 0; i < census->count && quiet < CENSUS_QUIET_LOOKS; i++, at = (at + 1) % census->count)
		if (!census->threads[at].ours && census->threads[at].quiet >= QUIET) {
			out[count++] = &census->threads[at];
			quiet++;
		}
	census->turn = at;
	return count;
}

/* Where the kernel does not tell the system call. */
static enum block_result by_letter(const struct census *census, pid_t tid, struct block *out)
{
	struct proc_times times;

	if (procfs_times(census->procfs, census->pid, tid, &times) < 0)
		return BLOCK_GONE;
	if (times.state == 'R')
		return BLOCK_RUNNING;
	*out = (struct block){ .number = NOT_TOLD };
	return BLOCK_BLOCKED;
}

enum block_result census_block(const struct census *census, pid_t tid, struct block *out)
{
	char name[48], text[256];
	uint64_t number, rest[8] = { 0 };
	int64_t minus, got;
	ssize_t length;

	snprintf(name, sizeof name, "task/%d/syscall", (int)tid);
	length = procfs_read(census->procfs, census->pid, name, text, sizeof text);
	if (length < 0)
		return by_letter(census, tid, out);
	/* "running", "-1 sp pc" (blocked, but not in a system call), or "number arg0 … arg5 sp pc" */
	if (sscanf(text, "%" SCNd64, &minus) == 1 && minus < 0) {
		got = sscanf(text, "%*d 0x%" SCNx64 " 0x%" SCNx64, &rest[6], &rest[7]);
		*out = (struct block){ .number = -1, .sp = rest[6], .pc = rest[7] };
		return got == 2 ? BLOCK_BLOCKED : BLOCK_RUNNING;
	}
	got = sscanf(text, "%" SCNu64 " 0x%" SCNx64 " 0x%" SCNx64 " 0x%" SCNx64 " 0x%" SCNx64 " 0x%" SCNx64 " 0x%" SCNx64 " 0x%" SCNx64 " 0x%" SCNx64, &number,
	             &rest[0], &rest[1], &rest[2], &rest[3], &rest[4], &rest[5], &rest[6], &rest[7]);
	*out = (struct block){ (int64_t)number, rest[0], rest[6], rest[7] };
	return got == 9 ? BLOCK_BLOCKED : BLOCK_RUNNING;
}

enum thread_state census_state(const struct census *census, const struct block *block)
{
	static const struct { const char *name; enum thread_state state; } rows[] = {
		{ "futex", THREAD_LOCK_WAIT }, { "futex_wait", THREAD_LOCK_WAIT }, { "futex_waitv", THREAD_LOCK_WAIT },
		{ "nanosleep", THREAD_SLEEP }, { "clock_nanosleep", THREAD_SLEEP }, { "pause", THREAD_SLEEP }, { "rt_sigtimedwait", THREAD_IDLE },
		{ "epoll_wait", THREAD_IDLE }, { "epoll_pwait", THREAD_IDLE }, { "epoll_pwait2", THREAD_IDLE }, { "accept", THREAD_IDLE }, { "accept4", THREAD_IDLE },
		{ "select", THREAD_SLEEP }, { "pselect6", THREAD_SLEEP }, { "restart_syscall", THREAD_SLEEP }, /* time.sleep() up to 3.10; the timeline knows a selector by its frames */
		{ "poll", THREAD_IDLE }, { "ppoll", THREAD_IDLE }, { "wait4", THREAD_IDLE }, { "waitid", THREAD_IDLE },
	};
	char name[32];

	if (block->number == NOT_TOLD)
		return THREAD_UNKNOWN;
	if (block->number < 0)
		return THREAD_IO_WAIT; /* a page fault that reads from a disk */
	syscall_name((uint64_t)block->number, name, sizeof name);
	if (strncmp(name, "futex", 5) == 0 && block->argument >= census->runtime && block->argument < census->runtime_end)
		return THREAD_GIL_WAIT;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (strcmp(rows[i].name, name) == 0)
			return rows[i].state;
	return THREAD_IO_WAIT;
}
