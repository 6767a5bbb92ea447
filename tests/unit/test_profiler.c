/* Profiling from within, with a stand-in for the program: states, what is refused and why, what the child gets, what stays behind. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "profiler/profiler.h"
#include "tests/unit/folder.h"

/* The trap stands before it says that it has begun. */
#define BEGIN_WITH(trap) "trap '" trap "' INT\nprintf x >&3; exec 3>&-\nwhile :; do sleep 0.02; done\n"
#define MEASURE BEGIN_WITH("cat \"${0%/*}/profile\"; echo the summary >&2; exit 0")
#define PROFILE "{\"schema\":\"inferscope.profile/1\",\"elapsed_ns\":5000,\"samples\":7,\"stacks_count\":2,\n\"stacks\":[]}\n"

static char folder[FOLDER_BYTES];

/* The stand-in is this shell script. */
static void program(const char *script)
{
	char path[128], text[4096];

	cr_assert_lt(snprintf(text, sizeof text, "#!/bin/sh\n%s", script), (int)sizeof text);
	folder_write(folder, "profile", PROFILE);
	folder_write(folder, "program", text);
	snprintf(path, sizeof path, "%s/program", folder);
	cr_assert_eq(chmod(path, 0700), 0);
	setenv("INFERSCOPE_PROGRAM", path, 1);
}

static const char *contents(const char *name)
{
	static char text[4096];
	char path[128];
	FILE *file;
	size_t length;

	snprintf(path, sizeof path, "%s/%s", folder, name);
	file = fopen(path, "r");
	if (!file)
		return NULL;
	length = fread(text, 1, sizeof text - 1, file);
	text[length] = '\0';
	fclose(file);
	return text;
}

static int descriptors(void)
{
	DIR *list = opendir("/proc/self/fd");
	int count = 0;

	while (readdir(list))
		count++;
	closedir(list);
	return count;
}

static void begin(void)
{
	folder_make(folder);
}

static void end(void)
{
	folder_remove(folder);
}

TestSuite(profiler, .init = begin, .fini = end, .timeout = 60);

Test(profiler, measures_twice_and_tells_its_state)
{
	struct profiler_state state;
	char path[128];
	int before;

	program(MEASURE);
	snprintf(path, sizeof path, "%s/out", folder);
	before = descriptors();
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(profiler_start(), 0, "%s", profiler_error());
		cr_assert_eq(profiler_get_state(&state), 0);
		cr_assert(state.running && state.interval_us == 1000 && state.samples == 0);
		cr_assert_eq(profiler_start(), -1);
		cr_assert(strstr(profiler_error(), "already"), "%s", profiler_error());
		cr_assert_eq(profiler_write_json(path), -1);
		cr_assert(strstr(profiler_error(), "still being profiled"), "%s", profiler_error());
		cr_assert_eq(profiler_stop(), 0, "%s", profiler_error());
		cr_assert_eq(profiler_get_state(&state), 0);
		cr_assert(!state.running && state.elapsed_ns == 5000 && state.samples == 7 && state.stacks == 2);
	}
	cr_assert_eq(descriptors(), before);
	cr_assert_eq(profiler_write_json(path), 0, "%s", profiler_error());
	cr_assert_str_eq(contents("out"), PROFILE);
	cr_assert_eq(profiler_write_summary(path), 0);
	cr_assert_str_eq(contents("out"), "the summary\n");
	cr_assert_eq(profiler_write_json("/nonexistent/x"), -1);
	cr_assert(strstr(profiler_error(), "No such file"), "%s", profiler_error());
}

Test(profiler, refuses_what_has_no_sense)
{
	cr_assert_eq(profiler_set_interval_us(999), -1);
	cr_assert(strstr(profiler_error(), "1000"));
	cr_assert_eq(profiler_stop(), -1);
	cr_assert_eq(profiler_write_json("/dev/null"), -1);
	cr_assert(strstr(profiler_error(), "nothing has been measured"), "%s", profiler_error());
	cr_assert_eq(profiler_get_state(NULL), -1);
	setenv("INFERSCOPE_PROGRAM", "/nonexistent", 1);
	cr_assert_eq(profiler_start(), -1);
	cr_assert(strstr(profiler_error(), "not found"), "%s", profiler_error());
}

Test(profiler, tells_the_interval_that_it_has)
{
	static const uint32_t rows[][2] = { { 1000, 1000 }, { 4000, 4000 }, { 3000, 3003 }, { 600000, 500000 }, { 700000, 1000000 }, { 1000000, 1000000 } }; /* whole numbers of samples per second */
	struct profiler_state state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		cr_assert_eq(profiler_set_interval_us(rows[i][0]), 0);
		cr_assert_eq(profiler_get_state(&state), 0);
		cr_assert_eq(state.interval_us, rows[i][1], "%u of %u", state.interval_us, rows[i][0]);
	}
}

Test(profiler, says_why_the_program_could_not)
{
	int before = descriptors();

	program("echo 'inferscope: process 7 is no Python' >&2; echo '  start it first' >&2; echo more >&2; exit 5\n");
	cr_assert_eq(profiler_start(), -1);
	cr_assert_str_eq(profiler_error(), "process 7 is no Python\n  start it first");
	program("exit 3\n");
	cr_assert_eq(profiler_start(), -1);
	cr_assert(strstr(profiler_error(), "without a word"), "%s", profiler_error());
	program(BEGIN_WITH("echo inferscope: no space >&2; exit 8"));
	cr_assert_eq(profiler_start(), 0, "%s", profiler_error());
	cr_assert_eq(profiler_stop(), -1);
	cr_assert_str_eq(profiler_error(), "no space");
	for (int i = 0; i < 2; i++) { /* gates of the settings are no failure */
		char script[256];

		snprintf(script, sizeof script, BEGIN_WITH("cat \"${0%%/*}/profile\"; exit %d"), i ? 10 : 1);
		program(script);
		cr_assert_eq(profiler_start(), 0, "%s", profiler_error());
		cr_assert_eq(profiler_stop(), 0, "%s", profiler_error());
	}
	program(BEGIN_WITH("echo nothing; exit 0"));
	cr_assert_eq(profiler_start(), 0, "%s", profiler_error());
	cr_assert_eq(profiler_stop(), -1);
	cr_assert(strstr(profiler_error(), "another version"), "%s", profiler_error());
	cr_assert_eq(descriptors(), before);
}

Test(profiler, waits_as_long_as_the_program_works_and_no_longer)
{
	program(BEGIN_WITH("end=$(($(date +%s) + 4)); while [ $(date +%s) -lt $end ]; do :; done; cat \"${0%/*}/profile\"; exit 0"));
	cr_assert_eq(profiler_start(), 0, "%s", profiler_error());
	cr_assert_eq(profiler_stop(), 0, "%s", profiler_error());
	program(BEGIN_WITH("exec sleep 50"));
	cr_assert_eq(profiler_start(), 0, "%s", profiler_error());
	cr_assert_eq(profiler_stop(), -1);
	cr_assert(strstr(profiler_error(), "in time"), "%s", profiler_error());
}

Test(profiler, gives_the_child_the_rate_and_nothing_of_ours)
{
	int kept = open("/dev/null", O_RDONLY);
	char path[64], expected[64];

	cr_assert_geq(kept, 3);
	snprintf(path, sizeof path, "%d", fcntl(kept, F_DUPFD, 50));
	setenv("INFERSCOPE_ENABLED", "0", 1);
	program("echo \"$*\" >\"${0%/*}/words\"; echo \"[$INFERSCOPE_ENABLED]\" >\"${0%/*}/enabled\"; ls /proc/self/fd >\"${0%/*}/fds\"\n" MEASURE);
	cr_assert_eq(profiler_set_interval_us(4000), 0);
	cr_assert_eq(profiler_start(), 0, "%s", profiler_error());
	cr_assert_eq(profiler_stop(), 0, "%s", profiler_error());
	snprintf(expected, sizeof expected, "attach %d ", (int)getpid());
	cr_assert(strncmp(contents("words"), expected, strlen(expected)) == 0, "%s", contents("words"));
	cr_assert(strstr(contents("words"), "--hook none --rate 250 "), "%s", contents("words"));
	cr_assert_str_eq(contents("enabled"), "[]\n");
	cr_assert_not(strstr(contents("fds"), path), "descriptor %s went along", path);
}

Test(profiler, forked_children_are_not_measured)
{
	int status;
	pid_t child;

	program(MEASURE);
	cr_assert_eq(profiler_start(), 0, "%s", profiler_error());
	child = fork();
	if (child == 0)
		_exit(profiler_stop() == -1 && strstr(profiler_error(), "not being profiled") ? 0 : 1);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0);
	cr_assert_eq(profiler_stop(), 0, "%s", profiler_error());
}

static void *start(void *result)
{
	*(int *)result = profiler_start();
	return NULL;
}

Test(profiler, a_child_forked_while_a_thread_starts_has_a_profiler_of_its_own)
{
	struct profiler_state state;
	pthread_t thread;
	int status, started;
	pid_t child;

	program("touch \"${0%/*}/words\"; sleep 1\n" MEASURE);
	cr_assert_eq(pthread_create(&thread, NULL, start, &started), 0);
	while (!contents("words"))
		usleep(1000);
	child = fork();
	if (child == 0) {
		alarm(10);
		_exit(profiler_get_state(&state) == 0 && !state.running && profiler_start() == 0 && profiler_stop() == 0 ? 0 : 1);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0, "%s %d", WIFSIGNALED(status) ? "signal" : "status", WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	pthread_join(thread, NULL);
	cr_assert_eq(started, 0);
	cr_assert_eq(profiler_stop(), 0, "%s", profiler_error());
}

Test(profiler, a_host_that_collects_its_children_is_no_trouble)
{
	cr_assert_neq(signal(SIGCHLD, SIG_IGN), SIG_ERR);
	program(MEASURE);
	cr_assert_eq(profiler_start(), 0, "%s", profiler_error());
	cr_assert_eq(profiler_stop(), 0, "%s", profiler_error());
	signal(SIGCHLD, SIG_DFL);
}

/* A child of ours with the number PID, which waits for a signal; 0: not permitted. */
static pid_t child_with(pid_t pid)
{
	/* struct clone_args of Linux 5.5 */
	uint64_t arguments[10] = { [4] = SIGCHLD, [8] = (uint64_t)(uintptr_t)&pid, [9] = 1 };
	pid_t child = (pid_t)syscall(435, arguments, sizeof arguments);

	if (child == 0) {
		for (;;)
			pause();
	}
	return child < 0 ? 0 : child;
}

Test(profiler, who_has_got_the_pid_of_the_program_is_left_alone)
{
	struct sigaction collects = { .sa_handler = SIG_DFL, .sa_flags = SA_NOCLDWAIT };
	pid_t before, stranger = 0;
	siginfo_t info = { 0 };

	cr_assert_eq(sigaction(SIGCHLD, &collects, NULL), 0);
	program("printf '%s' $$ >\"${0%/*}/pid\"; printf x >&3\n");
	cr_assert_eq(profiler_start(), 0, "%s", profiler_error());
	before = (pid_t)atoi(contents("pid"));
	for (int i = 0; i < 2000 && kill(before, 0) == 0; i++)
		usleep(1000);
	cr_assert_eq(signal(SIGCHLD, SIG_DFL), SIG_DFL);
	stranger = child_with(before);
	if (!stranger) {
		profiler_stop();
		cr_skip_test("no right to choose a pid");
	}
	cr_assert_eq(stranger, before);
	cr_assert_eq(profiler_stop(), -1);
	cr_assert_eq(waitid(P_PID, (id_t)stranger, &info, WEXITED | WNOHANG | WNOWAIT), 0, "it was waited for");
	cr_assert_eq(info.si_pid, 0, "it was ended by signal %d", info.si_status);
	cr_assert_eq(kill(stranger, SIGKILL), 0);
	cr_assert_eq(waitpid(stranger, NULL, 0), stranger);
}
