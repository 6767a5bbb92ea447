/* Threads, from /proc. */
#include "session/census.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"

enum { THREADS_MAX = 65536, QUIET = 3 };

void census_init(struct census *census, const struct procfs *procfs, pid_t pid, bool namespaced, struct block_runtime runtime)
{
	*census = (struct census){ .procfs = procfs, .pid = pid, .namespaced = namespaced, .runtime = runtime };
}

void census_done(struct census *census)
{
	free(census->threads);
	tidmap_done(&census->inner);
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
	return census_by_tid(census, tidmap_outer(&census->inner, inner_tid));
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

/* Without room for it, it comes with a later reading. */
static void insert(struct census *census, size_t at, pid_t tid)
{
	struct seen_thread fresh = { .tid = tid, .present = true };

	if (!identify(census, &fresh))
		return; /* gone already */
	if (census->count == census->capacity) {
		size_t capacity = census->capacity ? census->capacity * 2 : 64;
		struct seen_thread *threads = realloc(census->threads, capacity * sizeof *threads);

		if (!threads)
			return;
		census->threads = threads;
		census->capacity = capacity;
	}
	memmove(census->threads + at + 1, census->threads + at, (census->count - at) * sizeof *census->threads);
	census->threads[at] = fresh;
	census->count++;
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

static void threads_index(struct census *census)
{
	tidmap_clear(&census->inner);
	for (size_t i = 0; i < census->count && census->namespaced; i++)
		tidmap_add(&census->inner, census->threads[i].inner_tid, census->threads[i].tid);
	tidmap_sort(&census->inner);
}

bool census_read(struct census *census, void (*gone)(void *context, pid_t tid), void *context)
{
	pid_t *tids = NULL;
	ssize_t count = procfs_threads_all(census->procfs, census->pid, THREADS_MAX, &tids);

	if (count < 0 && errno != ENOENT && errno != ESRCH)
		return true; /* we lack something: the next one tells */
	for (size_t i = 0; i < census->count; i++)
		census->threads[i].present = false;
	for (ssize_t i = 0; i < count; i++) {
		size_t at = place_of(census, tids[i]);

		if (at < census->count && census->threads[at].tid == tids[i])
			census->threads[at].present = true;
		else
			insert(census, at, tids[i]);
	}
	for (size_t i = 0; i < census->count && count > 0; i++) /* it may have been passed over */
		if (!census->threads[i].present)
			census->threads[i].present = identify(census, &census->threads[i]);
	sweep(census, gone, context);
	threads_index(census);
	free(tids);
	return count > 0;
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
