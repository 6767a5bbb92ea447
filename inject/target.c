/* struct target: one process as the preflight found it, its findings, its memory and symbols. */
#include "inject/target.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "inject/memory.h"

#define THREADS_SPARE 64
#define LIST_LOOKS 3

static __attribute__((format(printf, 3, 0))) struct finding *finding_add(struct target *target, const char *check, const char *format,
                                                                         va_list arguments)
{
	struct finding *finding;

	if (target->finding_count == MAX_FINDINGS)
		return NULL;
	finding = &target->findings[target->finding_count++];
	finding->check = check;
	vsnprintf(finding->text, sizeof finding->text, format, arguments);
	return finding;
}

void target_note(struct target *target, const char *check, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	finding_add(target, check, format, arguments);
	va_end(arguments);
}

void target_warn(struct target *target, const char *check, const char *format, ...)
{
	struct finding *finding;
	va_list arguments;

	va_start(arguments, format);
	finding = finding_add(target, check, format, arguments);
	va_end(arguments);
	if (finding)
		finding->warning = true;
}

int target_refuse(struct target *target, enum error_code code, const char *check, const char *hint, const char *format, ...)
{
	struct error general = { .code = code };
	struct finding *finding;
	va_list arguments;

	va_start(arguments, format);
	finding = finding_add(target, check, format, arguments);
	va_end(arguments);
	if (finding) {
		finding->code = code;
		snprintf(finding->hint, sizeof finding->hint, "%s", hint ? hint : error_hint(&general));
	}
	return -1;
}

/* The first refusal, as an error. */
static int refusal(const struct target *target, struct error *err)
{
	for (size_t i = 0; i < target->finding_count; i++) {
		const struct finding *finding = &target->findings[i];

		if (finding->code == ERR_NONE)
			continue;
		fail(err, finding->code, "cannot attach to %d: %s", (int)target->pid, finding->text);
		return fail_hint(err, "%s", finding->hint);
	}
	return fail(err, ERR_INTERNAL, "cannot attach to %d", (int)target->pid);
}

int target_open_memory(struct target *target)
{
	char path[512];

	if (target->memory_fd > 0)
		return 0;
	snprintf(path, sizeof path, "%s/%d/mem", target->procfs.root, (int)target->pid);
	target->memory_fd = open(path, O_RDWR | O_CLOEXEC);
	return target->memory_fd < 0 ? -1 : 0;
}

static int preflight(struct target *target)
{
	int opened;

	if (preflight_process(target) < 0)
		return -1;
	opened = target->memory.fd > 0 ? 0 : target_open_memory(target);
	if (opened < 0 && errno == ESRCH)
		return target_refuse(target, ERR_ZOMBIE, "state", NULL, "it is ending, and has no memory any more");
	/* Why else it is closed to us, the next one knows. */
	if (preflight_permission(target) < 0 || preflight_surroundings(target) < 0 || preflight_images(target) < 0)
		return -1;
	return preflight_room(target);
}

int target_open(pid_t pid, const struct inject_options *options, struct target **out, struct error *err)
{
	struct target *target = calloc(1, sizeof *target);
	enum error_code code;

	*out = NULL;
	if (!target)
		return fail(err, ERR_MEMORY, "looking at process %d", (int)pid);
	target->pid = pid;
	target->memory = (struct memory){ pid, options ? options->memory_fd : 0, &target->memory_trouble };
	target->procfs = options && options->procfs ? *options->procfs : procfs_real;
	target->unverified = options && options->unverified;
	target->look_only = options && options->look_only;
	target->facts.pid = pid;
	target->facts.python_major = target->facts.python_minor = target->facts.python_micro = -1;
	if (preflight(target) == 0) {
		*out = target;
		return 0;
	}
	refusal(target, err);
	code = target->findings[target->finding_count - 1].code;
	if (code == ERR_NO_PROCESS) {
		target_close(target);
		return -1;
	}
	*out = target;
	/* Whatever it looked like from here: a process that has ended refuses everything. */
	return code == ERR_ZOMBIE || !target->facts.start_ticks || target_alive(target) ? -1 : target_gone(target, err);
}

void target_close(struct target *target)
{
	if (!target)
		return;
	maps_done(&target->maps);
	if (target->memory_fd > 0)
		close(target->memory_fd);
	free(target);
}

const struct target_facts *target_facts(const struct target *target)
{
	return &target->facts;
}

size_t target_finding_count(const struct target *target)
{
	return target->finding_count;
}

const struct finding *target_finding(const struct target *target, size_t index)
{
	return index < target->finding_count ? &target->findings[index] : NULL;
}

/* The kernel reads nothing there once its memory is given back, and EIO where nothing is mapped (Linux 4.19 to 6.18). */
static bool memory_gone(const struct target *target)
{
	char byte;

	return target->memory_fd > 0 && pread(target->memory_fd, &byte, 1, (off_t)target->facts.python_base) == 0;
}

bool target_alive(const struct target *target)
{
	struct proc_times times;

	if (procfs_times(&target->procfs, target->pid, 0, &times) < 0)
		return errno != ENOENT && errno != ESRCH; /* nobody can tell */
	return times.state != 'Z' && times.state != 'X' && times.start_ticks == target->facts.start_ticks && !memory_gone(target);
}

int target_unread(const struct target *target, struct error *err)
{
	int trouble = __atomic_load_n(&target->memory_trouble, __ATOMIC_RELAXED);

	if (!trouble)
		return 0;
	return fail(err, error_of(trouble, ERR_INJECT), "the memory of process %d could not be read (%s)", (int)target->pid, strerror(trouble));
}

/* A process that is ending has no memory any more, and so no program. */
int target_gone(const struct target *target, struct error *err)
{
	char path[512], byte;

	snprintf(path, sizeof path, "%s/%d/exe", target->procfs.root, (int)target->pid);
	if (memory_gone(target) && readlink(path, &byte, 1) > 0)
		return fail(err, ERR_EXITED, "process %d has replaced itself (exec)", (int)target->pid);
	if (target_alive(target))
		return fail(err, ERR_INJECT, "cannot attach to %d: its memory could not be read", (int)target->pid);
	return fail(err, ERR_EXITED, "process %d has ended", (int)target->pid);
}

/* Ids of all its threads, in a list as long as that takes, which is the caller's to free. -1 with errno. */
static ssize_t threads_list(const struct target *target, pid_t **out)
{
	ssize_t count = procfs_threads(&target->procfs, target->pid, NULL, 0);

	while (count >= 0) {
		size_t room = (size_t)count + (size_t)count / 4 + THREADS_SPARE;
		pid_t *tids = malloc(room * sizeof *tids);

		if (!tids)
			return -1;
		count = procfs_threads(&target->procfs, target->pid, tids, room);
		if (count >= 0 && (size_t)count <= room) {
			*out = tids;
			return count;
		}
		free(tids); /* more have come meanwhile */
	}
	return -1;
}

int target_find_thread(const struct target *target, pid_t inner_tid, pid_t *outer, struct proc_status *status)
{
	/*
	 * The kernel passes over others when a thread ends at which it stands in its list (next_tid() and first_tid() of fs/proc/base.c, 6.18):
	 * a list of which one has ended by now may lack the thread that is looked for.
	 */
	for (int look = 0, ended = 1; look < LIST_LOOKS && ended; look++) {
		pid_t *tids, tid = 0;
		int trouble = 0;
		ssize_t count = threads_list(target, &tids);

		if (count < 0)
			return errno == ENOENT || errno == ESRCH ? 0 : -1;
		ended = 0;
		/* The newest stand last, and ours are among them. */
		while (count > 0 && !tid) {
			if (procfs_status(&target->procfs, target->pid, tids[--count], status) == 0)
				tid = status->inner_pid == inner_tid ? tids[count] : 0;
			else if (errno == ENOENT || errno == ESRCH)
				ended = 1;
			else
				trouble = errno;
		}
		free(tids);
		if (tid) {
			*outer = tid;
			return 1;
		}
		if (trouble) {
			errno = trouble;
			return -1;
		}
	}
	return 0;
}

pid_t target_outer_tid(struct target *target, pid_t inner_tid)
{
	struct proc_status status;
	pid_t outer = 0;
	int found;

	if (target->status.ns_depth > 1) {
		found = target_find_thread(target, inner_tid, &outer, &status);
		return found < 0 ? -1 : found ? outer : 0;
	}
	if (procfs_status(&target->procfs, target->pid, inner_tid, &status) == 0)
		return inner_tid;
	return errno == ENOENT || errno == ESRCH ? 0 : -1;
}

remote_addr target_symbol(struct target *target, const char *name, uint64_t *size)
{
	const struct image *images[] = { &target->python, &target->libc, &target->loader, &target->executable };

	for (size_t i = 0; i < sizeof images / sizeof *images; i++) {
		remote_addr addr = images[i]->base ? image_symbol(images[i], name, size) : 0;

		if (addr)
			return addr;
	}
	return 0;
}

int target_read(const struct target *target, remote_addr addr, void *buffer, size_t size)
{
	return memory_read(&target->memory, addr, buffer, size);
}

size_t target_read_many(const struct target *target, const struct iovec *here, const struct iovec *there, size_t count)
{
	return memory_read_many(&target->memory, here, there, count);
}

int target_write(const struct target *target, remote_addr addr, const void *bytes, size_t size)
{
	ssize_t put;

	if (target->memory_fd <= 0)
		return memory_write(target->pid, addr, bytes, size);
	put = pwrite(target->memory_fd, bytes, size, (off_t)addr);
	if (put >= 0 && put != (ssize_t)size)
		errno = EFAULT;
	return put == (ssize_t)size ? 0 : -1;
}
