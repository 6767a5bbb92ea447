#include "import/ahead.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"

/*
 * A ring of two: one is filled while the reader has the other one.
 *
 *   thread: fill [filled % 2] ─► filled++        reader: look at [emptied % 2] ─► emptied++
 */
enum { BUFFERS = 2 };

struct ahead {
	size_t (*fill)(void *context, unsigned char *out, size_t size);
	void *context;
	bool threaded;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned filled, emptied; /* buffers, ever */
	bool stop;
	bool held;               /* the reader's: it has one */
	size_t lengths[BUFFERS]; /* 0: the end */
	_Alignas(16) unsigned char bytes[BUFFERS][AHEAD_BYTES];
};

/* Waits for room; false when there is to be no more. */
static bool await_room(struct ahead *ahead)
{
	bool stop;

	pthread_mutex_lock(&ahead->lock);
	while (ahead->filled - ahead->emptied == BUFFERS && !ahead->stop)
		pthread_cond_wait(&ahead->changed, &ahead->lock);
	stop = ahead->stop;
	pthread_mutex_unlock(&ahead->lock);
	return !stop;
}

static void advance(struct ahead *ahead, unsigned *count)
{
	pthread_mutex_lock(&ahead->lock);
	++*count;
	pthread_cond_signal(&ahead->changed);
	pthread_mutex_unlock(&ahead->lock);
}

static void *work(void *argument)
{
	struct ahead *ahead = argument;
	size_t got = 1;

	while (got && await_room(ahead)) {
		unsigned buffer = ahead->filled % BUFFERS;

		got = ahead->lengths[buffer] = ahead->fill(ahead->context, ahead->bytes[buffer], AHEAD_BYTES);
		advance(ahead, &ahead->filled);
	}
	return NULL;
}

struct ahead *ahead_start(size_t (*fill)(void *context, unsigned char *out, size_t size), void *context)
{
	struct ahead *ahead = aligned_alloc(16, sizeof *ahead);

	if (!ahead)
		return NULL;
	memset(ahead, 0, offsetof(struct ahead, bytes));
	ahead->fill = fill;
	ahead->context = context;
	pthread_mutex_init(&ahead->lock, NULL);
	pthread_cond_init(&ahead->changed, NULL);
	ahead->threaded = thread_start(&ahead->thread, work, ahead) == 0;
	return ahead;
}

unsigned char *ahead_take(struct ahead *ahead, size_t *length)
{
	unsigned buffer;

	if (ahead->held)
		advance(ahead, &ahead->emptied);
	buffer = ahead->emptied % BUFFERS;
	if (ahead->threaded) {
		pthread_mutex_lock(&ahead->lock);
		while (ahead->filled == ahead->emptied)
			pthread_cond_wait(&ahead->changed, &ahead->lock);
		pthread_mutex_unlock(&ahead->lock);
	} else {
		ahead->lengths[buffer] = ahead->fill(ahead->context, ahead->bytes[buffer], AHEAD_BYTES);
	}
	*length = ahead->lengths[buffer];
	ahead->held = *length > 0; /* the end stays where it is */
	return ahead->bytes[buffer];
}

void ahead_stop(struct ahead *ahead)
{
	if (!ahead)
		return;
	pthread_mutex_lock(&ahead->lock);
	ahead->stop = true;
	pthread_cond_signal(&ahead->changed);
	pthread_mutex_unlock(&ahead->lock);
	if (ahead->threaded)
		pthread_join(ahead->thread, NULL);
	pthread_cond_destroy(&ahead->changed);
	pthread_mutex_destroy(&ahead->lock);
	free(ahead);
}
