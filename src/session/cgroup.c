/* Files of control groups: Documentation/admin-guide/cgroup-v1 and cgroup-v2.rst of Linux 6.1; pressure as Documentation/accounting/psi.rst. */
#include "session/cgroup.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/smallfile.h"

#define NO_LIMIT (INT64_C(1) << 60) /* version 1 says "none" by a number that no machine has */

static bool folder_has(const char *folder, const char *file)
{
	char path[CGROUP_PATH + 64];

	snprintf(path, sizeof path, "%s/%s", folder, file);
	return access(path, R_OK) == 0;
}

static int64_t folder_number(const char *folder, const char *file)
{
	char path[CGROUP_PATH + 64];

	snprintf(path, sizeof path, "%s/%s", folder, file);
	return smallfile_number(path, CGROUP_UNKNOWN);
}

/* "12500 100000", "max 100000" (v2), or two files (v1). Cores; 0 = none. */
static double quota_at(const char *folder)
{
	char path[CGROUP_PATH + 64], text[64];
	double quota, period;

	snprintf(path, sizeof path, "%s/cpu.max", folder);
	if (smallfile_read(path, text, sizeof text))
		return sscanf(text, "%lf %lf", &quota, &period) == 2 && quota > 0 && period > 0 ? quota / period : 0;
	quota = (double)folder_number(folder, "cpu.cfs_quota_us");
	period = (double)folder_number(folder, "cpu.cfs_period_us");
	return quota > 0 && period > 0 ? quota / period : 0;
}

static double memory_limit_at(const char *folder)
{
	int64_t limit = folder_has(folder, "memory.max") ? folder_number(folder, "memory.max") : folder_number(folder, "memory.limit_in_bytes");

	return limit > 0 && limit < NO_LIMIT ? (double)limit : 0;
}

/* Into OUT goes the folder with the smallest limit, of PLACE's and those above it; where none has one, the innermost that has FILE. Returns the limit. */
static double least_of(struct cgroup_place *place, const char *file, double (*limit_at)(const char *folder), char out[CGROUP_PATH])
{
	char folder[CGROUP_PATH];
	double least = 0;

	do {
		double limit;

		if (!cgroup_place_folder(place, folder) || !folder_has(folder, file))
			continue;
		limit = limit_at ? limit_at(folder) : 0;
		if (!*out || (limit > 0 && (least == 0 || limit < least)))
			memcpy(out, folder, sizeof folder);
		if (limit > 0 && (least == 0 || limit < least))
			least = limit;
	} while (cgroup_place_up(place));
	return least;
}

static double find(const struct procfs *procfs, pid_t pid, const char *controller, const char *file, double (*limit_at)(const char *folder), char *out, bool *hidden)
{
	struct cgroup_place place;
	enum cgroup_sight sight = cgroup_place_find(procfs, pid, controller, &place);

	*hidden = sight == CGROUP_HIDDEN;
	return sight == CGROUP_SHOWN ? least_of(&place, file, limit_at, out) : 0;
}

void cgroup_find(const struct procfs *procfs, pid_t pid, struct cgroup *out)
{
	bool hidden;

	memset(out, 0, sizeof *out);
	out->cpu_quota = find(procfs, pid, "cpu", "cpu.stat", quota_at, out->cpu, &out->cpu_hidden);
	find(procfs, pid, "memory", "memory.stat", memory_limit_at, out->memory, &hidden);
	find(procfs, pid, "", "memory.pressure", NULL, out->pressure, &hidden);
	out->pressure_files = *out->pressure != '\0';
	out->group_pressure = *out->pressure && folder_has(out->pressure, "cgroup.events"); /* which the root, that is the machine, has not */
	if (!*out->pressure)
		snprintf(out->pressure, sizeof out->pressure, "%s/pressure", procfs->root);
}

static void read_cpu(const struct cgroup *cgroup, struct cgroup_reading *out)
{
	char path[CGROUP_PATH + 16], text[1024];
	int64_t us;

	snprintf(path, sizeof path, "%s/cpu.stat", cgroup->cpu);
	if (!*cgroup->cpu || cgroup->cpu_quota <= 0 || !smallfile_read(path, text, sizeof text))
		return;
	us = smallfile_field(text, "throttled_usec", CGROUP_UNKNOWN);
	out->periods = smallfile_field(text, "nr_periods", CGROUP_UNKNOWN);
	out->throttled_periods = smallfile_field(text, "nr_throttled", CGROUP_UNKNOWN);
	out->throttled_ns = us >= 0 && us < INT64_MAX / 1000 ? us * 1000 : smallfile_field(text, "throttled_time", CGROUP_UNKNOWN);
}

static void read_memory(const struct cgroup *cgroup, struct cgroup_reading *out)
{
	char path[CGROUP_PATH + 24], text[1024];
	int64_t high, most;

	if (!*cgroup->memory)
		return;
	out->memory_limit_bytes = (int64_t)memory_limit_at(cgroup->memory);
	if (!out->memory_limit_bytes)
		out->memory_limit_bytes = CGROUP_UNKNOWN;
	snprintf(path, sizeof path, "%s/memory.events", cgroup->memory);
	if (!smallfile_read(path, text, sizeof text)) {
		out->memory_bytes = folder_number(cgroup->memory, "memory.usage_in_bytes");
		out->memory_reclaims = folder_number(cgroup->memory, "memory.failcnt");
		snprintf(path, sizeof path, "%s/memory.oom_control", cgroup->memory);
		if (smallfile_read(path, text, sizeof text))
			out->oom_kills = smallfile_field(text, "oom_kill", CGROUP_UNKNOWN);
		return;
	}
	high = smallfile_field(text, "high", CGROUP_UNKNOWN);
	most = smallfile_field(text, "max", CGROUP_UNKNOWN);
	out->memory_bytes = folder_number(cgroup->memory, "memory.current");
	out->memory_reclaims = high >= 0 && most >= 0 ? high + most : CGROUP_UNKNOWN;
	out->oom_kills = smallfile_field(text, "oom_kill", CGROUP_UNKNOWN);
}

/* "some avg10=0.00 avg60=0.00 avg300=0.00 total=12345", microseconds. */
static int64_t total_ns(const char *text, const char *key)
{
	const char *line = strstr(text, key), *total = line ? strstr(line, "total=") : NULL;
	unsigned long long us;

	return total && sscanf(total, "total=%llu", &us) == 1 && us < INT64_MAX / 1000 ? (int64_t)us * 1000 : CGROUP_UNKNOWN;
}

static void read_pressure(const struct cgroup *cgroup, struct cgroup_reading *out)
{
	static const char *const names[PRESSURES] = { [PRESSURE_CPU] = "cpu", [PRESSURE_MEMORY] = "memory", [PRESSURE_IO] = "io" };

	for (size_t i = 0; i < PRESSURES; i++) {
		char path[CGROUP_PATH + 24], text[256];

		snprintf(path, sizeof path, cgroup->pressure_files ? "%s/%s.pressure" : "%s/%s", cgroup->pressure, names[i]);
		if (!smallfile_read(path, text, sizeof text))
			continue;
		out->some_ns[i] = total_ns(text, "some ");
		out->full_ns[i] = total_ns(text, "full ");
	}
}

void cgroup_read(const struct cgroup *cgroup, struct cgroup_reading *out)
{
	memset(out, 0xff, sizeof *out); /* all CGROUP_UNKNOWN */
	read_cpu(cgroup, out);
	read_memory(cgroup, out);
	read_pressure(cgroup, out);
}
