/* Words of the command line to the processes that they mean. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/fleet.h"
#include "cli/process.h"

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
	const char *why;
	char room[128];

	out->find.match = out->match = pattern_new(pattern, &why, room, sizeof room);
	if (out->match)
		return 0;
	return why ? fail(err, ERR_OPTION_VALUE, "--match: \"%.80s\": %s", pattern, why) : fail(err, ERR_MEMORY, "--match");
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
	pattern_free(query->match);
	memset(query, 0, sizeof *query);
}

bool fleet_query_follows(const struct fleet_query *query)
{
	return query->find.children || query->find.match || query->find.cgroup || query->find.container;
}
