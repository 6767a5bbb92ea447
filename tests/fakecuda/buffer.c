/* The clients' buffers: filled one per thread, given back full or flushed, by the worker thread or by whoever flushes. */
#include "profiler.h"
#include "settings.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { WORKER_PERIOD_MS = 5 };

static pthread_cond_t wake = PTHREAD_COND_INITIALIZER, quiet = PTHREAD_COND_INITIALIZER;
static pthread_t worker;
static int worker_runs, worker_ends;

static void crash_on_null_buffer(void)
{
	if (setting(SET_CRASH_ON_NULL_BUFFER) && version() < V_12_9) {
		journal_note("crash on null buffer");
		raise(SIGSEGV);
	}
}

static struct buffer *request(struct client *client, int tid)
{
	request_fn *ask = client->request;
	request_v2_fn *ask_v2 = client->request_v2;
	unsigned generation = client->generation;
	struct buffer *buffer = NULL;
	uint8_t *bytes = NULL;
	size_t size = 0, records = 0, info = sizeof info;

	if (!ask && !ask_v2)
		return NULL;
	pthread_mutex_unlock(&profiler_lock);
	if (ask_v2)
		ask_v2(&bytes, &size, &records, &info);
	else
		ask(&bytes, &size, &records);
	if (!bytes)
		crash_on_null_buffer();
	pthread_mutex_lock(&profiler_lock);
	if (bytes && generation == client->generation && (buffer = calloc(1, sizeof *buffer)))
		*buffer = (struct buffer){ NULL, bytes, size, 0, 0, records, tid };
	return buffer;
}

static void append_full(struct client *client, struct buffer *buffer)
{
	buffer->next = NULL;
	*(client->full ? client->full_end : &client->full) = buffer;
	client->full_end = &buffer->next;
}

static struct buffer **open_of(struct client *client, int tid)
{
	struct buffer **at = &client->open;

	while (*at && (*at)->tid != tid)
		at = &(*at)->next;
	return at;
}

/* Behind one that was opened meanwhile for the same thread, so that its records stay in order. */
static void open_last(struct client *client, struct buffer *buffer)
{
	struct buffer **at = &client->open;

	while (*at)
		at = &(*at)->next;
	*at = buffer;
}

static int has_place(const struct buffer *buffer)
{
	size_t most = (size_t)setting(SET_BUFFER_RECORDS);

	return (!buffer->records_max || buffer->records < buffer->records_max) && (!most || buffer->records < most);
}

uint8_t *buffer_room(struct client *client, int tid, size_t size)
{
	for (;;) {
		struct buffer **at = open_of(client, tid), *buffer = *at;

		if (buffer && buffer->size - buffer->used >= size && has_place(buffer)) {
			buffer->used += size;
			buffer->records++;
			return buffer->bytes + buffer->used - size;
		}
		if (buffer) {
			*at = buffer->next;
			append_full(client, buffer);
			pthread_cond_signal(&wake);
		}
		buffer = request(client, tid);
		if (!buffer) {
			client->dropped++;
			return NULL;
		}
		if (buffer->size < size) {
			client->dropped++;
			append_full(client, buffer);
			return NULL;
		}
		open_last(client, buffer);
	}
}

/* Hands full buffers back, in order: one thread at a time. The lock is let go. */
static void deliver(struct client *client)
{
	unsigned generation = client->generation;

	if (setting(SET_HOLD_BUFFERS))
		return;
	while (client->handing && client->generation == generation)
		pthread_cond_wait(&quiet, &profiler_lock);
	client->handing = 1;
	while (client->full && (client->complete || client->complete_v2)) {
		struct buffer *buffer = client->full;
		complete_fn *complete = client->complete;
		complete_v2_fn *complete_v2 = client->complete_v2;

		client->full = buffer->next;
		client->delivering++;
		pthread_mutex_unlock(&profiler_lock);
		if (complete_v2) {
			struct {
				size_t size;
				uint64_t thread;
				void *layouts;
				size_t layout_count;
			} info = { sizeof info, (uint64_t)buffer->tid, NULL, 0 };

			complete_v2(buffer->bytes, buffer->size, buffer->used, &info);
		} else {
			complete(NULL, 0, buffer->bytes, buffer->size, buffer->used);
		}
		free(buffer);
		pthread_mutex_lock(&profiler_lock);
		client->delivering--;
	}
	client->handing = 0;
	pthread_cond_broadcast(&quiet);
}

static void close_all(struct client *client)
{
	while (client->open) {
		struct buffer *buffer = client->open;

		client->open = buffer->next;
		append_full(client, buffer);
	}
}

static void write_done(struct client *client, int forced)
{
	client->delivering++;
	record_done(client, forced);
	client->delivering--;
	pthread_cond_broadcast(&quiet);
}

static void wait_until_quiet(struct client *client, unsigned generation)
{
	while (client->delivering && client->generation == generation)
		pthread_cond_wait(&quiet, &profiler_lock);
}

/* What the worker is writing at the moment belongs to it, too. */
void buffer_flush(struct client *client, int forced)
{
	unsigned generation = client->generation;

	write_done(client, forced);
	wait_until_quiet(client, generation);
	close_all(client);
	deliver(client);
	wait_until_quiet(client, generation);
}

/* Nobody gets them any more: their memory is the client's own. */
void buffer_forget(struct client *client)
{
	close_all(client);
	while (client->full) {
		struct buffer *buffer = client->full;

		client->full = buffer->next;
		free(buffer);
	}
	free(client->pending);
	client->pending = NULL;
	client->pending_count = client->pending_room = 0;
}

static void wait_until_woken(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += WORKER_PERIOD_MS * 1000000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_cond_timedwait(&wake, &profiler_lock, &until);
}

static void *work(void *unused)
{
	pthread_mutex_lock(&profiler_lock);
	while (!worker_ends) {
		wait_until_woken();
		for (int i = 0; i < CLIENTS_MAX && !worker_ends; i++) {
			if (clients[i].full && setting(SET_SLOW_BUFFERS_MS)) {
				pthread_mutex_unlock(&profiler_lock);
				usleep((useconds_t)setting(SET_SLOW_BUFFERS_MS) * 1000);
				pthread_mutex_lock(&profiler_lock);
			}
			write_done(&clients[i], 0);
			deliver(&clients[i]);
		}
	}
	pthread_mutex_unlock(&profiler_lock);
	return NULL;
}

static void *sleep_for_ever(void *unused)
{
	for (;;)
		pause();
	return NULL;
}

/* With no signals, as CUPTI's: the program's handlers run on threads of its own. */
static int thread_start(pthread_t *thread, void *(*body)(void *))
{
	sigset_t all, before;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(thread, NULL, body, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error;
}

int worker_start(void)
{
	if (worker_runs)
		return 0;
	worker_ends = 0;
	worker_runs = thread_start(&worker, driver ? work : sleep_for_ever) == 0;
	return worker_runs ? 0 : -1;
}

void worker_stop(void)
{
	pthread_t thread;
	int runs;

	pthread_mutex_lock(&profiler_lock);
	runs = worker_runs && driver;
	thread = worker;
	worker_ends = 1;
	pthread_cond_broadcast(&wake);
	if (runs)
		worker_runs = 0;
	pthread_mutex_unlock(&profiler_lock);
	if (!runs)
		return;
	pthread_join(thread, NULL);
	if (setting(SET_LEAK_THREAD) && thread_start(&thread, sleep_for_ever) == 0)
		pthread_detach(thread);
}
