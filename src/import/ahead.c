#include "import/ahead.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/*
 * A ring of two: one is filled while the other one is emptied.
 *
 *   thread: fill [filled % 2] ─► filled++        reader: take from [emptied % 2] ─► emptied++
 */
enum { BUFFERS = 2, BUFFER_BYTES = 1 << 18 };

struct ahead {
	size_t (*fill)(void *context, unsigned char *out, size_t size);
	void *context;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned filled, emptied; /* buffers, ever */
	bool stop;
	size_t lengths[BUFFERS]; /* 0: the end */
	size_t taken;            /* the reader's: of the buffer at hand */
	unsigned char bytes[BUFFERS][BUFFER_BYTES];
};

static void *work(void *argument)
{
	struct ahead *ahead = argument;
	size_t got = 1;

	while (got) {
		unsigned buffer = ahead->filled % BUFFERS;
		bool stop;

		pthread_mutex_lock(&ahead->lock);
		while (ahead->filled - ahead->emptied == BUFFERS && !ahead->stop)
			pthread_cond_wait(&ahead->changed, &ahead->lock);
		stop = ahead->stop;
		pthread_mutex_unlock(&ahead->lock);
		if (stop)
			break;
		got = ahead->fill(ahead->context, ahead->bytes[buffer], BUFFER_BYTES);
		pthread_mutex_lock(&ahead->lock);
		ahead->lengths[buffer] = got;
		ahead->filled++;
		pthread_cond_signal(&ahead->changed);
		pthread_mutex_unlock(&ahead->lock);
	}
	return NULL;
}

struct ahead *ahead_start(size_t (*fill)(void *context, unsigned char *out, size_t size), void *context)
{
	struct ahead *ahead = malloc(sizeof *ahead);
	sigset_t all, before;
	int failed;

	if (!ahead)
		return NULL;
	memset(ahead, 0, offsetof(struct ahead, bytes));
	ahead->fill = fill;
	ahead->context = context;
	pthread_mutex_init(&ahead->lock, NULL);
	pthread_cond_init(&ahead->changed, NULL);
	/* Signals are for the thread that waits for them. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	failed = pthread_create(&ahead->thread, NULL, work, ahead);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!failed)
		return ahead;
	pthread_cond_destroy(&ahead->changed);
	pthread_mutex_destroy(&ahead->lock);
	free(ahead);
	return NULL;
}

size_t ahead_take(struct ahead *ahead, unsigned char *out, size_t size)
{
	unsigned buffer = ahead->emptied % BUFFERS;
	size_t left;

	pthread_mutex_lock(&ahead->lock);
	while (ahead->filled == ahead->emptied)
		pthread_cond_wait(&ahead->changed, &ahead->lock);
	pthread_mutex_unlock(&ahead->lock);
	left = ahead->lengths[buffer] - ahead->taken;
	if (!left)
		return 0; /* the end stays where it is */
	size = size < left ? size : left;
	memcpy(out, ahead->bytes[buffer] + ahead->taken, size);
	ahead->taken += size;
	if (size < left)
		return size;
	ahead->taken = 0;
	pthread_mutex_lock(&ahead->lock);
	ahead->emptied++;
	pthread_cond_signal(&ahead->changed);
	pthread_mutex_unlock(&ahead->lock);
	return size;
}

void ahead_stop(struct ahead *ahead)
{
	if (!ahead)
		return;
	pthread_mutex_lock(&ahead->lock);
	ahead->stop = true;
	pthread_cond_signal(&ahead->changed);
	pthread_mutex_unlock(&ahead->lock);
	pthread_join(ahead->thread, NULL);
	pthread_cond_destroy(&ahead->changed);
	pthread_mutex_destroy(&ahead->lock);
	free(ahead);
}
