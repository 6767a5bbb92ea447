/* The status line, and the thread that lets a phase's time go on while nobody calls. */
#include "cli/status.h"

#include <langinfo.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"

#define TERMINAL_NS 250000000ull
#define PLAIN_NS 10000000000ull
#define SPARE_NS 1000000000ull /* so much later than whoever has lines of its own for the phase */
enum { LINE_BYTES = 512, COLUMNS = 80 };

struct status {
	pthread_mutex_t lock; /* of all below */
	pthread_cond_t changed;
	pthread_t thread;
	bool terminal, ascii, running, stop;
	const char *phase;    /* NULL = none */
	uint64_t begun_ns, told_ns; /* of the phase; the last line */
	size_t shown;         /* bytes of the line on the terminal */
};

/* ---- lines ---- */

void status_fit(const char *line, size_t characters, bool ascii, char *out, size_t size)
{
	size_t at = 0;

	for (; *line && characters > 0 && at + 5 < size; characters--) {
		size_t length = 1;

		while (((unsigned char)line[length] & 0xc0) == 0x80)
			length++;
		if (ascii && length > 1)
			at += (size_t)snprintf(out + at, size - at, "%s", strncmp(line, "…", length) == 0 ? "..." : "?");
		else if (at + length < size)
			memcpy(out + at, line, length), at += length;
		line += length;
	}
	out[at] = '\0';
}

static size_t columns(void)
{
	struct winsize size;

	return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col : COLUMNS;
}

static size_t characters(const char *text)
{
	size_t count = 0;

	for (; *text; text++)
		count += ((unsigned char)*text & 0xc0) != 0x80;
	return count;
}

/* Spaces over what stood there before. */
static void clear(struct status *status)
{
	if (status->shown)
		fprintf(stderr, "\r%*s\r", (int)status->shown, "");
	status->shown = 0;
}

static void show(struct status *status, const char *line)
{
	char fit[LINE_BYTES];

	status->told_ns = clock_monotonic_ns();
	if (!status->terminal) {
		status_fit(line, LINE_BYTES, status->ascii, fit, sizeof fit);
		fprintf(stderr, "inferscope: %s\n", fit);
		return;
	}
	status_fit(line, columns() - 1, status->ascii, fit, sizeof fit);
	size_t length = characters(fit);

	fprintf(stderr, "\r%s%*s", fit, (int)(status->shown > length ? status->shown - length : 0), "");
	fflush(stderr);
	status->shown = length;
}

static void show_phase(struct status *status)
{
	uint64_t seconds = (clock_monotonic_ns() - status->begun_ns) / 1000000000;
	char line[LINE_BYTES];

	if (seconds)
		snprintf(line, sizeof line, "%s… %llu s", status->phase, (unsigned long long)seconds);
	else
		snprintf(line, sizeof line, "%s…", status->phase);
	show(status, line);
}

static uint64_t every(const struct status *status)
{
	return status->terminal ? TERMINAL_NS : PLAIN_NS;
}

/* ---- the thread ---- */

static void *tick(void *context)
{
	struct status *status = context;

	pthread_mutex_lock(&status->lock);
	while (!status->stop) {
		uint64_t now_ns = clock_monotonic_ns(), due_ns = status->phase ? status->told_ns + every(status) + (status->terminal ? every(status) : SPARE_NS) : now_ns + every(status);

		if (now_ns >= due_ns)
			show_phase(status);
		else
			pthread_cond_timedwait(&status->changed, &status->lock, &(struct timespec){ (time_t)(due_ns / 1000000000), (long)(due_ns % 1000000000) });
	}
	pthread_mutex_unlock(&status->lock);
	return NULL;
}

struct status *status_open(bool quiet)
{
	const char *term = getenv("TERM");
	struct status *status = quiet ? NULL : calloc(1, sizeof *status);
	pthread_condattr_t monotonic;

	if (!status)
		return NULL;
	status->terminal = isatty(STDERR_FILENO) && term && *term && strcmp(term, "dumb") != 0;
	status->ascii = strcmp(nl_langinfo(CODESET), "UTF-8") != 0;
	pthread_mutex_init(&status->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&status->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	status->running = thread_start(&status->thread, tick, status) == 0;
	return status;
}

void status_close(struct status *status)
{
	if (!status)
		return;
	pthread_mutex_lock(&status->lock);
	clear(status);
	status->stop = true;
	pthread_cond_broadcast(&status->changed);
	pthread_mutex_unlock(&status->lock);
	if (status->running)
		pthread_join(status->thread, NULL);
	pthread_cond_destroy(&status->changed);
	pthread_mutex_destroy(&status->lock);
	free(status);
}

/* ---- what callers say ---- */

void status_phase(struct status *status, const char *what)
{
	if (!status)
		return;
	pthread_mutex_lock(&status->lock);
	status->phase = what;
	status->begun_ns = clock_monotonic_ns();
	if (!what)
		clear(status);
	else if (status->terminal)
		show_phase(status);
	else
		status->told_ns = status->begun_ns; /* what is short needs no line */
	pthread_cond_broadcast(&status->changed);
	pthread_mutex_unlock(&status->lock);
}

bool status_due(struct status *status)
{
	bool due;

	if (!status)
		return false;
	pthread_mutex_lock(&status->lock);
	due = clock_monotonic_ns() - status->told_ns >= every(status);
	pthread_mutex_unlock(&status->lock);
	return due;
}

void status_say(struct status *status, const char *line, const char *hint)
{
	char whole[LINE_BYTES];

	if (!status)
		return;
	pthread_mutex_lock(&status->lock);
	snprintf(whole, sizeof whole, "%s%s%s", line, status->terminal && hint ? " | " : "", status->terminal && hint ? hint : "");
	show(status, whole);
	pthread_mutex_unlock(&status->lock);
}

void status_clear(struct status *status)
{
	if (!status)
		return;
	pthread_mutex_lock(&status->lock);
	clear(status);
	pthread_mutex_unlock(&status->lock);
}
