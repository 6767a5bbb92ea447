/* Settings, machine and process, written into the trace so that a report needs nothing else. */
#include "session/capture.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/smallfile.h"
#include "base/text.h"
#include "session/cgroup.h"
#include "session/environment.h"
#include "session/redact.h"

void capture_add(struct event_builder *builder, uint64_t ticks, const char *key, const char *format, ...)
{
	char value[EVENT_STRING_MAX];
	va_list list;

	va_start(list, format);
	vsnprintf(value, sizeof value, format, list);
	va_end(list);
	event_add(builder, ticks, EVENT_CAPTURE, 0, 0, key, value);
}

void capture_sampling(struct event_builder *builder, uint64_t ticks, const char *key, const char *state, uint64_t given_up_ns)
{
	const char *reason = strstr(state, ": ");

	if (given_up_ns && reason)
		capture_add(builder, ticks, key, "given up after %.1f s%s", (double)given_up_ns / 1e9, reason);
	else
		capture_add(builder, ticks, key, "%s", state);
}

int capture_affinity(pid_t pid)
{
	cpu_set_t set;

	return sched_getaffinity(pid, sizeof set, &set) == 0 ? CPU_COUNT(&set) : (int)sysconf(_SC_NPROCESSORS_ONLN);
}

/* CPUs the process may use: affinity, and the quota of its cgroup. */
static void cpus_add(struct event_builder *builder, uint64_t ticks, const struct procfs *procfs, pid_t pid)
{
	double cpus = capture_affinity(pid);
	struct cgroup cgroup;

	cgroup_find(procfs, pid, &cgroup);
	capture_add(builder, ticks, "cpus", "%g", cgroup.cpu_quota > 0 && cgroup.cpu_quota < cpus ? cgroup.cpu_quota : cpus);
	if (cgroup.cpu_quota > 0)
		capture_add(builder, ticks, "cpus.quota", "%.2f", cgroup.cpu_quota);
	else if (cgroup.cpu_hidden)
		capture_add(builder, ticks, "cpus.quota.why", "its control group is not shown where it was measured from");
}

static uint64_t start_unix_ns(const struct target_facts *facts)
{
	uint64_t since_boot_ns = facts->start_ticks * (1000000000ull / (uint64_t)sysconf(_SC_CLK_TCK));
	struct timespec boot;

	if (clock_gettime(CLOCK_BOOTTIME, &boot) < 0)
		return 0;
	return clock_realtime_ns() - ((uint64_t)boot.tv_sec * 1000000000 + (uint64_t)boot.tv_nsec) + since_boot_ns;
}

/* Arguments parted by blanks. */
static void command_read(const struct procfs *procfs, pid_t pid, bool whole, char *out, size_t size)
{
	ssize_t length = procfs_read(procfs, pid, "cmdline", out, size);
	struct text text;

	while (length > 0 && out[length - 1] == '\0')
		length--;
	text_init(&text);
	if (length > 0 && !whole)
		redact_arguments(out, (size_t)length, &text);
	for (ssize_t i = 0; i < length; i++)
		if (out[i] == '\0')
			out[i] = ' ';
	out[length > 0 ? length : 0] = '\0';
	if (text.failed)
		*out = '\0';
	else if (text.data)
		snprintf(out, size, "%s", text.data);
	text_done(&text);
}

static void place_add(struct event_builder *builder, uint64_t ticks, const struct environment *environment)
{
	struct place place;

	environment_place(environment->bytes, environment->size, &place);
	if (place.rank >= 0)
		capture_add(builder, ticks, "rank", "%ld", place.rank);
	if (place.local_rank >= 0)
		capture_add(builder, ticks, "rank.local", "%ld", place.local_rank);
	if (place.world >= 0)
		capture_add(builder, ticks, "rank.world", "%ld", place.world);
	if (*place.pod)
		capture_add(builder, ticks, "pod", "%s", place.pod);
}

static void process_add(struct event_builder *builder, uint64_t ticks, const struct procfs *procfs, const struct target_facts *facts, bool whole_arguments)
{
	char command[EVENT_STRING_MAX], version[32];
	struct proc_status status = { 0 };

	command_read(procfs, facts->pid, whole_arguments, command, sizeof command);
	procfs_status(procfs, facts->pid, 0, &status);
	snprintf(version, sizeof version, "%d.%d.%d", facts->python_major, facts->python_minor, facts->python_micro < 0 ? 0 : facts->python_micro);
	event_add(builder, ticks, EVENT_PROCESS, (uint32_t)facts->pid, 0, (uint32_t)status.parent, start_unix_ns(facts), *command ? command : facts->command, facts->executable, version);
	capture_add(builder, ticks, "python.version", "%s%s%s", version, facts->free_threaded ? " free-threaded" : "", facts->static_python ? ", static" : "");
}

static void skip_add(struct event_builder *builder, uint64_t ticks, const struct session_options *options)
{
	char skip[EVENT_STRING_MAX];
	size_t length = 0;

	length += (size_t)snprintf(skip, sizeof skip, "%s%s%s", options->skip_default ? "default" : "none", options->skip_presets & 1 ? ",dunder" : "", options->skip_presets & 2 ? ",internals" : "");
	for (size_t i = 0; options->skip_patterns && options->skip_patterns[i] && length < sizeof skip; i++)
		length += (size_t)snprintf(skip + length, sizeof skip - length, ",%s", options->skip_patterns[i]);
	capture_add(builder, ticks, "skip", "%s", skip);
}

/* Says which traces share a monotonic clock: random(4). */
static void boot_add(struct event_builder *builder, uint64_t ticks, const struct procfs *procfs)
{
	char path[512], id[64];

	snprintf(path, sizeof path, "%s/sys/kernel/random/boot_id", procfs->root);
	if (!smallfile_read(path, id, sizeof id))
		return;
	id[strcspn(id, "\n")] = '\0';
	capture_add(builder, ticks, "boot", "%s", id);
}

void capture_begin(struct event_builder *builder, uint64_t ticks, const struct target_facts *facts, const struct session_options *options, const struct environment *environment, enum clock_kind clock)
{
	static const char *const c_calls[] = { "auto", "all", "none" };
	const struct procfs *procfs = options->inject.procfs ? options->inject.procfs : &procfs_real;
	struct utsname host;

	process_add(builder, ticks, procfs, facts, options->whole_arguments);
	place_add(builder, ticks, environment);
	capture_add(builder, ticks, "version", "%s", options->version ? options->version : "unknown");
	capture_add(builder, ticks, "mode", "%s", options->mode ? options->mode : "attach");
	capture_add(builder, ticks, "pid", "%d", (int)facts->pid);
	if (options->command_line)
		capture_add(builder, ticks, "command_line", "%s", options->command_line);
	capture_add(builder, ticks, "python.file", "%s", facts->python_file);
	capture_add(builder, ticks, "libc", "%s", facts->libc);
	capture_add(builder, ticks, "allocator", "%s", facts->allocator);
	capture_add(builder, ticks, "backend.asked", "%s", backend_name(options->backend));
	capture_add(builder, ticks, "c_calls", "%s", c_calls[options->c_calls % 3]);
	if (options->max_overhead_ppm)
		capture_add(builder, ticks, "max_overhead", "%g%%", options->max_overhead_ppm / 10000.0);
	else
		capture_add(builder, ticks, "max_overhead", "none");
	if (options->alternate_ms)
		capture_add(builder, ticks, "alternate_ms", "%u", options->alternate_ms);
	skip_add(builder, ticks, options);
	capture_add(builder, ticks, "clock", "%s", clock == CLOCK_TSC ? "tsc" : "monotonic");
	cpus_add(builder, ticks, procfs, facts->pid);
	if (uname(&host) == 0) {
		capture_add(builder, ticks, "host", "%s", host.nodename);
		capture_add(builder, ticks, "kernel", "%s %s", host.sysname, host.release);
	}
	boot_add(builder, ticks, procfs);
	capture_add(builder, ticks, "duration.asked_ns", "%llu", (unsigned long long)options->duration_ns);
	capture_add(builder, ticks, "sync_error_margin_us", "%u", options->sync_error_margin_us);
}
