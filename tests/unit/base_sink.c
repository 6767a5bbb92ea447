/* Sinks: nothing half-written, nothing of others overwritten. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sink.h"
#include "base/text.h"
#include "tests/unit/folder.h"

static char folder[FOLDER_BYTES];

static void arrange(void)
{
	folder_make(folder);
	cr_assert_eq(chdir(folder), 0);
}

static void clean(void)
{
	folder_remove(folder);
}

TestSuite(sink, .init = arrange, .fini = clean);

static void write_file(const char *name, const char *content)
{
	FILE *file = fopen(name, "w");

	cr_assert_not_null(file);
	fputs(content, file);
	fclose(file);
}

static const char *content_of(const char *name)
{
	static char content[256];
	FILE *file = fopen(name, "r");

	cr_assert_not_null(file, "%s is not there", name);
	content[fread(content, 1, sizeof content - 1, file)] = '\0';
	fclose(file);
	return content;
}

static int files_here(void)
{
	FILE *list = popen("ls -A | wc -l", "r");
	int count = -1;

	cr_assert_eq(fscanf(list, "%d", &count), 1);
	pclose(list);
	return count;
}

Test(sink, a_file_appears_at_commit_and_not_before)
{
	struct error err = { ERR_NONE };
	struct stat status;
	struct sink *sink;

	cr_assert_eq(sink_open_path("report.md", false, &sink, &err), 0);
	sink_printf(sink, "# InferScope report %d\n", 7);
	cr_assert_eq(sink_flush(sink, &err), 0);
	cr_assert_eq(access("report.md", F_OK), -1);
	cr_assert_eq(sink_bytes(sink), 22u);
	cr_assert_eq(sink_commit(sink, &err), 0);
	cr_assert_str_eq(content_of("report.md"), "# InferScope report 7\n");
	cr_assert_eq(stat("report.md", &status), 0);
	cr_assert_eq(status.st_mode & 0777, 0600);
	cr_assert_eq(files_here(), 1);
}

Test(sink, whoever_is_killed_leaves_nothing)
{
	struct error err = { ERR_NONE };
	struct sink *sink;
	int status, probe = open(".", O_TMPFILE | O_WRONLY, 0600);
	pid_t child;

	if (probe < 0)
		cr_skip_test("this file system has no files without a name");
	close(probe);
	child = fork();
	if (child == 0) {
		sink_open_path("report.md", false, &sink, &err);
		sink_puts(sink, "# InferScope report\n");
		sink_flush(sink, &err);
		raise(SIGKILL);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFSIGNALED(status));
	cr_assert_eq(files_here(), 0);
}

Test(sink, discard_leaves_nothing)
{
	struct error err = { ERR_NONE };
	struct sink *sink;

	cr_assert_eq(sink_open_path("report.md", false, &sink, &err), 0);
	sink_puts(sink, "half");
	sink_discard(sink);
	sink_discard(NULL);
	cr_assert_eq(files_here(), 0);
}

Test(sink, a_file_of_others_is_kept)
{
	struct error err = { ERR_NONE };
	struct sink *sink;

	write_file("report.md", "# My thesis\n");
	cr_assert_eq(sink_open_path("report.md", false, &sink, &err), -1);
	cr_assert_eq(err.code, ERR_OUTPUT_EXISTS);
	cr_assert_str_eq(err.text, "report.md exists and was not written by InferScope");
	cr_assert_str_eq(content_of("report.md"), "# My thesis\n");
	cr_assert_eq(files_here(), 1);
}

Test(sink, a_file_of_others_that_came_meanwhile_is_kept)
{
	struct error err = { ERR_NONE };
	struct sink *sink;

	cr_assert_eq(sink_open_path("report.md", false, &sink, &err), 0);
	write_file("report.md", "# My thesis\n");
	cr_assert_eq(sink_commit(sink, &err), -1);
	cr_assert_eq(err.code, ERR_OUTPUT_EXISTS);
	cr_assert_str_eq(content_of("report.md"), "# My thesis\n");
	cr_assert_eq(files_here(), 1);
}

Test(sink, force_replaces)
{
	struct error err = { ERR_NONE };
	struct sink *sink;

	write_file("report.md", "# My thesis\n");
	cr_assert_eq(sink_open_path("report.md", true, &sink, &err), 0);
	sink_puts(sink, "new");
	cr_assert_eq(sink_commit(sink, &err), 0);
	cr_assert_str_eq(content_of("report.md"), "new");
}

Test(sink, our_own_and_empty_files_are_replaced)
{
	static const char *const marks[] = {
		"INFSCOPE\1", "# InferScope report\n", "<!DOCTYPE html><!-- InferScope 0.1 -->", "{\"schema\":\"inferscope.events/1\"", "{\"schema\": \"inferscope.report/1\"",
		"{\n\t\"schema\":\t\"inferscope.report/1\"", "{\n  \"schema\": \"inferscope.report/1\"", "InferScope 0.1\n", "# inferscope trace dump\n", "",
	};
	struct error err = { ERR_NONE };
	struct sink *sink;
	size_t i;

	for (i = 0; i < sizeof marks / sizeof *marks; i++) {
		write_file("out", marks[i]);
		cr_assert(sink_is_ours("out"), "mark %zu", i);
		cr_assert_eq(sink_open_path("out", false, &sink, &err), 0, "mark %zu", i);
		sink_puts(sink, "InferScope again");
		cr_assert_eq(sink_commit(sink, &err), 0);
	}
}

Test(sink, what_only_looks_like_ours_is_not)
{
	write_file("out", "# Infer");
	cr_assert_not(sink_is_ours("out"));
	write_file("out", "{\"schema\":\"other\"}");
	cr_assert_not(sink_is_ours("out"));
	cr_assert_not(sink_is_ours("/dev/null"));
	cr_assert_not(sink_is_ours("."));
	cr_assert_not(sink_is_ours("absent"));
}

Test(sink, bad_places_are_named)
{
	struct error err = { ERR_NONE };
	struct sink *sink;

	cr_assert_eq(sink_open_path("absent/report.md", false, &sink, &err), -1);
	cr_assert_str_eq(err.text, "cannot write absent/report.md: No such file or directory");
	cr_assert_eq(sink_open_path(".", false, &sink, &err), -1);
	cr_assert_str_eq(err.text, "cannot write .: it is a folder");
	cr_assert_eq(sink_open_path("", false, &sink, &err), -1);
	cr_assert_eq(sink_open_path("folder/", true, &sink, &err), -1);
	cr_assert_eq(sink_open_fd(-1, &sink, &err), -1);
}

Test(sink, a_symbolic_link_stays_and_its_file_is_replaced)
{
	struct error err = { ERR_NONE };
	struct stat status;
	struct sink *sink;

	write_file("real", "");
	cr_assert_eq(symlink("real", "link"), 0);
	cr_assert_eq(sink_open_path("link", false, &sink, &err), 0);
	sink_puts(sink, "InferScope");
	cr_assert_eq(sink_commit(sink, &err), 0);
	cr_assert_eq(lstat("link", &status), 0);
	cr_assert(S_ISLNK(status.st_mode));
	cr_assert_str_eq(content_of("real"), "InferScope");
}

Test(sink, a_symbolic_link_to_nothing_stays_and_its_file_is_made)
{
	struct error err = { ERR_NONE };
	struct stat status;
	struct sink *sink;

	cr_assert_eq(mkdir("below", 0700), 0);
	cr_assert_eq(symlink("below/next", "first"), 0);
	cr_assert_eq(symlink("fresh", "below/next"), 0);
	cr_assert_eq(sink_open_path("first", false, &sink, &err), 0, "%s", err.text);
	sink_puts(sink, "InferScope");
	cr_assert_eq(sink_commit(sink, &err), 0);
	cr_assert_eq(lstat("first", &status), 0);
	cr_assert(S_ISLNK(status.st_mode));
	cr_assert_str_eq(content_of("below/fresh"), "InferScope");
	cr_assert_eq(symlink("absent/file", "astray"), 0);
	cr_assert_eq(sink_open_path("astray", false, &sink, &err), -1);
	cr_assert_str_eq(err.text, "cannot write astray: No such file or directory");
	cr_assert_eq(symlink("round", "round"), 0);
	cr_assert_eq(sink_open_path("round", true, &sink, &err), -1);
	cr_assert_str_eq(err.text, "cannot write round: Too many levels of symbolic links");
}

/* A look at whether a named pipe can be written must not be its reader's end of file. */
Test(sink, testing_a_named_pipe_does_not_open_it)
{
	struct error err = { ERR_NONE };
	struct pollfd reader = { .events = POLLIN };
	struct sink *sink;
	char got[16] = "";

	cr_assert_eq(mkfifo("pipe", 0600), 0);
	cr_assert_eq(sink_test_path("pipe", false, &err), 0, "nobody reads yet");
	reader.fd = open("pipe", O_RDONLY | O_NONBLOCK);
	cr_assert_geq(reader.fd, 0);
	cr_assert_eq(sink_test_path("pipe", false, &err), 0);
	cr_assert_eq(poll(&reader, 1, 0), 0, "it was opened and closed");
	cr_assert_eq(sink_open_path("pipe", false, &sink, &err), 0);
	sink_puts(sink, "InferScope");
	cr_assert_eq(sink_commit(sink, &err), 0);
	cr_assert_eq(read(reader.fd, got, sizeof got - 1), 10);
	close(reader.fd);
}

Test(sink, without_descriptors_that_is_what_is_said)
{
	struct rlimit few, limit;
	struct error err = { ERR_NONE };
	struct sink *sink;
	int result;

	getrlimit(RLIMIT_NOFILE, &limit);
	few = (struct rlimit){ 0, limit.rlim_max };
	setrlimit(RLIMIT_NOFILE, &few);
	result = sink_open_path("report.md", false, &sink, &err);
	setrlimit(RLIMIT_NOFILE, &limit);
	cr_assert_eq(result, -1);
	cr_assert_eq(err.code, ERR_DESCRIPTORS, "%s", err.text);
}

Test(sink, a_full_device_is_told_once_and_kept)
{
	struct error err = { ERR_NONE };
	struct sink *sink;
	int i;

	cr_assert_eq(sink_open_path("/dev/full", false, &sink, &err), 0);
	for (i = 0; i < 100000; i++)
		sink_puts(sink, "0123456789");
	cr_assert(sink_failed(sink));
	cr_assert_eq(sink_commit(sink, &err), -1);
	cr_assert_str_eq(err.text, "cannot write /dev/full: No space left on device");
	cr_assert_eq(err.code, ERR_OUTPUT);
}

Test(sink, a_reader_that_goes_away_is_no_error_and_no_signal)
{
	struct error err = { ERR_NONE };
	struct sink *sink;
	int ends[2], i;

	signal(SIGPIPE, SIG_DFL);
	cr_assert_eq(pipe(ends), 0);
	close(ends[0]);
	cr_assert_eq(sink_open_fd(ends[1], &sink, &err), 0);
	for (i = 0; i < 100000; i++)
		sink_puts(sink, "0123456789");
	cr_assert_eq(sink_commit(sink, &err), 0);
	close(ends[1]);
}

Test(sink, large_and_small_writes_arrive_in_order)
{
	struct error err = { ERR_NONE };
	char *large = malloc(200000), number[16];
	struct text text, expected;
	struct sink *sink;
	int i;

	memset(large, 'x', 200000);
	text_init(&text);
	text_init(&expected);
	cr_assert_eq(sink_open_text(&text, &sink, &err), 0);
	for (i = 0; i < 20; i++) {
		snprintf(number, sizeof number, "%d,", i);
		sink_puts(sink, number);
		text_add_string(&expected, number);
		sink_write(sink, large, (size_t)i * 10000);
		text_add(&expected, large, (size_t)i * 10000);
		sink_printf(sink, "%.*s", 1000, large);
		text_add(&expected, large, 1000);
	}
	cr_assert_eq(sink_commit(sink, &err), 0);
	cr_assert_eq(text.length, expected.length);
	cr_assert_eq(memcmp(text.data, expected.data, text.length), 0);
	text_done(&text);
	text_done(&expected);
	free(large);
}
