/* Environment and .inferscope.yaml. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/settings.h"

static struct options options;
static struct error err;

static int file(const char *text)
{
	memset(&err, 0, sizeof err);
	options_done(&options);
	cr_assert_eq(options_init(&options, NULL), 0);
	return settings_text(&options, text, strlen(text), "x.yaml", &err);
}

Test(settings, reads_values_and_lists_from_a_file)
{
	cr_assert_eq(file("# a comment\nduration: 5s\nmax_overhead: 3%\nstrict: true\nskip: [dunder, \"a*\"]\n"), 0, "%s", err.text);
	cr_assert_eq(options_duration_ns(&options, OPT_DURATION), 5000000000);
	cr_assert_eq(options_percent_ppm(&options, OPT_MAX_OVERHEAD), 30000);
	cr_assert(options_flag(&options, OPT_STRICT));
	cr_assert_str_eq(options_text(&options, OPT_SKIP), "dunder,a*");
	cr_assert_eq(options.values[OPT_DURATION].origin, ORIGIN_FILE);
}

Test(settings, an_empty_file_is_fine)
{
	cr_assert_eq(file(""), 0);
	cr_assert_eq(file("# nothing\n"), 0);
	cr_assert_eq(file("---\n"), 0);
}

Test(settings, says_line_and_cause)
{
	cr_assert_eq(file("duration: 5s\nduratoin: 6s\n"), -1);
	cr_assert_eq(err.code, ERR_CONFIG);
	cr_assert_not_null(strstr(err.text, "line 2"), "%s", err.text);
	cr_assert_str_eq(err.hint, "did you mean duration?");
	cr_assert_eq(file("rate: many\n"), -1);
	cr_assert_eq(err.code, ERR_CONFIG);
	cr_assert_eq(file("- a\n- b\n"), -1);
	cr_assert_eq(file("duration: {a: b}\n"), -1);
	cr_assert_eq(file("duration: [1, 2]\n"), -1);
	cr_assert_eq(file("duration: \"5s\n"), -1);
	cr_assert_eq(file("force: yes\n"), -1, "files are not replaced because of a file");
	cr_assert_eq(file("a: &x 1\nb: *x\n"), -1);
}

Test(settings, what_would_be_left_out_in_silence_is_refused)
{
	cr_assert_eq(file("rate: 50\nrate: 60\n"), -1);
	cr_assert_str_eq(err.text, "x.yaml line 2: \"rate\" stands here twice");
	cr_assert_eq(file("trace-size-mb: 5\ntrace_size_mb: 6\n"), -1, "two ways of writing one name");
	cr_assert_eq(file("rate: 50\n---\nrate: 60\n"), -1);
	cr_assert_str_eq(err.text, "x.yaml line 2: a second document begins, and settings are one");
	cr_assert_eq(err.code, ERR_CONFIG);
	cr_assert_eq(file("---\nrate: 50\n...\n"), 0, "%s", err.text);
	cr_assert_eq(file("aat: 5\n"), -1);
	cr_assert_null(strstr(error_hint(&err), "did you mean at?"), "at is for the command line alone");
}

static const char *lookup(const char *name)
{
	if (strcmp(name, "INFERSCOPE_TRACE_SIZE_MB") == 0)
		return "50";
	if (strcmp(name, "INFERSCOPE_DURATION") == 0)
		return "7s";
	if (strcmp(name, "INFERSCOPE_FORCE") == 0)
		return "1";
	return NULL;
}

Test(settings, the_environment_goes_before_the_file)
{
	cr_assert_eq(file("duration: 5s\nrate: 10\n"), 0);
	cr_assert_eq(settings_environment(&options, lookup, &err), 0);
	cr_assert_eq(options_duration_ns(&options, OPT_DURATION), 7000000000);
	cr_assert_eq(options_count(&options, OPT_TRACE_SIZE_MB), 50);
	cr_assert_eq(options_count(&options, OPT_RATE), 10);
	cr_assert_not(options_flag(&options, OPT_FORCE));
}

static const char *lookup_bad(const char *name)
{
	return strcmp(name, "INFERSCOPE_RATE") == 0 ? "lots" : NULL;
}

Test(settings, a_bad_variable_is_named)
{
	cr_assert_eq(file(""), 0);
	cr_assert_eq(settings_environment(&options, lookup_bad, &err), -1);
	cr_assert_not_null(strstr(err.text, "INFERSCOPE_RATE"));
	cr_assert_eq(err.code, ERR_OPTION_VALUE);
}

Test(settings, a_file_that_everybody_may_write_is_refused)
{
	char path[] = "/tmp/inferscope-settings-XXXXXX";
	int fd = mkstemp(path);
	bool found;

	cr_assert_eq(write(fd, "rate: 1\n", 8), 8);
	close(fd);
	options_init(&options, NULL);
	cr_assert_eq(settings_file(&options, path, &found, &err), 0, "%s", err.text);
	cr_assert(found);
	cr_assert_eq(chmod(path, 0666), 0);
	cr_assert_eq(settings_file(&options, path, &found, &err), -1);
	cr_assert_eq(err.code, ERR_CONFIG);
	unlink(path);
	cr_assert_eq(settings_file(&options, path, &found, &err), 0);
	cr_assert_not(found);
}

Test(settings, what_is_meant_for_other_commands_is_forgotten)
{
	for (int typed = 0; typed < 2; typed++) {
		cr_assert_eq(options_init(&options, NULL), 0);
		cr_assert_eq(settings_text(&options, "output: report.md\n", 18, "x", &err), 0);
		cr_assert(!typed || options_set(&options, OPT_OUTPUT, "d.txt", ORIGIN_COMMAND_LINE, "", &err) == 0);
		cr_assert_eq(settings_fit(&options, ANALYZE, &err), 0);
		cr_assert_str_eq(options_text(&options, OPT_OUTPUT), typed ? "d.txt" : "report.md");
		cr_assert_eq(settings_fit(&options, CONFIG, &err), 0, "which shows it");
		cr_assert_str_eq(options_text(&options, OPT_OUTPUT), typed ? "d.txt" : "report.md");
		cr_assert_eq(settings_fit(&options, DUMP, &err), 0);
		cr_assert_str_eq(options_text(&options, OPT_OUTPUT), typed ? "d.txt" : "");
		options_done(&options);
	}
}
