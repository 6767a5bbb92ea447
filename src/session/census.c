/* Threads, from /proc. */
#include "base/search.h"
#include "session/census.h"

#include <stdlib.h>
#include <string.h>

enum { THREADS_MAX = 65536, QUIET = 3 };

void census_init(struct census *census, const struct procfs *procfs, pid_t pid, bool namespaced, struct block_runtime runtime)
{
	*census = (struct census){ .procfs = procfs, .pid = pid, .namespaced = namespaced, .runtime = runtime };
}

void census_done(struct census *census)
{
	free(census->threads);
	census->threads = NULL;
	census->count = census->capacity = 0;
}

static size_t place_of(const struct census *census, pid_t tid)
{
	return search_first(census->count, i, census->threads[i].tid < tid);
}

struct seen_thread *census_by_tid(const struct census *census, pid_t tid)
{
	size_t at = place_of(census, tid);

	return at < census->count && census->threads[at].tid == tid ? &census->threads[at] : NULL;
}

struct seen_thread *census_by_inner(const struct census *census, pid_t inner_tid)
{
	if (!census->namespaced)
		return census_by_tid(census, inner_tid);
	for (size_t at = 0; at < census->count; at++)
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

static void sweep(struct census *census, void (*gone)(void *context, pid_t tid), void *context)
{
	size_t kept = 0;

	for (size_t i = 0; i < census->count; i++) {
		if (census->threads[i].present)
			census->threads[kept++] = census->threads[i];
		else if (gone)
			gone(context, census->threads[i].tid);
	}
	census->count = kept;
}

bool census_read(struct census *census, void (*gone)(void *context, pid_t tid), void *context)
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
	sweep(census, gone, context);
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
