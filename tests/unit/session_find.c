/* Which processes are meant: a folder plays /proc. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "session/find.h"
#include "tests/unit/folder.h"

static char root[FOLDER_BYTES];
static struct procfs procfs = { root };
static struct found_list found;

static void put(int pid, const char *name, const char *bytes, size_t length)
{
	char path[64];

	snprintf(path, sizeof path, "%d/%s", pid, name);
	folder_write_bytes(root, path, bytes, length);
}

/* COMMAND's words are its arguments. */
static void process(int pid, int parent, unsigned flags, char state, const char *command, const char *cgroup)
{
	char text[512];

	snprintf(text, sizeof text, "%d (odd) name) %c %d 1 1 0 -1 %u 1 0 0 0 50 50 0 0 20 0 1 0 %d 1000 10 0\n", pid, state, parent, flags, 9000 + pid);
	put(pid, "stat", text, strlen(text));
	snprintf(text, sizeof text, "%s", command);
	for (char *at = text; *at; at++)
		if (*at == ' ')
			*at = '\0';
	put(pid, "cmdline", text, strlen(command) + 1);
	snprintf(text, sizeof text, "12:cpu,cpuacct:/other\n0::%s\n", cgroup);
	put(pid, "cgroup", text, strlen(text));
}

static void arrange(void)
{
	folder_make(root);
	process(1, 0, 0, 'S', "/sbin/init", "/");
	process(10, 1, 0, 'S', "gunicorn: master [app]", "/system.slice/web.service");
	process(11, 10, 0, 'R', "python3 -m worker --port 80", "/system.slice/web.service");
	process(12, 10, 0, 'S', "python3 -m worker --port 81", "/system.slice/web.service/part");
	process(13, 12, 0, 'S', "sh -c true", "/system.slice/web.service2");
	process(14, 10, 0, 'Z', "", "/system.slice/web.service");
	process(15, 2, 0x00200000, 'S', "python3 kernel", "/system.slice/web.service");
	process(20, 1, 0, 'S', "python3 engine.py", "/docker/4f2a99c0ffee");
	process(21, 1, 0, 'S', "python3 engine.py", "/kubepods/pod7/cri-containerd-77aa4f2a.scope");
	process(30, 20, 0, 'S', "inferscope attach --match python3", "/docker/4f2a99c0ffee");
	process(31, 30, 0, 'S', "python3 started by inferscope", "/");
}

static void clean(void)
{
	list_done(&found);
	folder_remove(root);
}

TestSuite(find, .init = arrange, .fini = clean);

static void expect(struct find_query query, const char *pids)
{
	char text[256] = "";
	struct error err = { 0 };
	size_t used = 0;

	query.own = 30;
	cr_assert_eq(find_processes(&procfs, &query, &found, &err), 0, "%s", err.text);
	for (size_t i = 0; i < found.count; i++)
		used += (size_t)snprintf(text + used, sizeof text - used, "%s%d", i ? " " : "", (int)found.items[i].pid);
	cr_assert_str_eq(text, pids);
}

static void expect_match(const char *pattern, bool children, const char *pids)
{
	const char *why;
	char room[128];
	struct pattern *match = pattern_new(pattern, &why, room, sizeof room);

	cr_assert(match);
	expect((struct find_query){ .match = match, .children = children }, pids);
	pattern_free(match);
}

Test(find, named_ones_are_there_dead_or_alive_and_once)
{
	const pid_t pids[] = { 12, 99, 14, 99, 12 };

	expect((struct find_query){ .pids = pids, .pid_count = 5 }, "12 14 99");
	cr_assert(found.items[2].named && found.items[2].start_ticks == 0, "99 is gone");
	cr_assert_eq(found.items[0].start_ticks, 9012);
	cr_assert_eq(found.items[0].parent, 10);
	cr_assert_str_eq(found.items[0].command, "python3 -m worker --port 81");
}

Test(find, children_are_all_that_descend_but_zombies)
{
	const pid_t pids[] = { 10 };

	expect((struct find_query){ .pids = pids, .pid_count = 1, .children = true }, "10 11 12 13");
	cr_assert(found.items[0].named && !found.items[1].named);
}

Test(find, a_match_is_of_the_whole_command_line)
{
	expect_match("worker --port 8[01]$", false, "11 12");
}

Test(find, a_match_may_bring_its_children)
{
	expect_match("^gunicorn: master", true, "10 11 12 13");
}

Test(find, neither_kernel_threads_nor_our_own_are_matched)
{
	expect_match("python3", false, "11 12 20 21");
}

Test(find, a_control_group_is_not_one_that_begins_alike)
{
	expect((struct find_query){ .cgroup = "/system.slice/web.service/" }, "10 11 12");
}

Test(find, a_container_is_named_by_the_beginning_of_its_id)
{
	expect((struct find_query){ .container = "4f2a99" }, "20");
}

Test(find, an_id_is_not_found_in_the_middle_of_another)
{
	expect((struct find_query){ .container = "4f2a" }, "20");
}

Test(find, the_runtime_may_stand_before_an_id)
{
	expect((struct find_query){ .container = "77aa" }, "21");
}

Test(find, a_process_of_many_parents_in_a_circle_is_no_endless_loop)
{
	const pid_t pids[] = { 10 };

	process(40, 41, 0, 'S', "a", "/");
	process(41, 40, 0, 'S', "b", "/");
	expect((struct find_query){ .pids = pids, .pid_count = 1, .children = true }, "10 11 12 13");
}

Test(find, busy_ones_come_first)
{
	const pid_t pids[] = { 1, getpid() };
	struct find_query query = { .pids = pids, .pid_count = 2, .own = 0 };
	volatile unsigned work = 0;
	struct error err = { 0 };

	cr_assert_eq(find_processes(&procfs_real, &query, &found, &err), 0, "%s", err.text);
	found.items[1].cpu_ns = 0; /* as if all its time were used meanwhile */
	for (unsigned i = 0; i < 60000000; i++)
		work += i;
	find_shares(&procfs_real, &found, 1000000);
	cr_assert_eq(found.items[0].pid, getpid());
	cr_assert_gt(found.items[0].cpus, 0);
	(void)work;
}
