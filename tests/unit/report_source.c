/* Which lines of a program stand beside a finding, and which do not. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report/model.h"
#include "report_fixture.h"
#include "tests/unit/folder.h"

enum { NOW_S = 1700000000 };
#define STARTED_NS ((uint64_t)NOW_S * 1000000000)

static const char APP[] =
	"import os\n"
	"\n"
	"class Server:\n"
	"\t@cached\n"
	"\t@traced(level=3)\n"
	"\tdef handle(self, request):\n"
	"\t\treturn request\r\n"
	"\n"
	"\tdef other(self):\n"
	"\t\tpass\n"
	"\n"
	"work = lambda x: x + 1\n"
	"def long(\n"
	"    a,\n"
	"):\n"
	"    b = 1\n"
	"    c = 2\n"
	"    d = 3\n"
	"    e = 4\n"
	"    f = 5\n"
	"    g = 6\n"
	"    h = 7\n"
	"    i = 8\n";

static char root[FOLDER_BYTES];
static struct arena arena;

/* Below a folder that plays "/". */
static void put_file(const char *name, const char *content, time_t changed)
{
	const struct timespec times[2] = { { changed, 0 }, { changed, 0 } };
	char path[128];

	folder_write(root, name, content);
	snprintf(path, sizeof path, "%s/%s", root, name);
	cr_assert_eq(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void begin(void)
{
	folder_make(root);
	arena_init(&arena);
	put_file("app.py", APP, NOW_S - 10);
}

static void end(void)
{
	arena_done(&arena);
	folder_remove(root);
}

static const struct source *read_at(const char *file, uint32_t line, const char *function)
{
	return source_read(&arena, root, &(struct location){ file, line, function, FUNCTION_PYTHON }, STARTED_NS);
}

TestSuite(source, .init = begin, .fini = end);

Test(source, begins_with_the_decorators_and_ends_with_the_function)
{
	const struct source *source = read_at("/app.py", 4, "Server.handle");

	cr_assert_not_null(source);
	cr_assert_eq(source->first, 4);
	cr_assert_eq(source->count, 4);
	cr_assert_str_eq(source->lines[0], "    @cached");
	cr_assert_str_eq(source->lines[3], "        return request");
}

Test(source, of_a_long_function_is_its_beginning)
{
	const struct source *source = read_at("/app.py", 13, "long");

	cr_assert_not_null(source);
	cr_assert_eq(source->count, SOURCE_LINES);
	cr_assert_str_eq(source->lines[2], "):");
	cr_assert_str_eq(source->lines[SOURCE_LINES - 1], "    g = 6");
}

Test(source, knows_lambdas_and_modules)
{
	cr_assert_not_null(read_at("/app.py", 12, "<lambda>"));
	cr_assert_not_null(read_at("/app.py", 1, "<module>"));
	cr_assert_null(read_at("/app.py", 1, "<lambda>"));
	cr_assert_null(read_at("/app.py", 12, "<listcomp>"));
}

Test(source, that_does_not_name_the_function_is_another_file)
{
	cr_assert_null(read_at("/app.py", 4, "Server.handles"));
	cr_assert_null(read_at("/app.py", 3, "handle"));
	cr_assert_null(read_at("/app.py", 400, "handle"));
	cr_assert_null(read_at("/app.py", 0, "handle"));
}

Test(source, that_was_changed_since_is_not_what_ran)
{
	put_file("new.py", "def f():\n    pass\n", NOW_S + 1);
	put_file("old.py", "def f():\n    pass\n", NOW_S);
	cr_assert_null(read_at("/new.py", 1, "f"));
	cr_assert_not_null(read_at("/old.py", 1, "f"));
}

Test(source, is_python_in_a_regular_file_below_the_root)
{
	char path[128];

	put_file("secret", "def f():\n    pass\n", NOW_S - 10);
	snprintf(path, sizeof path, "%s/out.py", root);
	cr_assert_eq(symlink("/../../../../etc/passwd", path), 0); /* inside the root there is none */
	snprintf(path, sizeof path, "%s/pipe.py", root);
	cr_assert_eq(mkfifo(path, 0600), 0);
	cr_assert_null(read_at("/secret", 1, "f"));
	cr_assert_null(read_at("/out.py", 1, "<module>"));
	cr_assert_null(read_at("/pipe.py", 1, "<module>"));
	cr_assert_null(read_at("app.py", 1, "<module>"));
	cr_assert_null(read_at("", 1, "<module>"));
	cr_assert_null(source_read(&arena, "/nonexistent", &(struct location){ "/app.py", 1, "<module>", FUNCTION_PYTHON }, STARTED_NS));
	cr_assert_null(source_read(&arena, root, &(struct location){ "/app.py", 1, "<module>", FUNCTION_C }, STARTED_NS));
}

/* The timeline of the fixture has no calls to list. */
int timeline_intervals(const struct timeline *timeline, struct trace *trace, bool (*each)(void *context, const struct interval *interval), void *context, struct error *err)
{
	return 0;
}

int timeline_device_work(const struct timeline *timeline, struct trace *trace, bool (*each)(void *context, const struct interval *interval), void *context, struct error *err)
{
	return timeline_intervals(timeline, trace, each, context, err);
}

int timeline_walk(const struct timeline *timeline, struct trace *trace, bool (*begin_call)(void *context, const struct interval *interval), bool (*each)(void *context, const struct interval *interval), void *context, struct error *err)
{
	return 0;
}

static struct text written(const struct fixture *fixture, const char *format)
{
	struct error err = { 0 };
	struct report *report = NULL;
	struct sink *sink = NULL;
	struct text out;

	text_init(&out);
	cr_assert_eq(report_build(&fixture->timeline, &fixture->analysis, NULL, &fixture->options, &report, &err), 0, "%s", err.text);
	cr_assert_eq(sink_open_text(&out, &sink, &err), 0);
	cr_assert_eq(report_format_find(format)->write(report, sink, &err), 0, "%s", err.text);
	cr_assert_eq(sink_commit(sink, &err), 0);
	report_free(report);
	cr_assert_not(out.failed);
	return out;
}

Test(source, stands_in_every_format_as_text_and_only_when_asked_for)
{
	static const struct { const char *format, *holds; } rows[] = {
		{ "html", "<b>9</b>def load_plugin(`a`, b=&quot;|&quot;): # &lt;/pre&gt;&lt;script&gt; 9 % \n" },
		{ "md", "\n          9  def load_plugin(`a`, b=\"|\"): # </pre><script> 9 % \n" },
		{ "text", "\n           9 def load_plugin(`a`, b=\"|\"): # </pre><script> 9 % \n" },
		{ "json", "\"text\":\t\"def load_plugin(`a`, b=\\\"|\\\"): # \\u003c/pre><script> 9 % \"" },
	};
	struct fixture fixture;

	put_file("srv/app/plugins/__init__.py", "\n\n\n\n\n\n\n\ndef load_plugin(`a`, b=\"|\"): # </pre><script> 9 % \n", NOW_S);
	fixture_init(&fixture);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct text out;

		fixture.options.source_root = root;
		out = written(&fixture, rows[i].format);
		cr_assert_not_null(strstr(out.data, rows[i].holds), "%s: %s", rows[i].format, strstr(out.data, "load_plugin("));
		text_done(&out);
		fixture.options.source_root = NULL;
		out = written(&fixture, rows[i].format);
		cr_assert_null(strstr(out.data, "load_plugin(`"), "%s", rows[i].format);
		text_done(&out);
	}
}
