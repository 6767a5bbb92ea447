/* Where the files of a process's control group lie: cgroups(7), versions 1 and 2, wherever they are mounted, by /proc/PID/cgroup and /proc/self/mountinfo. */
#ifndef INFERSCOPE_BASE_CGROUPS_H
#define INFERSCOPE_BASE_CGROUPS_H

#include <stdbool.h>

#include "base/procfs.h"

enum { CGROUP_PATH = 4096 };

enum cgroup_sight {
	CGROUP_NONE,   /* the kernel has no groups, or the process is in none */
	CGROUP_HIDDEN, /* it is in one that no mount here shows: not mounted, or that of another container */
	CGROUP_SHOWN,
};

struct cgroup_place {
	char mount[CGROUP_PATH]; /* what is above it is not to be seen */
	char group[CGROUP_PATH]; /* below the mount: "" or "/…" */
};

/* The group of PID in the hierarchy that has CONTROLLER; "": version 2. A controller that is in no hierarchy of version 1 is version 2's. *OUT is filled when it is shown. */
enum cgroup_sight cgroup_place_find(const struct procfs *procfs, pid_t pid, const char *controller, struct cgroup_place *out);
/* PLACE becomes the group above it. False: it is where the mount begins, and stays. */
bool cgroup_place_up(struct cgroup_place *place);
/* Where the files of the group lie. False: the path is too long, and OUT is cut. */
bool cgroup_place_folder(const struct cgroup_place *place, char out[CGROUP_PATH]);

#endif
