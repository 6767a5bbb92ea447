/* Words of the command line to the processes that they mean. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/fleet.h"
#include "cli/process.h"

#define SHARES_NS 250000000ull
#define IDLE_CPUS 0.05
#define BUSY_CPUS 0.05   /* all that it started together */
#define TOLD_CPUS 0.02
#define CGROUP_ROOT "/sys/fs/cgroup"
enum { CONTAINER_LEAST = 4 /* characters of an id that name one */ };

bool fleet_wanted(const struct invocation *invocation)
{
	const struct options *options = &invocation->options;

	return invocation->argument_count > 1 || options_flag(options, OPT_CHILDREN) || *options_text(options, OPT_MATCH) || *options_text(options, OPT_CGROUP) || *options_text(options, OPT_CONTAINER);
}

static int pids_read(const struct invocation *invocation, struct fleet_query *out, struct error *err)
{
	const char *option = options_text(&invocation->options, OPT_PID);
	size_t count = invocation->argument_count + (*option != '\0');

	out->pids = calloc(count + 1, sizeof *out->pids);
	if (!out->pids)
		return fail(err, ERR_MEMORY, "reading the command line");
	for (size_t i = 0; i < count; i++) {
		const char *given = i < invocation->argument_count ? invocation->arguments[i] : option;
		int pid;

		if (process_pid(given, &pid, err) < 0)
			return -1;
		out->pids[i] = pid;
	}
	out->find.pids = out->pids;
	out->find.pid_count = count;
	return 0;
}

static int match_read(const char *pattern, struct fleet_query *out, struct error *err)
{
	int wrong = regcomp(&out->match, pattern, REG_EXTENDED | REG_NOSUB);
	char why[128];

	if (wrong) {
		regerror(wrong, &out->match, why, sizeof why);
		return fail(err, ERR_OPTION_VALUE, "--match: \"%.80s\": %s", pattern, why);
	}
	out->matching = true;
	out->find.match = &out->match;
	return 0;
}

int fleet_query_read(const struct invocation *invocation, struct fleet_query *out, struct error *err)
{
	const struct options *options = &invocation->options;
	const char *match = options_text(options, OPT_MATCH), *cgroup = options_text(options, OPT_CGROUP), *container = options_text(options, OPT_CONTAINER);

	memset(out, 0, sizeof *out);
	out->find.own = getpid();
	out->find.children = options_flag(options, OPT_CHILDREN);
	if (pids_read(invocation, out, err) < 0 || (*match && match_read(match, out, err) < 0))
		return -1;
	if (*cgroup)
		out->find.cgroup = strncmp(cgroup, CGROUP_ROOT "/", sizeof CGROUP_ROOT) == 0 ? cgroup + sizeof CGROUP_ROOT - 1 : cgroup;
	if (*cgroup && *out->find.cgroup != '/') {
		fail(err, ERR_OPTION_VALUE, "--cgroup: \"%.200s\" is no path of a control group", cgroup);
		return fail_hint(err, "/proc/PID/cgroup tells that of a process: /system.slice/server.service");
	}
	if (*container && strlen(container) < CONTAINER_LEAST)
		return fail(err, ERR_OPTION_VALUE, "--container: \"%s\" is too short for an id: %d characters or more", container, CONTAINER_LEAST);
	out->find.container = *container ? container : NULL;
	if (!out->find.pid_count && !*match && !*cgroup && !*container)
		return fail(err, ERR_USAGE, "attach needs the pid of a process, --match, --cgroup or --container");
	return 0;
}

void fleet_query_done(struct fleet_query *query)
{
	free(query->pids);
	if (query->matching)
		regfree(&query->match);
	memset(query, 0, sizeof *query);
}

bool fleet_query_follows(const struct fleet_query *query)
{
	return query->find.children || query->find.match || query->find.cgroup || query->find.container;
}

static void launcher_tell(pid_t pid, const struct found_list *list, char *out, size_t size)
{
	int used = snprintf(out, size, "process %d uses next to no CPU; the work is in processes that it started:", (int)pid);
	size_t told = 0;
	struct text shown;

	for (size_t i = 0; i < list->count && told < 3 && used < (int)size; i++) {
		const struct found *found = &list->items[i];

		if (found->pid == pid || found->cpus < TOLD_CPUS)
			continue;
		text_init(&shown);
		text_add_visible(&shown, found->command, strlen(found->command));
		used += snprintf(out + used, size - (size_t)used, "%s %d (%.0f %% of a CPU, %.60s)", told++ ? "," : "", (int)found->pid, found->cpus * 100, shown.data ? shown.data : "");
		text_done(&shown);
	}
	if (used < (int)size)
		snprintf(out + used, size - (size_t)used, "; --children measures them, too");
}

bool fleet_launcher(const struct procfs *procfs, pid_t pid, char *out, size_t size)
{
	const struct find_query query = { .pids = &pid, .pid_count = 1, .children = true, .own = getpid() };
	struct found_list list = { 0 };
	bool idle = false;
	double busy = 0;
	struct error err;

	if (find_processes(procfs, &query, &list, &err) == 0 && list.count > 1) {
		find_shares(procfs, &list, SHARES_NS);
		for (size_t i = 0; i < list.count; i++) {
			idle |= list.items[i].pid == pid && list.items[i].cpus < IDLE_CPUS;
			busy += list.items[i].pid != pid ? list.items[i].cpus : 0;
		}
		if (idle && busy > BUSY_CPUS)
			launcher_tell(pid, &list, out, size);
	}
	list_done(&list);
	return idle && busy > BUSY_CPUS;
}
