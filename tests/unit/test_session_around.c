/* What surrounds a process, from folders that play /proc and /sys. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "session/around.h"
#include "session/pools.h"
#include "tests/unit/folder.h"

static char folder[FOLDER_BYTES];

static void put(const char *file, const char *text)
{
	folder_write(folder, file, text);
}

static void setup(void)
{
	folder_make(folder);
}

static void teardown(void)
{
	folder_remove(folder);
}

TestSuite(around, .init = setup, .fini = teardown);

/* A line of mountinfo: the group ROOT of the hierarchy with CONTROLLER ("": version 2) is shown in the test's folder AT. */
static const char *mounted(const char *root, const char *at, const char *controller)
{
	static char lines[4][256];
	static unsigned next;
	char *line = lines[next++ % 4];

	if (*controller)
		snprintf(line, sizeof lines[0], "33 32 0:29 %s %s/%s rw,relatime shared:9 - cgroup cgroup rw,%s\n", root, folder, at, controller);
	else
		snprintf(line, sizeof lines[0], "31 23 0:26 %s %s/%s rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n", root, folder, at);
	return line;
}

static void put_mounts(const char *first, const char *second, const char *third)
{
	char text[1024];

	snprintf(text, sizeof text, "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n%s%s%s", first, second, third);
	put("self/mountinfo", text);
}

static struct cgroup group_find(void)
{
	struct procfs procfs = { folder };
	struct cgroup cgroup;

	cgroup_find(&procfs, 7, &cgroup);
	return cgroup;
}

Test(around, reads_quota_limit_and_pressure_of_version_2)
{
	struct cgroup_reading now;
	struct cgroup cgroup;

	put_mounts(mounted("/", "sys/fs/cgroup", ""), "", "");
	put("7/cgroup", "0::/pod/main\n");
	put("sys/fs/cgroup/pod/main/cpu.stat", "usage_usec 1\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0\n");
	put("sys/fs/cgroup/pod/main/cpu.max", "200000 100000\n"); /* the one further out is smaller */
	put("sys/fs/cgroup/pod/cpu.stat", "usage_usec 1\nnr_periods 100\nnr_throttled 25\nthrottled_usec 5000\n");
	put("sys/fs/cgroup/pod/cpu.max", "150000 100000\n");
	put("sys/fs/cgroup/pod/main/memory.stat", "anon 1\n");
	put("sys/fs/cgroup/pod/main/cgroup.events", "populated 1\nfrozen 0\n");
	put("sys/fs/cgroup/pod/main/memory.max", "1000\n");
	put("sys/fs/cgroup/pod/main/memory.current", "900\n");
	put("sys/fs/cgroup/pod/main/memory.events", "low 0\nhigh 3\nmax 4\noom 1\noom_kill 1\n");
	put("sys/fs/cgroup/pod/main/memory.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=12\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n");
	put("sys/fs/cgroup/pod/main/cpu.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=99\n");
	cgroup = group_find();
	cgroup_read(&cgroup, &now);
	cr_expect_float_eq(cgroup.cpu_quota, 1.5, 1e-9);
	cr_expect_eq(now.periods, 100);
	cr_expect_eq(now.throttled_periods, 25);
	cr_expect_eq(now.throttled_ns, 5000000);
	cr_expect_eq(now.memory_bytes, 900);
	cr_expect_eq(now.memory_limit_bytes, 1000);
	cr_expect_eq(now.memory_reclaims, 7);
	cr_expect_eq(now.oom_kills, 1);
	cr_expect(cgroup.group_pressure);
	cr_expect_eq(now.some_ns[PRESSURE_MEMORY], 12000);
	cr_expect_eq(now.full_ns[PRESSURE_MEMORY], 7000);
	cr_expect_eq(now.some_ns[PRESSURE_CPU], 99000);
	cr_expect_eq(now.full_ns[PRESSURE_CPU], CGROUP_UNKNOWN);
	cr_expect_eq(now.some_ns[PRESSURE_IO], CGROUP_UNKNOWN);
}

Test(around, reads_version_1_and_the_machines_pressure)
{
	struct cgroup_reading now;
	struct cgroup cgroup;

	put_mounts(mounted("/", "sys/fs/cgroup/cpu", "cpu,cpuacct"), mounted("/", "sys/fs/cgroup/memory", "memory"), mounted("/", "sys/fs/cgroup/unified", ""));
	put("7/cgroup", "9:memory:/docker/abc\n5:cpu,cpuacct:/docker/abc\n0::/\n");
	put("sys/fs/cgroup/cpu/docker/abc/cpu.stat", "nr_periods 10\nnr_throttled 2\nthrottled_time 77\n");
	put("sys/fs/cgroup/cpu/docker/abc/cpu.cfs_quota_us", "50000\n");
	put("sys/fs/cgroup/cpu/docker/abc/cpu.cfs_period_us", "100000\n");
	put("sys/fs/cgroup/memory/docker/abc/memory.stat", "cache 1\n");
	put("sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "4096\n");
	put("sys/fs/cgroup/memory/docker/abc/memory.usage_in_bytes", "2048\n");
	put("sys/fs/cgroup/memory/docker/abc/memory.failcnt", "5\n");
	put("sys/fs/cgroup/memory/docker/abc/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
	put("pressure/cpu", "some avg10=1.00 avg60=1.00 avg300=1.00 total=3\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n");
	cgroup = group_find();
	cgroup_read(&cgroup, &now);
	cr_expect_float_eq(cgroup.cpu_quota, 0.5, 1e-9);
	cr_expect_eq(now.throttled_periods, 2);
	cr_expect_eq(now.throttled_ns, 77);
	cr_expect_eq(now.memory_bytes, 2048);
	cr_expect_eq(now.memory_limit_bytes, 4096);
	cr_expect_eq(now.memory_reclaims, 5);
	cr_expect_eq(now.oom_kills, 2);
	cr_expect_not(cgroup.group_pressure);
	cr_expect_eq(now.some_ns[PRESSURE_CPU], 3000);
}

/* Without a cgroup namespace of its own, a container has the host's path of its group, and a mount of that group alone. */
Test(around, finds_the_group_that_is_all_that_is_mounted)
{
	struct cgroup_reading now;
	struct cgroup cgroup;

	put_mounts(mounted("/../../kubepods/pod1/c1", "sys/fs/cgroup", ""), "", "");
	put("7/cgroup", "0::/../../kubepods/pod1/c1\n");
	put("sys/fs/cgroup/cpu.stat", "nr_periods 8\nnr_throttled 4\nthrottled_usec 1\n");
	put("sys/fs/cgroup/cpu.max", "100000 100000\n");
	cgroup = group_find();
	cgroup_read(&cgroup, &now);
	cr_expect_float_eq(cgroup.cpu_quota, 1, 1e-9);
	cr_expect_eq(now.throttled_periods, 4);
	put("7/cgroup", "0::/../../kubepods/pod1/c1/worker\n");
	put("sys/fs/cgroup/worker/cpu.stat", "nr_periods 8\nnr_throttled 5\nthrottled_usec 1\n");
	put("sys/fs/cgroup/worker/cpu.max", "50000 100000\n");
	cr_expect_float_eq(group_find().cpu_quota, 0.5, 1e-9);
}

/* That of the attacher's own container says nothing of it. */
Test(around, says_that_another_containers_group_is_not_shown)
{
	struct cgroup cgroup;

	put_mounts(mounted("/", "sys/fs/cgroup", ""), "", "");
	put("sys/fs/cgroup/cpu.stat", "nr_periods 8\nnr_throttled 4\nthrottled_usec 1\n");
	put("sys/fs/cgroup/cpu.max", "100000 100000\n");
	put("7/cgroup", "0::/../c2\n");
	cgroup = group_find();
	cr_expect_eq(cgroup.cpu_quota, 0);
	cr_expect(cgroup.cpu_hidden);
	cr_expect_str_empty(cgroup.cpu);
	put_mounts(mounted("/c1", "sys/fs/cgroup", ""), "", "");
	put("7/cgroup", "0::/c10\n");
	cr_expect(group_find().cpu_hidden);
	put("7/cgroup", "0::/c1\n");
	cr_expect_not(group_find().cpu_hidden);
}

Test(around, finds_groups_wherever_they_are_mounted)
{
	/* the one that shows the group's parents, too, whose limit is smaller */
	put_mounts(mounted("/pod/main", "own groups", "cpuacct,cpu"), mounted("/", "my\\040groups", "cpuacct,cpu"), mounted("/", "unified", ""));
	put("7/cgroup", "12:cpuset:/\n4:cpuacct,cpu:/pod/main\n0::/pod/main\n");
	put("my groups/pod/main/cpu.stat", "nr_periods 0\n");
	put("my groups/pod/cpu.stat", "nr_periods 0\n");
	put("my groups/pod/cpu.cfs_quota_us", "25000\n");
	put("my groups/pod/cpu.cfs_period_us", "100000\n");
	cr_expect_float_eq(group_find().cpu_quota, 0.25, 1e-9);
	/* hybrid: the controller is version 2's, beside another one of version 1 */
	put_mounts(mounted("/", "v1", "memory"), mounted("/", "unified", ""), "");
	put("7/cgroup", "4:memory:/elsewhere\n0::/pod\n");
	put("unified/pod/cpu.stat", "nr_periods 0\n");
	put("unified/pod/cpu.max", "75000 100000\n");
	cr_expect_float_eq(group_find().cpu_quota, 0.75, 1e-9);
}

Test(around, tells_nothing_of_a_quota_that_is_not_there)
{
	struct cgroup_reading now;
	struct cgroup cgroup;

	put_mounts(mounted("/", "sys/fs/cgroup", ""), "", "");
	put("7/cgroup", "0::/free\n");
	put("sys/fs/cgroup/free/cpu.stat", "usage_usec 1\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0\n");
	put("sys/fs/cgroup/free/cpu.max", "max 100000\n");
	cgroup = group_find();
	cgroup_read(&cgroup, &now);
	cr_expect_eq(cgroup.cpu_quota, 0);
	cr_expect_not(cgroup.cpu_hidden);
	cr_expect_eq(now.periods, CGROUP_UNKNOWN);
	cr_expect_eq(now.memory_limit_bytes, CGROUP_UNKNOWN);
}

Test(around, survives_groups_that_are_no_text)
{
	struct cgroup_reading now;
	struct cgroup cgroup;

	put("self/mountinfo", "\n - \n1 2 3\n1 2 3 / /x - cgroup\n1 2 3 / \\0 rw - cgroup2\n - cgroup2 x\n");
	put("7/cgroup", "::::\n\n0:\nx\n1:cpu\n1:cpu:\n");
	cgroup = group_find();
	cgroup_read(&cgroup, &now);
	cr_expect_eq(now.periods, CGROUP_UNKNOWN);
}

/* ---- memory nodes ---- */

static void put_two_nodes(void)
{
	put("sys/devices/system/node/online", "0-1\n");
	put("sys/devices/system/node/node0/cpulist", "0-3,8\n");
	put("sys/devices/system/node/node1/cpulist", "4-7\n");
	put("sys/bus/pci/devices/0000:01:00.0/class", "0x030200\n");
	put("sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n");
	put("sys/bus/pci/devices/0000:01:00.0/numa_node", "1\n");
	put("sys/bus/pci/devices/0000:02:00.0/class", "0x020000\n");
	put("sys/bus/pci/devices/0000:02:00.0/vendor", "0x15b3\n");
	put("sys/bus/pci/devices/0000:02:00.0/numa_node", "0\n");
}

static struct numa nodes_find(void)
{
	struct numa numa;
	char sysfs[128];

	snprintf(sysfs, sizeof sysfs, "%s/sys", folder);
	numa_find(sysfs, &numa);
	return numa;
}

Test(around, knows_the_node_of_each_cpu_and_device)
{
	struct numa numa;

	put_two_nodes();
	numa = nodes_find();
	cr_expect_eq(numa.nodes, 2);
	cr_expect_eq(numa_node(&numa, 3), 0);
	cr_expect_eq(numa_node(&numa, 7), 1);
	cr_expect_eq(numa_node(&numa, 8), 0);
	cr_expect_eq(numa_node(&numa, 9), NUMA_NONE);
	cr_expect_eq(numa_node(&numa, -1), NUMA_NONE);
	cr_expect_eq(numa.device_nodes, 2, "the GPU is on node 1, the network card is no device of ours");
	cr_expect(numa.device_count == 1 && numa.devices[0].node == 1 && strcmp(numa.devices[0].address, "0000:01:00.0") == 0);
}

Test(around, lists_nodes_of_any_text)
{
	cr_expect_eq(numa_list("0-1,3\n"), 0xb);
	cr_expect_eq(numa_list(""), 0);
	cr_expect_eq(numa_list("x"), 0);
	cr_expect_eq(numa_list("63-4000000000"), UINT64_C(1) << 63);
	cr_expect_eq(numa_list("5-"), 0);
}

Test(around, adds_up_pages_of_every_size)
{
	struct procfs procfs = { folder };
	struct numa_pages pages;

	put("7/numa_maps", "55d0 default file=/usr/bin/python3 mapped=10 N0=8 N1=2 kernelpagesize_kB=4\n7f00 default anon=3 N1=3 kernelpagesize_kB=2048\n7fff default\nrubbish N9999=1 N=3\n");
	cr_assert(numa_pages_read(&procfs, 7, &pages));
	cr_expect_eq(pages.of[0], 8);
	cr_expect_eq(pages.of[1], 2 + 3 * 512);
}

static volatile char *touched(size_t bytes)
{
	volatile char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (size_t at = 0; at < bytes; at += 4096)
		memory[at] = 1;
	return memory;
}

Test(around, finds_the_node_of_pages_by_a_sample_of_addresses)
{
	volatile char *memory = touched(64 << 20);
	struct numa_pages pages;
	uint64_t all = 0;

	if (!numa_pages_sample(&procfs_real, getpid(), &pages))
		cr_skip_test("this kernel does not tell where pages lie");
	for (int node = 0; node < NUMA_NODES; node++)
		all += pages.of[node];
	cr_expect(all >= 1000 && all <= 2048, "%llu pages; most of the data are touched", (unsigned long long)all);
	munmap((void *)memory, 64 << 20);
}

/* ---- events ---- */

static void put_thread(int tid, int cpu)
{
	char file[64], text[256];

	snprintf(file, sizeof file, "7/task/%d/stat", tid);
	snprintf(text, sizeof text, "%d (worker) R 1 7 7 0 -1 0 10 0 20 0 3 4 0 0 20 0 2 0 555 1000 10 18446744073709551615 1 1 1 0 0 0 0 0 0 0 0 0 17 %d 0 0 0\n", tid, cpu);
	put(file, text);
}

static int64_t counter_of(const struct event_builder *events, const char *name)
{
	struct event_cursor c = event_cursor(events->bytes, events->size);
	int64_t value = -1;

	while (event_next(&c)) {
		size_t length;
		const char *bytes = c.event.kind == EVENT_COUNTER ? event_str(&c, 0, &length) : "";

		if (c.event.kind == EVENT_COUNTER && length == strlen(name) && memcmp(bytes, name, length) == 0)
			value = event_i64(&c, 1);
	}
	return value;
}

Test(around, counts_threads_that_change_nodes_and_pages_far_from_them)
{
	struct observe_thread threads[] = { { .tid = 7, .cpu_ns = 0 }, { .tid = 8, .cpu_ns = 0 } };
	struct observe observe = { .threads = threads, .count = 2 };
	struct procfs procfs = { folder };
	struct event_builder events;
	struct around around;
	char sysfs[128];

	put_two_nodes();
	put("7/stat", "7 (python) S 1 7 7 0 -1 0 10 0 20 0 30 40 0 0 20 0 2 0 555 1000 10 0 0 0 0\n");
	put("7/smaps_rollup", "00400000-7fff0000 ---p 00000000 00:00 0 [rollup]\nRss:  2000 kB\nPss:  1500 kB\nPrivate_Dirty: 700 kB\nSwap: 0 kB\nSwapPss: 0 kB\n");
	put("7/numa_maps", "1000 default anon=40 N0=30 N1=10 kernelpagesize_kB=4\n");
	put_thread(7, 0);
	put_thread(8, 5);
	snprintf(sysfs, sizeof sysfs, "%s/sys", folder);
	around_init(&around, &procfs, sysfs, 7);
	event_builder_init(&events);
	around_begin(&around, &(struct environment){ 0 }, 2, 1, &events);
	around_read(&around, &observe, 2, &events);
	threads[0].cpu_ns = 300;
	threads[1].cpu_ns = 100;
	put_thread(7, 6); /* from node 0 to node 1 */
	around_read(&around, &observe, 3, &events);
	around_end(&around, 4, &events);
	cr_expect_eq(counter_of(&events, "numa_thread_migrations"), 1);
	cr_expect_eq(counter_of(&events, "numa_ran_ns"), 400);
	cr_expect_eq(counter_of(&events, "numa_device_far_ns"), 0, "all of it passed on node 1, where the device is");
	cr_expect_eq(counter_of(&events, "numa_pages"), 40);
	cr_expect_eq(counter_of(&events, "numa_remote_pages"), 30);
	cr_expect_eq(counter_of(&events, "pss_bytes"), 1500 * 1024);
	cr_expect_eq(counter_of(&events, "cgroup_periods"), -1);
	event_builder_done(&events);
	around_done(&around);
}

Test(around, does_not_walk_the_pages_of_a_large_process)
{
	struct procfs procfs = { folder };
	struct event_builder events;
	struct around around;
	char sysfs[128];

	put("7/stat", "7 (python) S 1 7 7 0 -1 0 10 0 20 0 30 40 0 0 20 0 2 0 555 99999999999 2000000 0 0 0 0\n");
	put("7/smaps_rollup", "[rollup]\nPss:  1500 kB\n");
	snprintf(sysfs, sizeof sysfs, "%s/sys", folder);
	around_init(&around, &procfs, sysfs, 7);
	event_builder_init(&events);
	around_begin(&around, &(struct environment){ 0 }, 2, 1, &events);
	cr_expect_eq(counter_of(&events, "pss_bytes"), -1);
	event_builder_done(&events);
	around_done(&around);
}

/* ---- pools ---- */

Test(around, finds_pools_of_threads_and_what_their_environment_sets)
{
	static const char text[] = "7f00-7f10 r-xp 00000000 08:01 11 /venv/torch/lib/libgomp-a34b3233.so.1\n7f10-7f20 r-xp 00000000 08:01 12 /usr/lib/libopenblas64_.so.0\n7f20-7f30 r-xp 00000000 08:01 13 /usr/lib/libompi.so\n";
	static const char environment[] = "PATH=/bin\0OPENBLAS_NUM_THREADS=4,2\0MKL_NUM_THREADS=99";
	struct pools pools;
	struct maps maps;

	cr_assert_eq(maps_parse(text, sizeof text - 1, &maps), 0);
	pools_find(&maps, environment, sizeof environment, 16, &pools);
	cr_expect_str_eq(pools.libraries, "libgomp, libopenblas");
	cr_expect_str_eq(pools.environment, "OPENBLAS_NUM_THREADS=4");
	cr_expect_eq(pools.asked, 16, "nothing says how many libgomp may have: one for each CPU");
	maps_done(&maps);
}
