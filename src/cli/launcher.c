#include "cli/launcher.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "session/find.h"

#define IDLE_CPUS 0.05
#define BUSY_CPUS 0.05   /* all that it started together */
#define TOLD_CPUS 0.02
enum { TOLD_MOST = 3 };

struct launcher {
	const struct procfs *procfs;
	pid_t pid;
	uint64_t begin_ns;
	struct found_list list;
};

struct launcher *launcher_open(const struct procfs *procfs, pid_t pid)
{
	const struct find_query query = { .pids = &pid, .pid_count = 1, .children = true, .own = getpid() };
	struct launcher *launcher = calloc(1, sizeof *launcher);
	struct error err;

	if (!launcher)
		return NULL;
	*launcher = (struct launcher){ .procfs = procfs, .pid = pid, .begin_ns = clock_monotonic_ns() };
	if (find_processes(procfs, &query, &launcher->list, &err) == 0 && launcher->list.count > 1)
		return launcher;
	launcher_close(launcher);
	return NULL;
}

static void launcher_tell(const struct launcher *launcher, char *out, size_t size)
{
	int used = snprintf(out, size, "process %d uses next to no CPU; the work is in processes that it started:", (int)launcher->pid);
	size_t told = 0;
	struct text shown;

	for (size_t i = 0; i < launcher->list.count && told < TOLD_MOST && used < (int)size; i++) {
		const struct found *found = &launcher->list.items[i];

		if (found->pid == launcher->pid || found->cpus < TOLD_CPUS)
			continue;
		text_init(&shown);
		text_add_visible(&shown, found->command, strlen(found->command));
		used += snprintf(out + used, size - (size_t)used, "%s %d (%.0f %% of a CPU, %.60s)", told++ ? "," : "", (int)found->pid, found->cpus * 100, text_string(&shown));
		text_done(&shown);
	}
	if (used < (int)size)
		snprintf(out + used, size - (size_t)used, "; --children measures them, too");
}

bool launcher_judge(struct launcher *launcher, char *out, size_t size)
{
	const struct found_list *list = &launcher->list;
	bool idle = false;
	double busy = 0;

	find_shares_since(launcher->procfs, &launcher->list, launcher->begin_ns);
	for (size_t i = 0; i < list->count; i++) {
		idle |= list->items[i].pid == launcher->pid && list->items[i].cpus < IDLE_CPUS;
		busy += list->items[i].pid != launcher->pid ? list->items[i].cpus : 0;
	}
	if (idle && busy > BUSY_CPUS)
		launcher_tell(launcher, out, size);
	return idle && busy > BUSY_CPUS;
}

void launcher_close(struct launcher *launcher)
{
	if (!launcher)
		return;
	list_done(&launcher->list);
	free(launcher);
}
