/*
 * posix_spawn, a pipe on which the program says that it has begun, a socket by which it gets this process's memory to read, two memory files for what it writes. In a process group of its own, so that a Ctrl-C
 * in the terminal is this program's alone to handle.
 */
#include "profiler/child.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "abi/inside.h"

#ifndef CHILD_END_MS /* tests are less patient */
#define CHILD_END_MS 60000
#endif

enum { BEGIN_MS = 30000, END_MS = CHILD_END_MS, LONGEST_MS = 600000, PAUSE_MS = 2, PATH_BYTES = 4096, READY_FD = 3, INSIDE_FD = 4, FIRST_FD = 10 };

extern char **environ;

enum { OF_PIDFD = 3 }; /* P_PIDFD, newer than some build machines' headers */

static const char own_address; /* any address of this library's */

static int refuse(char *error, const char *what, int number)
{
	snprintf(error, PROFILER_ERROR_BYTES, "%.1000s%s%s", what, number ? ": " : "", number ? strerror(number) : "");
	return -1;
}

/* ---- where it is ---- */

static bool is_program(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 && S_ISREG(status.st_mode) && access(path, X_OK) == 0;
}

static bool beside(const char *folder, const char *name, char *path)
{
	return snprintf(path, PATH_BYTES, "%s%s", folder, name) < PATH_BYTES && is_program(path);
}

static bool in_path(char *path)
{
	const char *list = getenv("PATH");

	for (; list && *list; list += strcspn(list, ":"), list += *list == ':')
		if (*list == '/' && snprintf(path, PATH_BYTES, "%.*s/inferscope", (int)strcspn(list, ":"), list) < PATH_BYTES && is_program(path))
			return true;
	return false;
}

static bool program_find(char *path)
{
	const char *given = getenv("INFERSCOPE_PROGRAM");
	char folder[PATH_BYTES];
	Dl_info here;
	char *slash;

	if (given && *given)
		return beside(given, "", path);
	if (dladdr(&own_address, &here) && here.dli_fname && snprintf(folder, sizeof folder, "%s", here.dli_fname) < (int)sizeof folder && (slash = strrchr(folder, '/'))) {
		*slash = '\0';
		if (beside(folder, "/inferscope", path) || beside(folder, "/../bin/inferscope", path))
			return true;
	}
	return in_path(path);
}

/* ---- starting it ---- */

/* Measuring is not this process's to turn off for the program. */
static char **environment(void)
{
	size_t count = 0, kept = 0;
	char **copy;

	while (environ && environ[count])
		count++;
	copy = calloc(count + 1, sizeof *copy);
	for (size_t i = 0; copy && i < count; i++)
		if (strncmp(environ[i], "INFERSCOPE_ENABLED=", 19) != 0)
			copy[kept++] = environ[i];
	return copy;
}

/* Descriptors that would go along: the program has no use for them, and a socket must close when we close it. One that is gone meanwhile is no failure. */
static void close_others(posix_spawn_file_actions_t *actions)
{
	DIR *folder = opendir("/proc/self/fd");
	const struct dirent *entry;

	while (folder && (entry = readdir(folder))) {
		int fd = atoi(entry->d_name), flags = fd > INSIDE_FD ? fcntl(fd, F_GETFD) : -1;

		if (flags >= 0 && !(flags & FD_CLOEXEC))
			posix_spawn_file_actions_addclose(actions, fd);
	}
	if (folder)
		closedir(folder);
}

static int spawn(struct child *child, const char *path, char *const words[], int ready, int inside)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	char **variables = environment();
	sigset_t signals;
	int failed;

	if (!variables)
		return ENOMEM;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, child->out, STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&actions, child->err, STDERR_FILENO);
	posix_spawn_file_actions_adddup2(&actions, ready, READY_FD);
	if (inside >= 0)
		posix_spawn_file_actions_adddup2(&actions, inside, INSIDE_FD);
	close_others(&actions);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	sigemptyset(&signals);
	posix_spawnattr_setsigmask(&attributes, &signals);
	sigfillset(&signals);
	posix_spawnattr_setsigdefault(&attributes, &signals);
	failed = posix_spawn(&child->pid, path, &actions, &attributes, words, variables);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	free(variables);
	return failed;
}

/* Out of the way of what the child's first descriptors become. */
static int high(int fd)
{
	int moved = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, FIRST_FD) : -1;

	if (fd >= 0)
		close(fd);
	return moved;
}

static int pipe_open(int ends[2])
{
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	ends[0] = high(ends[0]);
	ends[1] = high(ends[1]);
	return ends[0] < 0 || ends[1] < 0 ? -1 : 0;
}

/* A descriptor of this process's memory, on its way through a socket: the program needs no right to trace us then. */
static int memory_send(int fd, int memory)
{
	const struct inside_message hello = { .kind = INSIDE_HELLO };
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof memory)];
	} control = { .room = { 0 } };
	struct iovec part = { (void *)(uintptr_t)&hello, sizeof hello };
	struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control };
	struct cmsghdr *first = CMSG_FIRSTHDR(&header);

	first->cmsg_level = SOL_SOCKET;
	first->cmsg_type = SCM_RIGHTS;
	first->cmsg_len = CMSG_LEN(sizeof memory);
	memcpy(CMSG_DATA(first), &memory, sizeof memory);
	return sendmsg(fd, &header, MSG_NOSIGNAL) == (ssize_t)sizeof hello ? 0 : -1;
}

/* The program's end of it; -1: it has to do without, as any attach. */
static int memory_give(void)
{
	int ends[2], result = -1, memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);

	if (memory < 0)
		return -1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0) {
		result = memory_send(ends[0], memory);
		close(ends[0]);
		ends[1] = high(ends[1]);
		if (result == 0)
			result = ends[1];
		else if (ends[1] >= 0)
			close(ends[1]);
	}
	close(memory);
	return result;
}

static void close_all(const int *descriptors, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (descriptors[i] >= 0)
			close(descriptors[i]);
}

/* ---- its end ---- */

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/*
 * The host may collect its children itself (SIGCHLD ignored, a wait for any of them): then the pid is soon another process's, to which we may send nothing, and for which we may not wait either. A descriptor means the
 * child alone, if that was not collected when it was opened. Without one (a kernel before 5.3, or the host at its limit) only what nobody has collected is signalled.
 */
static int collect(const struct child *child, siginfo_t *info, int options)
{
	int result;

	info->si_pid = 0;
	if (child->process < 0 && child->pid <= 0)
		return -1;
	while ((result = child->process >= 0 ? waitid((idtype_t)OF_PIDFD, (id_t)child->process, info, options) : waitid(P_PID, (id_t)child->pid, info, options)) < 0 && errno == EINTR)
		;
	return result;
}

static void process_open(struct child *child)
{
	siginfo_t info;

	child->process = (int)syscall(SYS_pidfd_open, child->pid, 0);
	if (waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0)
		child->pid = 0; /* it has ended, and been collected: the number is anybody's */
	if (child->process >= 0 && (child->pid == 0 || collect(child, &info, WEXITED | WNOHANG | WNOWAIT) < 0)) { /* Linux 5.3 cannot wait by it */
		close(child->process);
		child->process = -1;
	}
}

static void child_signal(const struct child *child, int number)
{
	siginfo_t info;

	if (child->process >= 0)
		syscall(SYS_pidfd_send_signal, child->process, number, NULL, 0);
	else if (collect(child, &info, WEXITED | WNOHANG | WNOWAIT) == 0)
		kill(child->pid, number);
}

/* CPU time that it has used; 0: not known. */
static unsigned long long used_ticks(const struct child *child)
{
	unsigned long long user = 0, system = 0;
	char path[32], text[1024];
	ssize_t length;
	int fd;

	snprintf(path, sizeof path, "/proc/%d/stat", (int)child->pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	length = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	close_all(&fd, 1);
	text[length > 0 ? length : 0] = '\0';
	if (!strrchr(text, ')') || sscanf(strrchr(text, ')') + 1, " %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu %llu", &user, &system) != 2)
		return 0;
	return user + system;
}

/* Its wait status; 0 where the host collects its children itself; -1: it did not end in time, and was ended. It has LIMIT_MS, and that again as often as it has used CPU time
 * meanwhile, up to LONGEST_MS: what it has to analyse may be much. */
static int end_wait(const struct child *child, int limit_ms, int longest_ms)
{
	uint64_t begun_ms = now_ms(), until_ms = begun_ms + (uint64_t)limit_ms;
	unsigned long long used = used_ticks(child), before;
	siginfo_t info;
	int failed;

	while ((failed = collect(child, &info, WEXITED | WNOHANG)) == 0 && info.si_pid == 0) {
		if (now_ms() > until_ms) {
			before = used;
			used = used_ticks(child);
			if (used == before || now_ms() > begun_ms + (uint64_t)longest_ms) {
				child_signal(child, SIGKILL);
				collect(child, &info, WEXITED);
				return -1;
			}
			until_ms = now_ms() + (uint64_t)limit_ms;
		}
		nanosleep(&(struct timespec){ 0, PAUSE_MS * 1000000 }, NULL);
	}
	return failed ? 0 : info.si_code == CLD_EXITED ? W_EXITCODE(info.si_status, 0) : W_EXITCODE(0, info.si_status);
}

static char *text_of(int fd)
{
	off_t size = lseek(fd, 0, SEEK_END), at = 0;
	char *text = size < 0 ? NULL : calloc((size_t)size + 1, 1);
	ssize_t got;

	while (text && at < size && (got = pread(fd, text + at, (size_t)(size - at), at)) > 0)
		at += got;
	return text;
}

static void release(struct child *child)
{
	prctl(PR_SET_PTRACER, 0, 0, 0, 0);
	child_forget(child);
}

static void lines_cut(char *text, int lines)
{
	char *end = text;

	while (*end && (*end != '\n' || --lines > 0))
		end++;
	while (end > text && end[-1] == '\n')
		end--;
	*end = '\0';
}

/* What the program said, without its name: why, and on the second line what to do. */
static int failure_tell(const struct child *child, char *error)
{
	char *text = text_of(child->err);
	const char *said = text ? text : "";

	if (strncmp(said, "inferscope: ", 12) == 0)
		said += 12;
	snprintf(error, PROFILER_ERROR_BYTES, "%s", *said ? said : "the program ended without a word");
	lines_cut(error, 2);
	free(text);
	return -1;
}

static int begin_wait(const struct child *child, int ready, char *error)
{
	struct pollfd wanted = { .fd = ready, .events = POLLIN };
	uint64_t until_ms = now_ms() + BEGIN_MS;
	char byte;

	for (;;) {
		uint64_t now = now_ms();
		int count = poll(&wanted, 1, now < until_ms ? (int)(until_ms - now) : 0);

		if (count < 0 && errno == EINTR)
			continue;
		if (count > 0 && read(ready, &byte, 1) == 1)
			return 0;
		end_wait(child, count > 0 ? END_MS : 0, 0);
		return count > 0 ? failure_tell(child, error) : refuse(error, "measuring did not begin within 30 s", 0);
	}
}

/* ---- for the state ---- */

int child_start(struct child *child, unsigned rate_hz, char *error)
{
	char path[PATH_BYTES], pid[16], rate[16], inside_fd[16];
	int ready[2] = { -1, -1 }, inside, failed, result = -1;
	char *const words[] = { path, "attach", pid, "-d", "0", "--hook", "none", "--rate", rate, "--counters", "-f", "profile", "-o", "-", "--trace", "none", "--log-level", "error",
	                        "--error-format", "text", "--ready-fd", "3", "--inside-fd", inside_fd, NULL };

	if (!program_find(path))
		return refuse(error, "the program inferscope is not found: install it, or name it in INFERSCOPE_PROGRAM", 0);
	snprintf(pid, sizeof pid, "%d", (int)getpid());
	snprintf(rate, sizeof rate, "%u", rate_hz);
	*child = (struct child){ -1, -1, high(memfd_create("inferscope-profile", MFD_CLOEXEC)), high(memfd_create("inferscope-summary", MFD_CLOEXEC)) };
	if (child->out < 0 || child->err < 0 || pipe_open(ready) < 0) {
		refuse(error, "profiling needs descriptors and memory", errno);
		goto out;
	}
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); /* until its pid is known */
	inside = memory_give();
	snprintf(inside_fd, sizeof inside_fd, "%d", inside < 0 ? 0 : INSIDE_FD);
	failed = spawn(child, path, words, ready[1], inside);
	close_all(&inside, 1);
	if (failed) {
		refuse(error, path, failed);
		goto out;
	}
	process_open(child);
	prctl(PR_SET_PTRACER, child->pid, 0, 0, 0);
	close(ready[1]);
	ready[1] = -1;
	result = begin_wait(child, ready[0], error);
out:
	close_all(ready, 2);
	if (result < 0)
		release(child);
	return result;
}

/* A gate of the user's settings (fail-on, strict) is no failure: they were made for the command. */
static bool is_result(int status)
{
	return status == 0 || status == 1 || status == 10;
}

int child_stop(struct child *child, char **out, char **err, char *error)
{
	int status, result = -1;
	char *written, *said;

	child_signal(child, SIGINT);
	status = end_wait(child, END_MS, LONGEST_MS);
	if (status == -1) {
		refuse(error, "the program did not end in time", 0);
	} else if (!WIFEXITED(status) || !is_result(WEXITSTATUS(status))) {
		failure_tell(child, error);
	} else {
		written = text_of(child->out);
		said = text_of(child->err);
		if (written && said) {
			*out = written;
			*err = said;
			result = 0;
		} else {
			free(written);
			free(said);
			refuse(error, "out of memory", 0);
		}
	}
	release(child);
	return result;
}

void child_abandon(struct child *child)
{
	child_signal(child, SIGKILL);
	end_wait(child, END_MS, 0);
	release(child);
}

void child_forget(struct child *child)
{
	close_all((const int[]){ child->process, child->out, child->err }, 3);
	*child = (struct child){ -1, -1, -1, -1 };
}
