/* Parsing /proc of other processes. Names there may hold any byte, so that numbers are looked for after the last ')' and by key. */
#include "base/procfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/list.h"

#define NS_PER_SECOND 1000000000ull

const struct procfs procfs_real = { "/proc" };

ssize_t procfs_read(const struct procfs *procfs, pid_t pid, const char *name, char *buffer, size_t size)
{
	char path[PATH_MAX];
	size_t length = 0;
	ssize_t got;
	int fd, saved;

	if (size == 0 || snprintf(path, sizeof path, "%s/%d/%s", procfs->root, (int)pid, name) >= (int)sizeof path) {
		errno = EINVAL;
		return -1;
	}
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	while (length < size - 1) {
		got = read(fd, buffer + length, size - 1 - length);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			saved = errno;
			close(fd);
			errno = saved;
			return -1;
		}
		if (got == 0)
			break;
		length += (size_t)got;
	}
	close(fd);
	buffer[length] = '\0';
	return (ssize_t)length;
}

static ssize_t read_of(const struct procfs *procfs, pid_t pid, pid_t tid, const char *name, char *buffer, size_t size)
{
	char relative[64];

	if (tid)
		snprintf(relative, sizeof relative, "task/%d/%s", (int)tid, name);
	else
		snprintf(relative, sizeof relative, "%s", name);
	return procfs_read(procfs, pid, relative, buffer, size);
}

/* The rest of the line that begins with KEY and a colon, or NULL. */
static const char *line_of(const char *text, const char *key)
{
	size_t length = strlen(key);
	const char *line = text;

	while (line) {
		if (strncmp(line, key, length) == 0 && line[length] == ':')
			return line + length + 1 + strspn(line + length + 1, " \t");
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	return NULL;
}

static uint64_t number_of(const char *text, const char *key, int base, uint64_t fallback)
{
	const char *line = line_of(text, key);
	uint64_t number;
	char *end;

	if (!line)
		return fallback;
	errno = 0;
	number = strtoull(line, &end, base);
	return end == line || errno ? fallback : number;
}

/* The numbers of a line like "Uid:", into at most COUNT places. Returns how many the line has. */
static uint32_t numbers_of(const char *text, const char *key, uint32_t *out, uint32_t count)
{
	const char *line = line_of(text, key);
	unsigned long number;
	uint32_t found = 0;
	char *end;

	while (line && *line != '\n' && *line != '\0') {
		number = strtoul(line, &end, 10);
		if (end == line)
			break;
		if (found < count)
			out[found] = (uint32_t)number;
		found++;
		line = end + strspn(end, " \t");
	}
	return found;
}

static int parse_status(const char *text, struct proc_status *out)
{
	const char *name = line_of(text, "Name"), *state = line_of(text, "State");
	uint32_t ids[3] = { 0 }, pids[32] = { 0 }, count;
	size_t length;

	if (!name || !state || numbers_of(text, "Uid", ids, 3) < 3) {
		errno = EBADMSG;
		return -1;
	}
	memset(out, 0, sizeof *out);
	length = strcspn(name, "\n");
	if (length >= sizeof out->name)
		length = sizeof out->name - 1;
	memcpy(out->name, name, length);
	out->state = *state;
	out->uid_real = ids[0];
	out->uid_effective = ids[1];
	out->uid_saved = ids[2];
	numbers_of(text, "Gid", ids, 3);
	out->gid_real = ids[0];
	out->gid_effective = ids[1];
	out->gid_saved = ids[2];
	count = numbers_of(text, "NSpid", pids, 32);
	out->ns_depth = count;
	out->inner_pid = count && count <= 32 ? (pid_t)pids[count - 1] : 0;
	out->parent = (pid_t)number_of(text, "PPid", 10, 0);
	out->tracer = (pid_t)number_of(text, "TracerPid", 10, 0);
	out->thread_group = (pid_t)number_of(text, "Tgid", 10, 0);
	out->signals_blocked = number_of(text, "SigBlk", 16, 0);
	out->signals_caught = number_of(text, "SigCgt", 16, 0);
	out->cap_permitted = number_of(text, "CapPrm", 16, 0);
	out->cap_effective = number_of(text, "CapEff", 16, 0);
	out->threads = (uint32_t)number_of(text, "Threads", 10, 0);
	out->seccomp = line_of(text, "Seccomp") ? (int)number_of(text, "Seccomp", 10, 0) : -1;
	out->no_new_privs = number_of(text, "NoNewPrivs", 10, 0) != 0;
	out->vm_size_kb = number_of(text, "VmSize", 10, 0);
	out->vm_locked_kb = number_of(text, "VmLck", 10, 0);
	return 0;
}

int procfs_status_text(const struct procfs *procfs, pid_t pid, pid_t tid, struct procfs_text *out)
{
	enum { LONGEST = 1 << 20 };
	ssize_t length = read_of(procfs, pid, tid, "status", out->here, sizeof out->here);

	out->text = out->here;
	out->longer = NULL;
	if (length < (ssize_t)sizeof out->here - 1)
		return length < 0 ? -1 : 0;
	out->longer = malloc(LONGEST);
	if (!out->longer)
		return -1;
	out->text = out->longer;
	if (read_of(procfs, pid, tid, "status", out->longer, LONGEST) >= 0)
		return 0;
	procfs_text_done(out);
	return -1;
}

void procfs_text_done(struct procfs_text *text)
{
	int saved = errno;

	free(text->longer);
	text->longer = NULL;
	errno = saved;
}

int procfs_status(const struct procfs *procfs, pid_t pid, pid_t tid, struct proc_status *out)
{
	struct procfs_text text;
	int result;

	if (procfs_status_text(procfs, pid, tid, &text) < 0)
		return -1;
	result = parse_status(text.text, out);
	procfs_text_done(&text);
	return result;
}

int procfs_times(const struct procfs *procfs, pid_t pid, pid_t tid, struct proc_times *out)
{
	uint64_t user, system, minor, major, start, tick = (uint64_t)sysconf(_SC_CLK_TCK);
	char text[2048], state, *after;
	long threads, rss;
	int processor = -1;
	unsigned flags;

	if (read_of(procfs, pid, tid, "stat", text, sizeof text) < 0)
		return -1;
	after = strrchr(text, ')'); /* the name may hold parentheses and spaces */
	if (!after || sscanf(after + 1, " %c %*d %*d %*d %*d %*d %u %" SCNu64 " %*u %" SCNu64 " %*u %" SCNu64 " %" SCNu64
				       " %*d %*d %*d %*d %ld %*d %" SCNu64 " %*u %ld %*s %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*d %d",
				       &state, &flags, &minor, &major, &user, &system, &threads, &start, &rss, &processor) < 9) {
		errno = EBADMSG;
		return -1;
	}
	*out = (struct proc_times){
		.state = state,
		.user_ns = user * (NS_PER_SECOND / tick),
		.system_ns = system * (NS_PER_SECOND / tick),
		.start_ticks = start,
		.minor_faults = minor,
		.major_faults = major,
		.rss_bytes = rss > 0 ? (uint64_t)rss * (uint64_t)sysconf(_SC_PAGESIZE) : 0,
		.threads = threads > 0 ? (uint32_t)threads : 0,
		.flags = flags,
		.processor = processor,
	};
	return 0;
}

uint64_t procfs_now_ticks(void)
{
	uint64_t tick = (uint64_t)sysconf(_SC_CLK_TCK);
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (uint64_t)now.tv_sec * tick + (uint64_t)now.tv_nsec / (NS_PER_SECOND / tick);
}

int procfs_schedstat(const struct procfs *procfs, pid_t pid, pid_t tid, uint64_t *run_ns, uint64_t *wait_ns)
{
	uint64_t run, wait;
	char text[128];

	if (read_of(procfs, pid, tid, "schedstat", text, sizeof text) < 0)
		return -1;
	if (sscanf(text, "%" SCNu64 " %" SCNu64, &run, &wait) != 2) {
		errno = EBADMSG;
		return -1;
	}
	*run_ns = run;
	*wait_ns = wait;
	return 0;
}

/* The number that a folder's name is, or 0. */
static pid_t pid_of_name(const char *name)
{
	unsigned long number;
	char *end;

	if (*name < '1' || *name > '9')
		return 0;
	number = strtoul(name, &end, 10);
	return *end == '\0' && number <= INT_MAX ? (pid_t)number : 0;
}

/* "running", "-1 sp pc" (blocked, but in no call), or "number arg0 … arg5 sp pc" */
enum proc_call_state procfs_call_parse(const char *line, struct proc_call *out)
{
	uint64_t *const rest[] = { &out->args[0], &out->args[1], &out->args[2], &out->args[3], &out->args[4], &out->args[5], &out->sp, &out->pc };
	char *end;

	*out = (struct proc_call){ .number = -1 };
	if (strncmp(line, "running", 7) == 0)
		return PROC_CALL_RUNNING;
	out->number = strtoll(line, &end, 10);
	if (end == line || out->number < 0)
		out->number = -1;
	if (end == line)
		return PROC_CALL_MALFORMED;
	for (size_t i = out->number < 0 ? 6 : 0; i < sizeof rest / sizeof *rest; i++) {
		const char *at = end;

		*rest[i] = strtoull(at, &end, 16);
		if (end == at)
			return PROC_CALL_MALFORMED;
	}
	return PROC_CALL_BLOCKED;
}

int procfs_call(const struct procfs *procfs, pid_t pid, pid_t tid, enum proc_call_state *state, struct proc_call *out)
{
	char name[48], line[256];

	snprintf(name, sizeof name, "task/%d/syscall", (int)tid);
	if (procfs_read(procfs, pid, name, line, sizeof line) < 0)
		return -1;
	*state = procfs_call_parse(line, out);
	return 0;
}

/* Calls TAKE with each thread id of PID until it says that this is enough. 0, or -1 with errno. */
static int threads_each(const struct procfs *procfs, pid_t pid, bool (*take)(void *context, pid_t tid), void *context)
{
	char path[PATH_MAX];
	struct dirent *entry;
	pid_t tid;
	DIR *folder;
	int error;

	if (snprintf(path, sizeof path, "%s/%d/task", procfs->root, (int)pid) >= (int)sizeof path) {
		errno = EINVAL;
		return -1;
	}
	folder = opendir(path);
	if (!folder)
		return -1;
	while (errno = 0, (entry = readdir(folder))) {
		tid = pid_of_name(entry->d_name);
		if (tid && !take(context, tid))
			break;
	}
	error = errno;
	closedir(folder);
	errno = error;
	return error ? -1 : 0;
}

struct tids_room { pid_t *tids; size_t count, found; };

static bool tid_store(void *context, pid_t tid)
{
	struct tids_room *room = context;

	if (room->found < room->count)
		room->tids[room->found] = tid;
	room->found++;
	return true;
}

ssize_t procfs_threads(const struct procfs *procfs, pid_t pid, pid_t *tids, size_t count)
{
	struct tids_room room = { tids, count, 0 };

	return threads_each(procfs, pid, tid_store, &room) < 0 ? -1 : (ssize_t)room.found;
}

struct tids_list { LIST(pid_t) tids; size_t most; bool failed; };

static bool tid_add(void *context, pid_t tid)
{
	struct tids_list *list = context;
	pid_t *place = list_add_or_fail(&list->tids, list->most, &list->failed);

	if (place)
		*place = tid;
	return place;
}

static int tid_compare(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return x < y ? -1 : x > y;
}

ssize_t procfs_threads_all(const struct procfs *procfs, pid_t pid, size_t most, pid_t **out)
{
	struct tids_list list = { .most = most };
	int result = threads_each(procfs, pid, tid_add, &list), error = list.failed ? ENOMEM : errno;

	if (result < 0 || list.failed) {
		list_done(&list.tids);
		errno = error;
		return -1;
	}
	if (list.tids.count)
		qsort(list.tids.items, list.tids.count, sizeof *list.tids.items, tid_compare);
	*out = list.tids.items;
	return (ssize_t)list.tids.count;
}
