#include "session/find.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/text.h"
#include "session/redact.h"

#define KERNEL_THREAD 0x00200000u
enum { DEPTH_MAX = 256, COMMAND_MAX = 65536, MATCH_STEPS_MAX = 1000000 };

struct row {
	pid_t pid, parent;
	bool meant, own;
};
struct rows { struct row *items; size_t count, capacity; };

static int compare_rows(const void *left, const void *right)
{
	pid_t a = ((const struct row *)left)->pid, b = ((const struct row *)right)->pid;

	return a < b ? -1 : a > b;
}

static struct row *row_find(const struct rows *rows, pid_t pid)
{
	const struct row key = { .pid = pid };

	return rows->count ? bsearch(&key, rows->items, rows->count, sizeof key, compare_rows) : NULL;
}

/* Field 4 of stat, behind the last ')'. 0: gone. */
static pid_t parent_of(const struct procfs *procfs, pid_t pid)
{
	char text[1024], *at;

	if (procfs_read(procfs, pid, "stat", text, sizeof text) <= 0 || !(at = strrchr(text, ')')) || strlen(at) < 4)
		return 0;
	return (pid_t)strtol(at + 4, NULL, 10);
}

static int rows_read(const struct procfs *procfs, struct rows *out, struct error *err)
{
	DIR *folder = opendir(procfs->root);
	const struct dirent *entry;

	if (!folder)
		return fail(err, error_of(errno, ERR_PERMISSION), "%s cannot be read: %s", procfs->root, strerror(errno));
	while ((entry = readdir(folder))) {
		char *end;
		long pid = strtol(entry->d_name, &end, 10);
		struct row *row;

		if (!isdigit((unsigned char)*entry->d_name) || *end || pid <= 0)
			continue;
		row = list_add(out, SIZE_MAX);
		if (!row) {
			closedir(folder);
			return fail(err, ERR_MEMORY, "looking for processes");
		}
		row->pid = (pid_t)pid;
		row->parent = parent_of(procfs, row->pid);
	}
	closedir(folder);
	if (out->count)
		qsort(out->items, out->count, sizeof *out->items, compare_rows);
	return 0;
}

/* For people to read: no secrets; the name of what has no arguments. */
static void command_tell(const struct procfs *procfs, pid_t pid, char *out, size_t size)
{
	char arguments[4096];
	ssize_t length = procfs_read(procfs, pid, "cmdline", arguments, sizeof arguments);
	struct proc_status status;
	struct text told;

	text_init(&told);
	if (length > 0)
		redact_arguments(arguments, (size_t)length, &told);
	if (told.data && *told.data)
		snprintf(out, size, "%s", told.data);
	else if (procfs_status(procfs, pid, 0, &status) == 0)
		snprintf(out, size, "%s", status.name);
	text_done(&told);
}

static bool command_fits(const struct procfs *procfs, pid_t pid, const struct pattern *match, char *buffer)
{
	uint64_t steps = MATCH_STEPS_MAX;
	ssize_t length;

	if (!match)
		return false;
	length = procfs_read(procfs, pid, "cmdline", buffer, COMMAND_MAX);
	while (length > 0 && buffer[length - 1] == '\0')
		length--;
	for (ssize_t i = 0; i < length; i++)
		if (buffer[i] == '\0')
			buffer[i] = ' ';
	buffer[length > 0 ? length : 0] = '\0';
	return *buffer && pattern_matches(match, buffer, (size_t)length, &steps);
}

/* "/system.slice" holds "/system.slice/a", not "/system.slice2". */
static bool path_within(const char *path, const char *group)
{
	size_t length = strlen(group);

	while (length && group[length - 1] == '/')
		length--;
	return strncmp(path, group, length) == 0 && (path[length] == '\0' || path[length] == '/');
}

/* "/docker/ID", "docker-ID.scope", "cri-containerd-ID.scope", "libpod-ID": the id stands behind one of these. */
static bool path_names(const char *path, const char *id)
{
	for (const char *at = strstr(path, id); at; at = strstr(at + 1, id))
		if (at > path && strchr("/-:", at[-1]))
			return true;
	return false;
}

static bool cgroup_fits(const struct procfs *procfs, pid_t pid, const struct find_query *query)
{
	char text[8192];

	if ((!query->cgroup && !query->container) || procfs_read(procfs, pid, "cgroup", text, sizeof text) <= 0)
		return false;
	for (char *save = NULL, *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		const char *controllers = strchr(line, ':'), *path = controllers ? strchr(controllers + 1, ':') : NULL;

		if (path && ((query->cgroup && path_within(path + 1, query->cgroup)) || (query->container && path_names(path + 1, query->container))))
			return true;
	}
	return false;
}

static bool is_named(const struct find_query *query, pid_t pid)
{
	for (size_t i = 0; i < query->pid_count; i++)
		if (query->pids[i] == pid)
			return true;
	return false;
}

/* PID itself or one that it descends from has the mark at OFFSET of its row. */
static bool marked_above(const struct rows *rows, pid_t pid, size_t offset)
{
	for (int depth = 0; depth < DEPTH_MAX && pid > 0; depth++) {
		const struct row *row = row_find(rows, pid);

		if (!row)
			return false;
		if (*(const bool *)((const char *)row + offset))
			return true;
		pid = row->parent;
	}
	return false;
}

/* Clock ticks are too coarse to tell a busy process from an idle one in a moment. */
static uint64_t main_thread_ns(const struct procfs *procfs, pid_t pid)
{
	uint64_t run_ns, wait_ns;

	return procfs_schedstat(procfs, pid, 0, &run_ns, &wait_ns) == 0 ? run_ns : 0;
}

static int found_add(const struct procfs *procfs, const struct row *row, bool named, struct found_list *out, struct error *err)
{
	struct proc_times times = { 0 };
	bool there = procfs_times(procfs, row->pid, 0, &times) == 0;
	struct found *found;

	if (!named && (!there || times.state == 'Z' || times.state == 'X' || times.flags & KERNEL_THREAD))
		return 0;
	found = list_add(out, FOUND_MAX);
	if (!found)
		return fail(err, ERR_MEMORY, "looking for processes: more than %d", FOUND_MAX);
	found->pid = row->pid;
	found->named = named;
	if (!there)
		return 0;
	found->parent = row->parent;
	found->start_ticks = times.start_ticks;
	found->cpu_ns = times.user_ns + times.system_ns;
	found->main_ns = main_thread_ns(procfs, row->pid);
	command_tell(procfs, row->pid, found->command, sizeof found->command);
	return 0;
}

static int gone_add(const struct procfs *procfs, const struct rows *rows, const struct find_query *query, struct found_list *out, struct error *err)
{
	for (size_t i = 0; i < query->pid_count; i++) {
		const struct row row = { .pid = query->pids[i] };
		bool again = false;

		for (size_t j = 0; j < i; j++)
			again |= query->pids[j] == query->pids[i];
		if (!again && !row_find(rows, row.pid) && found_add(procfs, &row, true, out, err) < 0)
			return -1;
	}
	return 0;
}

int find_processes(const struct procfs *procfs, const struct find_query *query, struct found_list *out, struct error *err)
{
	char *buffer = malloc(COMMAND_MAX);
	struct rows rows = { 0 };
	int result = -1;

	if (!buffer) {
		fail(err, ERR_MEMORY, "looking for processes");
		goto out;
	}
	if (rows_read(procfs, &rows, err) < 0)
		goto out;
	for (size_t i = 0; i < rows.count; i++) {
		struct row *row = &rows.items[i];

		row->own = row->pid == query->own;
		row->meant = is_named(query, row->pid) || command_fits(procfs, row->pid, query->match, buffer) || cgroup_fits(procfs, row->pid, query);
	}
	for (size_t i = 0; i < rows.count; i++) {
		const struct row *row = &rows.items[i];
		bool named = is_named(query, row->pid);

		if (!named && (marked_above(&rows, row->pid, offsetof(struct row, own)) || !(query->children ? marked_above(&rows, row->pid, offsetof(struct row, meant)) : row->meant)))
			continue;
		if (found_add(procfs, row, named, out, err) < 0)
			goto out;
	}
	result = gone_add(procfs, &rows, query, out, err);
out:
	list_done(&rows);
	free(buffer);
	return result;
}

static int compare_shares(const void *left, const void *right)
{
	const struct found *a = left, *b = right;

	if (a->cpus != b->cpus)
		return a->cpus > b->cpus ? -1 : 1;
	return a->pid < b->pid ? -1 : a->pid > b->pid;
}

void find_shares_since(const struct procfs *procfs, struct found_list *list, uint64_t begin_ns)
{
	uint64_t passed_ns = clock_monotonic_ns() - begin_ns;
	struct proc_times times;

	for (size_t i = 0; i < list->count; i++) {
		struct found *found = &list->items[i];
		uint64_t now_ns, main_ns, used_ns, main_used_ns;

		if (procfs_times(procfs, found->pid, 0, &times) < 0 || times.start_ticks != found->start_ticks)
			continue;
		now_ns = times.user_ns + times.system_ns;
		main_ns = main_thread_ns(procfs, found->pid);
		used_ns = now_ns > found->cpu_ns ? now_ns - found->cpu_ns : 0;
		main_used_ns = main_ns > found->main_ns ? main_ns - found->main_ns : 0;
		found->cpus = passed_ns ? (double)(used_ns > main_used_ns ? used_ns : main_used_ns) / (double)passed_ns : 0;
		found->cpu_ns = now_ns;
		found->main_ns = main_ns;
	}
	if (list->count)
		qsort(list->items, list->count, sizeof *list->items, compare_shares);
}

void find_shares(const struct procfs *procfs, struct found_list *list, uint64_t wait_ns)
{
	uint64_t begin_ns = clock_monotonic_ns();

	nanosleep(&(struct timespec){ (time_t)(wait_ns / 1000000000), (long)(wait_ns % 1000000000) }, NULL);
	find_shares_since(procfs, list, begin_ns);
}
