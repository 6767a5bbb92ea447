/* Looks at single threads: a table of their thread states, and one walk each. */
#include "unwind/pyglance.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/search.h"
#include "unwind/pyreader.h"

struct known_thread {
	pid_t tid;
	uint64_t tstate, interp, thread_id;
};

struct pyglance {
	struct pywalk walk;
	bool torn; /* the last look at a thread state came to nothing */
	uint32_t count;
	struct known_thread threads[PYGLANCE_THREADS_MAX]; /* by tid */
};

enum { TRIES = 5 /* a thread that calls and returns all the time tears one look in 20 */ };
_Static_assert(sizeof(struct pyframes) <= PYGLANCE_BYTES_MAX, "a look fits");

int pyglance_open(const struct pyreader *reader, struct pyglance **out, struct error *err)
{
	struct pyglance *glance = mmap(NULL, sizeof *glance, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (glance == MAP_FAILED)
		return fail(err, ERR_MEMORY, "reading Python stacks");
	glance->walk.memory = reader->walk.memory;
	glance->walk.layout = reader->walk.layout;
	glance->walk.minor = reader->walk.minor;
	glance->walk.runtime = reader->walk.runtime;
	glance->walk.tid_offset = reader->walk.tid_offset;
	pages_init(&glance->walk.pages, &reader->walk.memory);
	*out = glance;
	return 0;
}

void pyglance_close(struct pyglance *glance)
{
	if (glance)
		munmap(glance, sizeof *glance);
}

/* ---- the table ---- */

struct filling {
	struct pyglance *glance;
	struct pyreader *reader;
	pid_t (*outer)(void *context, pid_t tid);
	void *context;
};

static int thread_add(void *context, uint64_t tstate, uint64_t interp, uint64_t *next)
{
	struct filling *filling = context;
	struct pyglance *glance = filling->glance;
	struct known_thread *thread = &glance->threads[glance->count];

	if (walk_identity(&filling->reader->walk, tstate, interp, &thread->tid, &thread->thread_id, next) < 0)
		return 0;
	if (filling->outer)
		thread->tid = filling->outer(filling->context, thread->tid);
	thread->tstate = tstate;
	thread->interp = interp;
	if (thread->tid > 0 && glance->count < PYGLANCE_THREADS_MAX - 1)
		glance->count++;
	return 0;
}

static int thread_compare(const void *a, const void *b)
{
	const struct known_thread *x = a, *y = b;

	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

int pyglance_threads(struct pyglance *glance, struct pyreader *reader, pid_t (*outer)(void *context, pid_t tid), void *context)
{
	struct filling filling = { glance, reader, outer, context };

	glance->count = 0;
	if (reader_threads(reader, thread_add, &filling) < 0)
		return -1;
	qsort(glance->threads, glance->count, sizeof *glance->threads, thread_compare);
	return (int)glance->count;
}

/* The first entry of TID, or where it would stand. */
static uint32_t thread_index(const struct pyglance *glance, pid_t tid)
{
	return search_first(glance->count, i, glance->threads[i].tid < tid);
}

bool pyglance_knows(const struct pyglance *glance, pid_t tid)
{
	uint32_t index = thread_index(glance, tid);

	return index < glance->count && glance->threads[index].tid == tid;
}

/* ---- looking ---- */

static uint32_t frames_put(const struct pyframes *frames, void *out, uint32_t size)
{
	uint32_t used = (uint32_t)(offsetof(struct pyframes, frames) + frames->count * sizeof frames->frames[0]);

	if (used > size)
		return 0;
	memcpy(out, frames, used);
	return used;
}

uint32_t pyglance_look(void *context, pid_t tid, void *out, uint32_t size)
{
	struct pyglance *glance = context;
	uint32_t used = 0;

	/* A thread that is in several interpreters has a thread state in each: the one with the GIL is where it is. */
	for (uint32_t i = thread_index(glance, tid); i < glance->count && glance->threads[i].tid == tid; i++) {
		const struct known_thread *thread = &glance->threads[i];
		enum thread_found found;
		uint64_t next;

		found = walk_thread(&glance->walk, thread->tstate, (struct thread_expected){ thread->interp, thread->thread_id }, &next);
		glance->torn = found == THREAD_TORN;
		if (found < THREAD_READ)
			continue;
		used = frames_put(&glance->walk.frames, out, size);
		if (glance->walk.frames.holds_gil)
			break;
	}
	return used;
}

uint32_t pyglance_look_running(struct pyglance *glance, pid_t tid, void *out, uint32_t size, uint64_t *torn)
{
	uint32_t used = 0, last;

	for (int tries = 0; tries < TRIES; tries++) {
		last = pyglance_look(glance, tid, out, size);
		used = last ? last : used;
		if (last ? !glance->walk.frames.moved : !glance->torn)
			break;
	}
	*torn += !used && glance->torn;
	return used;
}

bool pyglance_holds_gil(const void *bytes, uint32_t size)
{
	uint8_t holds = 0;

	if (size >= offsetof(struct pyframes, frames))
		memcpy(&holds, (const unsigned char *)bytes + offsetof(struct pyframes, holds_gil), sizeof holds);
	return holds;
}

int pyglance_stack(struct pyreader *reader, const void *bytes, uint32_t size, struct pystack *out)
{
	struct pyframes frames;

	if (size == 0)
		return -1;
	memset(&frames, 0, offsetof(struct pyframes, frames));
	memcpy(&frames, bytes, size < sizeof frames ? size : sizeof frames);
	if (size < offsetof(struct pyframes, frames) || frames.count > PYFRAMES_MAX
	    || size != offsetof(struct pyframes, frames) + frames.count * sizeof frames.frames[0] || reader_finish(reader, &frames, out) < 0) {
		reader->torn++;
		return -1;
	}
	return 0;
}
