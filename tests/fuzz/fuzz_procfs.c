/*
 * Any bytes as files of /proc and /sys: of a process, of its thread 7, of its control group, of the machine. A byte 1 parts files; the first byte of each says which of the
 * rows below it is. Then all is read that is read of a process beside its memory.
 */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mappings.h"
#include "base/pattern.h"
#include "base/smallfile.h"
#include "base/text.h"
#include "session/around.h"
#include "session/capture.h"
#include "session/census.h"
#include "session/cgroup.h"
#include "session/descriptors.h"
#include "session/environment.h"
#include "session/find.h"
#include "session/gpu_look.h"
#include "session/numa.h"
#include "session/observe.h"
#include "session/pools.h"
#include "session/redact.h"
#include "tests/fuzz/tree.h"

enum { PID = 5, TID = 7, SEPARATOR = 1 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const folders[] = {
	"proc", "proc/5", "proc/5/task", "proc/5/task/7", "proc/driver", "proc/driver/nvidia", "proc/pressure", "proc/self", "sys", "sys/fs", "sys/fs/cgroup", "sys/fs/cgroup/a", "sys/devices",
	"sys/devices/system", "sys/devices/system/node", "sys/devices/system/node/node0", "sys/devices/system/node/node1", "sys/bus", "sys/bus/pci", "sys/bus/pci/devices", "sys/bus/pci/devices/0000:01:00.0",
};
static const char *const files[] = {
	"proc/5/status", "proc/5/stat", "proc/5/cgroup", "proc/5/maps", "proc/5/environ", "proc/5/cmdline", "proc/5/numa_maps", "proc/5/schedstat", "proc/5/task/7/status", "proc/5/task/7/stat",
	"proc/5/task/7/syscall", "proc/5/task/7/comm", "proc/5/task/7/schedstat", "proc/driver/nvidia/version", "proc/pressure/memory", "sys/fs/cgroup/a/cpu.max", "sys/fs/cgroup/a/cpu.stat",
	"sys/fs/cgroup/a/cpu.cfs_quota_us", "sys/fs/cgroup/a/memory.max", "sys/fs/cgroup/a/memory.stat", "sys/fs/cgroup/a/memory.events", "sys/fs/cgroup/a/memory.current", "sys/fs/cgroup/a/memory.pressure",
	"sys/fs/cgroup/a/memory.oom_control", "sys/devices/system/node/online", "sys/devices/system/node/node0/cpulist", "sys/devices/system/node/node1/cpulist",
	"sys/bus/pci/devices/0000:01:00.0/class", "sys/bus/pci/devices/0000:01:00.0/vendor", "sys/bus/pci/devices/0000:01:00.0/numa_node",
};
enum { FILES = sizeof files / sizeof *files };

/* Threads have the kernel's names here: what threading knows is fuzz_pystack's. */
const char *naming_find(const struct naming *naming, pid_t inner_tid) { return NULL; }
void naming_refresh(struct naming *naming, bool early) {}

/* Of a session's parts this one needs the whole; what it says of surroundings is text. */
void capture_add(struct event_builder *builder, uint64_t ticks, const char *key, const char *format, ...)
{
	char value[4096];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(value, sizeof value, format, arguments);
	va_end(arguments);
	event_add(builder, ticks, EVENT_CAPTURE, 0, 0, key, value);
}

static char proc_root[80], sys_root[80];

static void files_write(const uint8_t *data, size_t size)
{
	for (size_t i = 0; i < FILES; i++)
		unlinkat(tree_fd, files[i], 0);
	while (size) {
		const uint8_t *end = memchr(data, SEPARATOR, size);
		size_t length = end ? (size_t)(end - data) : size, step = end ? length + 1 : length;

		if (length)
			tree_write(files[data[0] % FILES], data + 1, length - 1);
		data += step;
		size -= step;
	}
}

static void read_surroundings(const struct procfs *procfs)
{
	struct cgroup_reading reading;
	struct numa_pages pages;
	struct cgroup cgroup;
	struct numa numa;

	cgroup_find(procfs, PID, &cgroup);
	cgroup_read(&cgroup, &reading);
	if (cgroup.cpu_quota < 0 || strlen(cgroup.memory) >= sizeof cgroup.memory)
		abort();
	numa_find(sys_root, &numa);
	if (numa.nodes < 0 || numa.nodes > NUMA_NODES || numa.device_count > NUMA_DEVICES)
		abort();
	for (int cpu = -1; cpu <= NUMA_CPUS; cpu++)
		if (numa_node(&numa, cpu) < NUMA_NONE || numa_node(&numa, cpu) >= NUMA_NODES)
			abort();
	numa_pages_read(procfs, PID, &pages);
}

static void read_environment(const struct procfs *procfs)
{
	struct environment environment;
	struct gpu_look look;
	struct pools pools;
	struct place place;
	struct maps maps;
	char text[512];

	environment_read(procfs, PID, &environment);
	environment_place(environment.bytes, environment.size, &place);
	if (place.rank < -1 || place.world < -1 || strlen(place.pod) >= sizeof place.pod)
		abort();
	if (maps_read(procfs, PID, &maps) == 0) {
		pools_find(&maps, environment.bytes, environment.size, 4, &pools);
		maps_done(&maps);
	}
	environment_done(&environment);
	if (gpu_look_read(procfs, PID, &look))
		gpu_look_text(&look, text, sizeof text);
}

/* What surrounds it, as a whole. */
static void read_around(const struct procfs *procfs, const struct observe *observe, struct event_builder *builder)
{
	struct environment environment;
	struct around around;

	environment_read(procfs, PID, &environment);
	around_init(&around, procfs, sys_root, PID);
	around_begin(&around, &environment, 4, 1000, builder);
	around_read(&around, observe, 2000, builder);
	around_end(&around, 3000, builder);
	around_done(&around);
	environment_done(&environment);
}

/* What the sampler looks at. */
static void read_blocks(const struct procfs *procfs)
{
	struct block_runtime runtime = block_runtime_at(0x1000, 0x800, 0x030c01f0);
	struct seen_thread *due[2];
	struct descriptors descriptors;
	struct census census;
	struct block block;
	char name[32];

	census_init(&census, procfs, PID, true, runtime);
	if (census_read(&census, NULL, NULL) && (census.count > 1 || census_due(&census, due) > 1))
		abort();
	census_by_tid(&census, TID);
	census_by_inner(&census, TID);
	census_done(&census);
	if (descriptors_open(procfs, PID, &descriptors) && block_read(procfs, PID, TID, &block) == BLOCK_BLOCKED) {
		block_name(&block, &runtime, name, sizeof name);
		block_state(&block, &runtime);
		descriptors_seen(&descriptors, (uint64_t)block.number, block.argument, (int64_t)block.pc);
		descriptors_kind(&descriptors, block.argument);
	}
	descriptors_done(&descriptors);
}

static void read_threads(const struct procfs *procfs)
{
	struct event_builder builder;
	struct observe observe;

	event_builder_init(&builder);
	observe_init(&observe, procfs, PID, true);
	for (int i = 0; i < 2; i++)
		observe_read(&observe, 1000, &builder);
	if (observe.count > 1 || (observe.count && observe_by_tid(&observe, TID) != observe.threads))
		abort();
	observe_by_inner(&observe, TID);
	read_around(procfs, &observe, &builder);
	observe_done(&observe);
	event_builder_done(&builder);
}

static void read_matching(const struct procfs *procfs)
{
	struct find_query query = { .container = "5e", .cgroup = "/a" };
	struct found_list list = { 0 };
	const char *why;
	struct pattern *pattern = pattern_new("p.*[0-9]+", &why, NULL, 0);
	struct error err;

	if (!pattern)
		abort();
	query.match = pattern;
	find_processes(procfs, &query, &list, &err);
	if (list.count > 1)
		abort();
	find_shares(procfs, &list, 0);
	list_done(&list);
	pattern_free(pattern);
}

static void read_processes(const struct procfs *procfs)
{
	const pid_t named = PID;
	struct found_list list = { 0 };
	struct find_query query = { .pids = &named, .pid_count = 1, .children = true, .cgroup = "/a", .container = "b" };
	struct proc_status status;
	struct error err;

	procfs_status(procfs, PID, 0, &status);
	if (find_processes(procfs, &query, &list, &err) == 0) {
		if (list.count != 1 || strlen(list.items[0].command) >= sizeof list.items[0].command)
			abort();
		find_shares_since(procfs, &list, 0);
	}
	list_done(&list);
	read_matching(procfs);
}

static void redact(const uint8_t *data, size_t size)
{
	struct text text;

	text_init(&text);
	redact_arguments((const char *)data, size, &text);
	redact_words((const char *)data, size, &text);
	text_done(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct procfs procfs;

	if (tree_make(folders, sizeof folders / sizeof *folders)) {
		snprintf(proc_root, sizeof proc_root, "%s/proc", tree_root);
		snprintf(sys_root, sizeof sys_root, "%s/sys", tree_root);
		tree_write_mounts("cpu");
	}
	procfs.root = proc_root;
	files_write(data, size);
	read_surroundings(&procfs);
	read_environment(&procfs);
	read_threads(&procfs);
	read_processes(&procfs);
	read_blocks(&procfs);
	redact(data, size);
	return 0;
}
