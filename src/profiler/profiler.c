/* The state of the one measurement, and the functions of the public header. The child is child.c's. */
#include "profiler/profiler.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "profiler/child.h"

/* A library's calls without a handle: here is the one place that they can mean. */
static struct {
	pthread_mutex_t lock; /* of all below */
	pid_t owner;          /* a forked child finds another one here, and no measurement of its own */
	struct child child;
	bool running;
	uint32_t rate_hz;
	uint64_t begun_ns, elapsed_ns, samples, stacks;
	char *json, *summary; /* of the last measurement, or NULL */
} the = { .lock = PTHREAD_MUTEX_INITIALIZER, .rate_hz = 1000000 / PROFILER_INTERVAL_US };

static __thread char failure[PROFILER_ERROR_BYTES];

static int refuse(const char *text)
{
	snprintf(failure, sizeof failure, "%s", text);
	return -1;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void result_drop(void)
{
	free(the.json);
	free(the.summary);
	the.json = the.summary = NULL;
	the.samples = the.stacks = the.elapsed_ns = 0;
}

static void lock(void)
{
	pthread_mutex_lock(&the.lock);
	if (the.owner != getpid()) {
		if (the.running)
			child_forget(&the.child); /* it measures our parent */
		the.running = false;
		the.owner = getpid();
	}
}

static int unlock(int result)
{
	pthread_mutex_unlock(&the.lock);
	return result;
}

int profiler_set_interval_us(uint32_t interval_us)
{
	if (interval_us < PROFILER_INTERVAL_US || interval_us > 1000000)
		return refuse("the interval is 1000 to 1000000 us: a shorter one costs more than it tells");
	lock();
	the.rate_hz = (1000000 + interval_us / 2) / interval_us;
	return unlock(0);
}

int profiler_start(void)
{
	lock();
	if (the.running)
		return unlock(refuse("this process is being profiled already: profiler_stop() ends that"));
	result_drop();
	if (child_start(&the.child, the.rate_hz, failure) < 0)
		return unlock(-1);
	the.running = true;
	the.begun_ns = now_ns();
	return unlock(0);
}

int profiler_stop(void)
{
	unsigned long long elapsed_ns, samples, stacks;

	lock();
	if (!the.running)
		return unlock(refuse("this process is not being profiled: profiler_start() begins that"));
	the.running = false;
	the.elapsed_ns = now_ns() - the.begun_ns;
	if (child_stop(&the.child, &the.json, &the.summary, failure) < 0)
		return unlock(-1);
	if (sscanf(the.json, "{\"schema\":\"inferscope.profile/1\",\"elapsed_ns\":%llu,\"samples\":%llu,\"stacks_count\":%llu", &elapsed_ns, &samples, &stacks) != 3) {
		result_drop();
		return unlock(refuse("the program wrote no samples: it is of another version than this library"));
	}
	the.elapsed_ns = elapsed_ns;
	the.samples = samples;
	the.stacks = stacks;
	return unlock(0);
}

static int write_file(const char *path, const char *text)
{
	size_t length = strlen(text);
	int fd = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
	int saved;

	if (!path)
		return refuse("a path is needed");
	while (fd >= 0 && length > 0) {
		ssize_t written = write(fd, text, length);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			break;
		text += written;
		length -= (size_t)written;
	}
	saved = errno;
	if (fd >= 0 && close(fd) == 0 && length == 0)
		return 0;
	snprintf(failure, sizeof failure, "%.200s cannot be written: %s", path, strerror(saved));
	return -1;
}

static int write_result(const char *path, char *const *text)
{
	lock();
	if (!*text)
		return unlock(refuse(the.running ? "this process is still being profiled: profiler_stop() first" : "nothing has been measured yet: profiler_start() and profiler_stop() first"));
	return unlock(write_file(path, *text));
}

int profiler_write_json(const char *path)
{
	return write_result(path, &the.json);
}

int profiler_write_summary(const char *path)
{
	return write_result(path, &the.summary);
}

int profiler_get_state(struct profiler_state *out)
{
	if (!out)
		return refuse("there is no place for the state");
	lock();
	*out = (struct profiler_state){ the.running, (1000000 + the.rate_hz / 2) / the.rate_hz, the.running ? now_ns() - the.begun_ns : the.elapsed_ns, the.samples, the.stacks };
	return unlock(0);
}

const char *profiler_error(void)
{
	return failure;
}

/* Another thread of the parent's may have been at work on it, which there is none of here: its lock would stay held, and what it wrote at that moment is nobody's. */
static void in_child(void)
{
	if (pthread_mutex_trylock(&the.lock) == 0) {
		pthread_mutex_unlock(&the.lock);
		return;
	}
	the = (typeof(the)){ .lock = PTHREAD_MUTEX_INITIALIZER, .rate_hz = the.rate_hz };
}

__attribute__((constructor)) static void profiler_begin(void)
{
	pthread_atfork(NULL, NULL, in_child);
}

/* A process that ends while it is measured leaves no child behind that writes for nobody. */
__attribute__((destructor)) static void profiler_end(void)
{
	if (the.running && the.owner == getpid())
		child_abandon(&the.child);
}
