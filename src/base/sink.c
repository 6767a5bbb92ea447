/* Output bytes to a file, a descriptor or memory. What the bytes mean is the writers'; which files are ours is marks.c. */
#include "base/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"

enum { BUFFER_BYTES = 65536, LINKS_MAX = 40 /* as many as the kernel follows */ };

struct sink {
	int fd;         /* -1: to text */
	bool own_fd;    /* close it at the end */
	bool force;
	bool closed;    /* the reader of a pipe went away: quietly nothing more */
	char *path;     /* the final name, or NULL */
	bool pending;   /* a file that gets its final name in sink_commit() */
	char *temporary; /* its name until then; NULL: it has none, and is gone if we die */
	char *name;     /* for messages */
	struct text *text;
	struct error error; /* the first failure; ERR_NONE = none */
	uint64_t bytes;
	size_t used;
	unsigned char buffer[BUFFER_BYTES];
};

static struct sink *sink_new(const char *name)
{
	struct sink *sink = malloc(sizeof *sink);

	if (!sink)
		return NULL;
	memset(sink, 0, offsetof(struct sink, buffer));
	sink->fd = -1;
	sink->name = strdup(name);
	if (!sink->name) {
		free(sink);
		return NULL;
	}
	return sink;
}

static void sink_free(struct sink *sink)
{
	if (sink->own_fd && sink->fd >= 0)
		close(sink->fd);
	free(sink->path);
	free(sink->temporary);
	free(sink->name);
	free(sink);
}

int sink_open_fd(int fd, struct sink **out, struct error *err)
{
	struct sink *sink;

	if (fd < 0)
		return fail(err, ERR_OUTPUT, "output descriptor %d is not open", fd);
	sink = sink_new(fd == STDOUT_FILENO ? "stdout" : "output");
	if (!sink)
		return fail(err, ERR_MEMORY, "opening the output");
	sink->fd = fd;
	*out = sink;
	return 0;
}

int sink_open_text(struct text *text, struct sink **out, struct error *err)
{
	struct sink *sink = sink_new("memory");

	if (!sink)
		return fail(err, ERR_MEMORY, "opening the output");
	sink->text = text;
	*out = sink;
	return 0;
}

static int write_error(const struct sink *sink, struct error *err)
{
	return fail(err, file_error_of(errno, ERR_OUTPUT), "cannot write %s: %s", sink->name, strerror(errno));
}

static int folder_length(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? (int)(slash - path + 1) : 0;
}

/* A name beside the final one, for mkostemp(): rename() cannot cross file systems. */
static int name_temporary(struct sink *sink, struct error *err)
{
	int folder = folder_length(sink->path);

	/* The name is cut so that the prefix and suffix still fit NAME_MAX. */
	if (asprintf(&sink->temporary, "%.*s.%.200s.XXXXXX", folder, sink->path, sink->path + folder) >= 0)
		return 0;
	sink->temporary = NULL;
	return fail(err, ERR_MEMORY, "opening %s", sink->name);
}

/* A file without a name (Linux 3.11, most local file systems): whatever kills us, nothing stays. -1 where that cannot be had. */
static int open_nameless(const struct sink *sink)
{
	char *folder = NULL;
	int fd, length = folder_length(sink->path);

	if (access("/proc/self/fd", X_OK) < 0 || asprintf(&folder, "%.*s", length ? length : 1, length ? sink->path : ".") < 0)
		return -1;
	fd = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
	free(folder);
	return fd;
}

static int open_pending(struct sink *sink, struct error *err)
{
	sink->pending = sink->own_fd = true;
	sink->fd = open_nameless(sink);
	if (sink->fd >= 0)
		return 0;
	if (name_temporary(sink, err) < 0)
		return -1;
	/* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): name_temporary has made it */
	sink->fd = mkostemp(sink->temporary, O_CLOEXEC);
	if (sink->fd >= 0)
		return 0;
	write_error(sink, err);
	free(sink->temporary);
	sink->temporary = NULL;
	return -1;
}

/* Devices and named pipes are written as they are. */
static int open_special(struct sink *sink, struct error *err)
{
	sink->fd = open(sink->path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	if (sink->fd < 0)
		return write_error(sink, err);
	sink->own_fd = true;
	return 0;
}

/* Where PATH leads, also where a link names a file that is not there yet. The result is the caller's; NULL without memory. */
static char *behind_links(const char *path)
{
	char *at = realpath(path, NULL);
	char link[PATH_MAX];
	ssize_t length;

	if (at)
		return at;
	at = strdup(path);
	for (int i = 0; at && i < LINKS_MAX && access(at, F_OK) < 0 && (length = readlink(at, link, sizeof link - 1)) > 0; i++) {
		char *next = NULL;

		link[length] = '\0';
		if (asprintf(&next, "%.*s%s", *link == '/' ? 0 : folder_length(at), at, link) < 0)
			next = NULL;
		free(at);
		at = next;
	}
	return at;
}

static int exists_error(const char *name, struct error *err)
{
	errno = EEXIST;
	return fail(err, ERR_OUTPUT_EXISTS, "%s exists and was not written by InferScope", name);
}

int sink_open_path(const char *path, bool force, struct sink **out, struct error *err)
{
	struct sink *sink;
	struct stat status;
	int result = -1;

	if (strcmp(path, "-") == 0)
		return sink_open_fd(STDOUT_FILENO, out, err);
	if (!*path || path[strlen(path) - 1] == '/')
		return fail(err, ERR_OUTPUT, "cannot write '%s': a file name is needed", path);
	sink = sink_new(path);
	if (!sink)
		return fail(err, ERR_MEMORY, "opening %s", path);
	sink->force = force;
	/* Through a symbolic link: the file it names is replaced, and the link stays. */
	sink->path = behind_links(path);
	if (!sink->path) {
		fail(err, ERR_MEMORY, "opening %s", path);
	} else if (stat(sink->path, &status) < 0) {
		result = errno == ELOOP ? write_error(sink, err) : open_pending(sink, err);
	} else if (S_ISDIR(status.st_mode)) {
		errno = EISDIR;
		fail(err, ERR_OUTPUT, "cannot write %s: it is a folder", path);
	} else if (!S_ISREG(status.st_mode)) {
		result = open_special(sink, err);
	} else if (!force && !sink_is_ours(sink->path)) {
		exists_error(path, err);
	} else {
		result = open_pending(sink, err);
	}
	if (result < 0)
		sink_free(sink);
	else
		*out = sink;
	return result;
}

int sink_test_path(const char *path, bool force, struct error *err)
{
	struct sink *sink = NULL;
	struct stat status;

	if (strcmp(path, "-") == 0) {
		int flags = fcntl(STDOUT_FILENO, F_GETFL);

		return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY ? 0 : fail(err, ERR_OUTPUT, "cannot write stdout: it is closed");
	}
	if (stat(path, &status) == 0 && S_ISFIFO(status.st_mode)) {
		if (access(path, W_OK) == 0)
			return 0;
		return fail(err, ERR_OUTPUT, "cannot write %s: %s", path, strerror(errno));
	}
	if (sink_open_path(path, force, &sink, err) < 0)
		return -1;
	sink_discard(sink);
	return 0;
}

/* write() without SIGPIPE, and without touching the process's handling of it: other threads may rely on that. */
static ssize_t write_quietly(int fd, const void *bytes, size_t length)
{
	const struct timespec now = { 0, 0 };
	sigset_t pipe_set, old, pending;
	bool was_pending;
	ssize_t written;
	int saved;

	sigemptyset(&pipe_set);
	sigaddset(&pipe_set, SIGPIPE);
	sigpending(&pending);
	was_pending = sigismember(&pending, SIGPIPE) == 1;
	pthread_sigmask(SIG_BLOCK, &pipe_set, &old);
	written = write(fd, bytes, length);
	saved = errno;
	if (written < 0 && saved == EPIPE && !was_pending)
		while (sigtimedwait(&pipe_set, NULL, &now) < 0 && errno == EINTR)
			;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	errno = saved;
	return written;
}

static void push(struct sink *sink, const unsigned char *bytes, size_t length)
{
	struct pollfd wait = { .fd = sink->fd, .events = POLLOUT };
	ssize_t written;

	if (sink->text) {
		text_add(sink->text, bytes, length);
		if (sink->text->failed)
			fail(&sink->error, ERR_MEMORY, "writing to memory");
		return;
	}
	while (length && !sink->closed && !sink_failed(sink)) {
		written = write_quietly(sink->fd, bytes, length);
		if (written >= 0) {
			bytes += written;
			length -= (size_t)written;
		} else if (errno == EPIPE) {
			sink->closed = true;
		} else if (errno == EAGAIN) {
			poll(&wait, 1, -1);
		} else if (errno != EINTR) {
			write_error(sink, &sink->error);
		}
	}
}

static void push_buffer(struct sink *sink)
{
	size_t used = sink->used;

	sink->used = 0;
	push(sink, sink->buffer, used);
}

void sink_write(struct sink *sink, const void *bytes, size_t length)
{
	if (sink_failed(sink))
		return;
	sink->bytes += length;
	if (length > BUFFER_BYTES - sink->used)
		push_buffer(sink);
	if (length >= BUFFER_BYTES) {
		push(sink, bytes, length);
		return;
	}
	if (length)
		memcpy(sink->buffer + sink->used, bytes, length);
	sink->used += length;
}

void sink_puts(struct sink *sink, const char *string)
{
	sink_write(sink, string, strlen(string));
}

void sink_printf(struct sink *sink, const char *format, ...)
{
	char small[512], *large = NULL;
	va_list arguments;
	int length;

	if (sink_failed(sink))
		return;
	va_start(arguments, format);
	length = vsnprintf(small, sizeof small, format, arguments);
	va_end(arguments);
	if (length >= (int)sizeof small) {
		va_start(arguments, format);
		length = vasprintf(&large, format, arguments);
		va_end(arguments);
		if (length < 0)
			large = NULL;
	}
	if (length < 0)
		fail(&sink->error, ERR_MEMORY, "writing %s", sink->name);
	else
		sink_write(sink, large ? large : small, (size_t)length);
	free(large);
}

uint64_t sink_bytes(const struct sink *sink)
{
	return sink->bytes;
}

bool sink_failed(const struct sink *sink)
{
	return sink->error.code != ERR_NONE;
}

/* Hands the kept failure to ERR. */
static int report_failure(const struct sink *sink, struct error *err)
{
	if (!sink_failed(sink))
		return 0;
	if (err)
		*err = sink->error;
	return -1;
}

int sink_flush(struct sink *sink, struct error *err)
{
	if (!sink_failed(sink))
		push_buffer(sink);
	return report_failure(sink, err);
}

/* Gives a nameless file its final name when that is free, else one beside it. */
static int link_nameless(struct sink *sink, bool *in_place, struct error *err)
{
	char from[64];
	int fd;

	snprintf(from, sizeof from, "/proc/self/fd/%d", sink->fd);
	*in_place = !sink->force && linkat(AT_FDCWD, from, AT_FDCWD, sink->path, AT_SYMLINK_FOLLOW) == 0;
	if (*in_place)
		return 0;
	if (name_temporary(sink, err) < 0)
		return -1;
	/* mkostemp() finds a free name; the link takes its place. */
	/* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): name_temporary has made it */
	fd = mkostemp(sink->temporary, O_CLOEXEC);
	if (fd < 0)
		return write_error(sink, err);
	close(fd);
	unlink(sink->temporary);
	return linkat(AT_FDCWD, from, AT_FDCWD, sink->temporary, AT_SYMLINK_FOLLOW) < 0 ? write_error(sink, err) : 0;
}

/* Puts the file in its place. What lies there now may have come after sink_open_path(): look again. */
static int put_in_place(struct sink *sink, struct error *err)
{
	bool in_place = false;

	if (!sink->temporary && (link_nameless(sink, &in_place, err) < 0 || in_place))
		return in_place ? 0 : -1;
	if (!sink->force && renameat2(AT_FDCWD, sink->temporary, AT_FDCWD, sink->path, RENAME_NOREPLACE) == 0)
		return 0;
	if (!sink->force && access(sink->path, F_OK) == 0 && !sink_is_ours(sink->path))
		return exists_error(sink->name, err);
	return rename(sink->temporary, sink->path) < 0 ? write_error(sink, err) : 0;
}

static int close_file(struct sink *sink, struct error *err)
{
	int fd = sink->fd;

	sink->fd = -1;
	return close(fd) < 0 && errno != EINTR ? write_error(sink, err) : 0;
}

int sink_commit(struct sink *sink, struct error *err)
{
	int result = sink_flush(sink, err);

	/* Some file systems cannot sync: that is no loss of data yet (EINVAL, ENOSYS). */
	if (result == 0 && sink->pending && fsync(sink->fd) < 0 && errno != EINVAL && errno != ENOSYS)
		result = write_error(sink, err);
	if (result == 0 && sink->pending)
		result = put_in_place(sink, err);
	if (result == 0 && sink->own_fd && close_file(sink, err) < 0)
		result = -1;
	else if (result < 0 && sink->temporary)
		unlink(sink->temporary);
	sink_free(sink);
	return result;
}

void sink_discard(struct sink *sink)
{
	if (!sink)
		return;
	if (sink->temporary)
		unlink(sink->temporary);
	sink_free(sink);
}
