/* Where reports go. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "cli/outputs.h"

static struct options options;
static struct outputs outputs;
static struct error err;

static int plan(const char *output, const char *format, const char *trace, pid_t pid)
{
	memset(&err, 0, sizeof err);
	options_done(&options);
	cr_assert_eq(options_init(&options, NULL), 0);
	if (output)
		cr_assert_eq(options_set(&options, OPT_OUTPUT, output, ORIGIN_COMMAND_LINE, "", NULL), 0);
	if (format)
		cr_assert_eq(options_set(&options, OPT_FORMAT, format, ORIGIN_COMMAND_LINE, "", NULL), 0);
	if (trace)
		cr_assert_eq(options_set(&options, OPT_TRACE, trace, ORIGIN_COMMAND_LINE, "", NULL), 0);
	return outputs_plan(&options, pid, &outputs, &err);
}

Test(outputs, default_to_report_md_and_a_trace_with_the_pid)
{
	cr_assert_eq(plan(NULL, NULL, NULL, 4711), 0, "%s", err.text);
	cr_assert_eq(outputs.count, 1);
	cr_assert_str_eq(outputs.reports[0].path, "report.md");
	cr_assert_eq(strncmp(outputs.trace, "inferscope-4711-", 16), 0);
	cr_assert_not_null(strstr(outputs.trace, "Z.iscope"));
}

Test(outputs, the_extension_says_the_format)
{
	cr_assert_eq(plan("x.html", NULL, "none", 1), 0);
	cr_assert_str_eq(outputs.reports[0].format->name, "html");
	cr_assert_str_eq(outputs.trace, "");
	cr_assert_eq(plan("x.odt", NULL, NULL, 1), -1);
	cr_assert_eq(err.code, ERR_OPTION_VALUE);
	cr_assert_eq(plan("x.odt", "json", NULL, 1), 0, "unless the format is named");
	cr_assert_str_eq(outputs.reports[0].path, "x.odt");
}

static int plan_from(const char *output, enum option_origin output_origin, const char *format, enum option_origin format_origin)
{
	options_done(&options);
	cr_assert_eq(options_init(&options, NULL), 0);
	cr_assert_eq(options_set(&options, OPT_OUTPUT, output, output_origin, "", NULL), 0);
	cr_assert_eq(options_set(&options, OPT_FORMAT, format, format_origin, "", NULL), 0);
	return outputs_plan(&options, 0, &outputs, &err);
}

Test(outputs, what_is_said_more_strongly_decides_format_and_name)
{
	cr_assert_eq(plan_from("r.md", ORIGIN_COMMAND_LINE, "html", ORIGIN_FILE), 0);
	cr_assert(outputs.count == 1 && strcmp(outputs.reports[0].format->name, "md") == 0 && strcmp(outputs.reports[0].path, "r.md") == 0);
	cr_assert_eq(plan_from("r2.html", ORIGIN_COMMAND_LINE, "json,md", ORIGIN_ENVIRONMENT), 0);
	cr_assert(outputs.count == 1 && strcmp(outputs.reports[0].format->name, "html") == 0);
	cr_assert_eq(plan_from("r", ORIGIN_COMMAND_LINE, "json", ORIGIN_FILE), 0, "no extension that says anything");
	cr_assert_str_eq(outputs.reports[0].format->name, "json");
	cr_assert_eq(plan_from("r.md", ORIGIN_FILE, "html", ORIGIN_COMMAND_LINE), 0);
	cr_assert(strcmp(outputs.reports[0].format->name, "html") == 0 && strcmp(outputs.reports[0].path, "r.html") == 0, "%s", outputs.reports[0].path);
	cr_assert_eq(plan_from("r.md", ORIGIN_COMMAND_LINE, "html", ORIGIN_COMMAND_LINE), 0);
	cr_assert(strcmp(outputs.reports[0].format->name, "html") == 0 && strcmp(outputs.reports[0].path, "r.md") == 0, "%s", outputs.reports[0].path);
	cr_assert_eq(plan_from("r.md", ORIGIN_COMMAND_LINE, "htlm", ORIGIN_FILE), -1, "a typing error is one all the same");
}

static bool takes_json(const char *format)
{
	return strcmp(format, "json") == 0;
}

Test(outputs, one_report_has_the_first_format_of_a_setting_that_it_can_have)
{
	char name[OPTION_PART_BYTES];

	options_done(&options);
	cr_assert_eq(options_init(&options, NULL), 0);
	format_wanted(&options, takes_json, name);
	cr_assert_str_eq(name, "text");
	cr_assert_eq(options_set(&options, OPT_FORMAT, "perfetto,json", ORIGIN_FILE, "", NULL), 0);
	format_wanted(&options, takes_json, name);
	cr_assert_str_eq(name, "json");
	cr_assert_eq(options_set(&options, OPT_FORMAT, "perfetto", ORIGIN_COMMAND_LINE, "", NULL), 0);
	format_wanted(&options, takes_json, name);
	cr_assert_str_eq(name, "perfetto", "what was typed is refused, and not passed over");
}

static const char *one_report(const char *output, const char *format, enum option_origin format_origin, char name[OPTION_PART_BYTES])
{
	options_done(&options);
	cr_assert_eq(options_init(&options, NULL), 0);
	cr_assert_eq(options_set(&options, OPT_OUTPUT, output, ORIGIN_FILE, "", NULL), 0);
	if (format)
		cr_assert_eq(options_set(&options, OPT_FORMAT, format, format_origin, "", NULL), 0);
	format_wanted(&options, takes_json, name);
	return output_wanted(&options, takes_json);
}

Test(outputs, a_name_of_the_settings_for_another_format_is_passed_over)
{
	char name[OPTION_PART_BYTES];

	cr_expect_str_eq(one_report("r.html", NULL, ORIGIN_FILE, name), "");
	cr_expect_str_eq(name, "text");
	cr_expect_str_eq(one_report("r.html", "html,json", ORIGIN_FILE, name), "");
	cr_expect_str_eq(name, "json");
	cr_expect_str_eq(one_report("r.md", "json", ORIGIN_COMMAND_LINE, name), "");
	cr_expect_str_eq(name, "json");
	cr_expect_str_eq(one_report("/tmp/", NULL, ORIGIN_FILE, name), "");
	cr_expect_str_eq(one_report("r.json", NULL, ORIGIN_FILE, name), "r.json");
	cr_expect_str_eq(name, "json");
	cr_expect_str_eq(one_report("/dev/null", "json", ORIGIN_FILE, name), "/dev/null");
}

Test(outputs, one_named_format_changes_the_default_name)
{
	cr_assert_eq(plan(NULL, "html", NULL, 1), 0);
	cr_assert_str_eq(outputs.reports[0].path, "report.html");
}

Test(outputs, several_formats_share_a_stem_and_never_a_file)
{
	cr_assert_eq(plan("out/x.md", "md,markdown,json,events", NULL, 1), 0, "%s", err.text);
	cr_assert_eq(outputs.count, 3);
	cr_assert_str_eq(outputs.reports[0].path, "out/x.md");
	for (size_t i = 0; i < outputs.count; i++)
		for (size_t j = 0; j < i; j++)
			cr_assert_str_neq(outputs.reports[i].path, outputs.reports[j].path);
}

Test(outputs, a_folder_gets_report_files)
{
	cr_assert_eq(plan("/tmp", "md,html", NULL, 1), 0);
	cr_assert_str_eq(outputs.reports[0].path, "/tmp/report.md");
	cr_assert_str_eq(outputs.reports[1].path, "/tmp/report.html");
}

Test(outputs, stdout_takes_one_format_only)
{
	cr_assert_eq(plan("-", NULL, NULL, 1), 0);
	cr_assert_str_eq(outputs.reports[0].format->name, "text");
	cr_assert(outputs_use_stdout(&outputs));
	cr_assert_eq(plan("-", "md,html", NULL, 1), -1);
	cr_assert_eq(err.code, ERR_USAGE);
}

Test(outputs, trace_and_report_are_two_files)
{
	cr_assert_eq(plan("x.md", NULL, "x.md", 1), -1);
	cr_assert_eq(err.code, ERR_USAGE);
	cr_assert_eq(plan("./x.md", NULL, "x.md", 1), -1, "one file by two names");
	cr_assert_eq(plan("/tmp/../tmp/none-such.md", NULL, "/tmp/none-such.md", 1), -1);
	cr_assert_eq(plan("/tmp/none-such.md", NULL, "/none-such.md", 1), 0, "%s", err.text);
}

Test(outputs, an_unknown_format_is_told_the_known_ones)
{
	cr_assert_eq(plan(NULL, "pdf", NULL, 1), -1);
	cr_assert_not_null(strstr(err.hint, "html"));
}

Test(outputs, what_cannot_be_written_is_found_before)
{
	cr_assert_eq(plan("/nonexistent/x.md", NULL, "none", 1), 0);
	cr_assert_eq(outputs_test(&outputs, &err), -1);
	cr_assert_eq(err.code, ERR_OUTPUT);
}
