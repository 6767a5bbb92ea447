/* The group as /proc/PID/cgroup has it, and the mount that shows it: both tell paths as our own cgroup namespace sees them. */
#include "base/cgroups.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Is NAME one of the words of LIST, which commas part and END ends? */
static bool names_it(const char *list, const char *end, const char *name)
{
	size_t length = strlen(name);

	for (const char *word = list; word < end; word += strcspn(word, ",\n") + 1)
		if (strncmp(word, name, length) == 0 && word + length <= end && (word + length == end || word[length] == ','))
			return true;
	return false;
}

/* The path after "N:CONTROLLER:" of /proc/PID/cgroup; CONTROLLER "" is version 2. False: there is no such line. */
static bool group_of(const char *text, const char *controller, char *out)
{
	for (const char *line = text; line && *line; line = strchr(line, '\n')) {
		const char *names, *path;

		line += *line == '\n';
		names = strchr(line, ':');
		path = names ? strchr(names + 1, ':') : NULL;
		if (!path)
			return false;
		if (*controller ? names_it(names + 1, path, controller) : path == names + 1) {
			snprintf(out, CGROUP_PATH, "%.*s", (int)strcspn(path + 1, "\n"), path + 1);
			return true;
		}
	}
	return false;
}

/* Blanks and the like are written as "\040". */
static void unescape(char *text)
{
	char *to = text;

	for (const char *from = text; *from; to++) {
		if (from[0] == '\\' && from[1] >= '0' && from[1] <= '3' && from[2] >= '0' && from[2] <= '7' && from[3] >= '0' && from[3] <= '7') {
			*to = (char)((from[1] - '0') * 64 + (from[2] - '0') * 8 + (from[3] - '0'));
			from += 4;
		} else {
			*to = *from++;
		}
	}
	*to = '\0';
}

/* What of GROUP is below ROOT, the group that a mount shows as its first folder; NULL: the mount does not show it. */
static const char *below(const char *root, const char *group)
{
	size_t length = strcmp(root, "/") == 0 ? 0 : strlen(root);
	const char *rest = group + length;

	if (strncmp(group, root, length) != 0 || (*rest && *rest != '/') || strstr(rest, "/.."))
		return NULL;
	return strcmp(rest, "/") == 0 ? "" : rest;
}

/* "31 23 0:26 ROOT MOUNT OPTIONS [TAGS] - TYPE SOURCE OPTIONS" (proc(5)): a mount of the wanted hierarchy? */
static bool mount_of(char *line, const char *controller, char **root, char **mount)
{
	char *tail = strstr(line, " - "), *fields[6], *at = NULL;
	size_t count = 0;

	if (!tail)
		return false;
	*tail = '\0';
	for (char *field = strtok_r(line, " ", &at); field && count < 5; field = strtok_r(NULL, " ", &at))
		fields[count++] = field;
	if (count < 5)
		return false;
	*root = fields[3];
	*mount = fields[4];
	unescape(*root);
	unescape(*mount);
	tail += 3;
	if (!*controller)
		return strncmp(tail, "cgroup2 ", 8) == 0;
	tail = strncmp(tail, "cgroup ", 7) == 0 ? strchr(tail + 7, ' ') : NULL;
	return tail && names_it(tail + 1, tail + 1 + strcspn(tail + 1, "\n"), controller);
}

/* Of several mounts that show it, the one that shows most of what is above it. */
static bool mount_find(const struct procfs *procfs, const char *controller, const char *group, struct cgroup_place *out)
{
	char path[512], *line = NULL, *root, *mount;
	size_t room = 0, least = SIZE_MAX;
	FILE *file;

	snprintf(path, sizeof path, "%s/self/mountinfo", procfs->root);
	file = fopen(path, "re");
	while (file && getline(&line, &room, file) > 0) {
		const char *rest = mount_of(line, controller, &root, &mount) ? below(root, group) : NULL;

		if (!rest || strlen(root) >= least || strlen(mount) >= sizeof out->mount)
			continue;
		least = strlen(root);
		snprintf(out->mount, sizeof out->mount, "%s", mount);
		snprintf(out->group, sizeof out->group, "%s", rest);
	}
	free(line);
	if (file)
		fclose(file);
	return least != SIZE_MAX;
}

enum cgroup_sight cgroup_place_find(const struct procfs *procfs, pid_t pid, const char *controller, struct cgroup_place *out)
{
	char text[CGROUP_PATH], group[CGROUP_PATH];

	if (procfs_read(procfs, pid, "cgroup", text, sizeof text) <= 0)
		return CGROUP_NONE;
	if (!*controller || !group_of(text, controller, group)) {
		if (!group_of(text, "", group))
			return CGROUP_NONE;
		controller = "";
	}
	return mount_find(procfs, controller, group, out) ? CGROUP_SHOWN : CGROUP_HIDDEN;
}

bool cgroup_place_up(struct cgroup_place *place)
{
	char *slash = strrchr(place->group, '/');

	if (slash)
		*slash = '\0';
	return slash != NULL;
}

bool cgroup_place_folder(const struct cgroup_place *place, char out[CGROUP_PATH])
{
	return snprintf(out, CGROUP_PATH, "%s%s", place->mount, place->group) < CGROUP_PATH;
}
