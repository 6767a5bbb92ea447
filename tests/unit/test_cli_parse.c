/* The command line. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/help.h"
#include "cli/parse.h"

static struct invocation invocation;
static struct error err;
static char *words[16];

/* Parses WORDS (ended by NULL) for COMMAND. */
static int parse(const char *command, char **given)
{
	size_t count = 0;

	options_done(&invocation.options);
	memset(&invocation, 0, sizeof invocation);
	memset(&err, 0, sizeof err);
	for (; given[count]; count++)
		words[count] = given[count];
	words[count] = NULL;
	invocation.command = command_find(command);
	cr_assert_not_null(invocation.command);
	cr_assert_eq(options_init(&invocation.options, NULL), 0);
	return parse_arguments(words, &invocation, &err);
}

#define PARSE(command, ...) parse(command, (char *[]){ __VA_ARGS__ __VA_OPT__(, ) NULL })

Test(parse, takes_options_before_and_behind_the_argument)
{
	cr_assert_eq(PARSE("attach", "-d5", "4711", "--output=x.md", "--format", "md,json", "-f", "html"), 0, "%s", err.text);
	cr_assert_eq(invocation.argument_count, 1);
	cr_assert_str_eq(invocation.arguments[0], "4711");
	cr_assert_eq(options_duration_ns(&invocation.options, OPT_DURATION), 5000000000);
	cr_assert_str_eq(options_text(&invocation.options, OPT_OUTPUT), "x.md");
	cr_assert_str_eq(options_text(&invocation.options, OPT_FORMAT), "md,json,html");
}

Test(parse, report_is_output)
{
	cr_assert_eq(PARSE("run", "--report", "x.html", "script.py"), 0);
	cr_assert_str_eq(options_text(&invocation.options, OPT_OUTPUT), "x.html");
}

Test(parse, leaves_the_programs_own_options_alone)
{
	cr_assert_eq(PARSE("run", "--rate", "50", "script.py", "--rate", "7", "-o", "x"), 0);
	cr_assert_eq(options_count(&invocation.options, OPT_RATE), 50);
	cr_assert_eq(invocation.argument_count, 5);
	cr_assert_str_eq(invocation.arguments[1], "--rate");
	cr_assert_eq(PARSE("run", "-m", "json.tool", "--help"), 0);
	cr_assert_not(options_flag(&invocation.options, OPT_HELP));
	cr_assert_str_eq(invocation.arguments[0], "--help");
	cr_assert_eq(PARSE("run", "-c", "print(1)"), 0);
	cr_assert_str_eq(options_text(&invocation.options, OPT_CODE), "print(1)");
}

Test(parse, says_what_may_have_been_meant)
{
	cr_assert_eq(PARSE("attach", "4711", "--duraton", "5"), -1);
	cr_assert_eq(err.code, ERR_OPTION_UNKNOWN);
	cr_assert_str_eq(err.hint, "did you mean --duration?");
	cr_assert_eq(PARSE("detach", "4711", "--duration", "5"), -1, "an option of another command");
}

Test(parse, a_negative_number_is_an_argument)
{
	cr_assert_eq(PARSE("attach", "-5"), 0);
	cr_assert_str_eq(invocation.arguments[0], "-5");
}

Test(parse, refuses_wrong_counts_and_values)
{
	cr_assert_eq(PARSE("dump", "1", "2"), -1);
	cr_assert_eq(err.code, ERR_USAGE);
	cr_assert_eq(PARSE("dump-trace"), -1);
	cr_assert_eq(err.code, ERR_USAGE);
	cr_assert_eq(PARSE("attach", "1", "--hook", "ptrace"), -1);
	cr_assert_eq(err.code, ERR_OPTION_VALUE);
	cr_assert_eq(PARSE("attach", "1", "--rate", "1001"), -1);
	cr_assert_eq(err.code, ERR_OPTION_VALUE);
	cr_assert_eq(PARSE("attach", "1", "--duration"), -1);
	cr_assert_eq(err.code, ERR_USAGE);
	cr_assert_eq(PARSE("attach", "1", "-z"), -1);
	cr_assert_eq(err.code, ERR_OPTION_UNKNOWN);
}

/* One that is cut would be another pattern. */
Test(parse, parts_of_lists_are_whole_or_refused)
{
	static char longest[OPTION_PART_BYTES], longer[OPTION_PART_BYTES + 4] = "a,b";
	char part[OPTION_PART_BYTES];

	memset(longest, 'x', sizeof longest - 1);
	memset(longer + 2, 'x', sizeof longer - 3);
	cr_assert_eq(PARSE("attach", "1", "--skip", "a", "--skip", longest), 0);
	cr_assert(options_list(&invocation.options, OPT_SKIP, 1, part));
	cr_assert_str_eq(part, longest);
	cr_assert_eq(PARSE("attach", "1", "--scope", longer), -1);
	cr_assert_eq(err.code, ERR_OPTION_VALUE);
}

Test(parse, flags_can_be_taken_back)
{
	cr_assert_eq(PARSE("attach", "1", "--strict"), 0);
	cr_assert(options_flag(&invocation.options, OPT_STRICT));
	cr_assert_eq(PARSE("attach", "1", "--strict", "--no-strict"), 0);
	cr_assert_not(options_flag(&invocation.options, OPT_STRICT));
	cr_assert_eq(PARSE("attach", "1", "--no-duration"), -1);
}

Test(parse, two_dashes_end_the_options)
{
	cr_assert_eq(PARSE("attach", "--", "--strict"), 0);
	cr_assert_str_eq(invocation.arguments[0], "--strict");
}

Test(parse, takes_no_before_a_choice_that_knows_none)
{
	char *arguments[] = { "--no-native", "--no-hook", "--no-color", NULL };

	invocation.command = &command_rows[0];
	for (size_t i = 0; i < command_count; i++)
		if (command_rows[i].bit == ATTACH)
			invocation.command = &command_rows[i];
	cr_assert_eq(options_init(&invocation.options, &err), 0);
	cr_assert_eq(parse_arguments(arguments, &invocation, &err), -1, "color knows never, not none");
	cr_assert_eq(err.code, ERR_OPTION_UNKNOWN);
	cr_assert_str_eq(options_text(&invocation.options, OPT_NATIVE), "none");
	cr_assert_str_eq(options_text(&invocation.options, OPT_HOOK), "none");
	options_done(&invocation.options);
}

Test(help, names_every_option_of_its_command)
{
	for (size_t i = 0; i < command_count; i++) {
		struct text text;

		text_init(&text);
		help_command(&text, &command_rows[i]);
		for (int j = 0; j < OPT_COUNT; j++) {
			enum option_id there = option_find(option_rows[j].name, strlen(option_rows[j].name), command_rows[i].bit);
			char name[64];

			snprintf(name, sizeof name, "--%s", option_rows[j].name);
			if (there != OPT_COUNT && there != (enum option_id)j)
				continue; /* its namesake's */
			if (strcmp(name, "--trace") != 0 && strcmp(name, "--python") != 0 && strcmp(name, "--code") != 0 && strcmp(name, "--on") != 0)
				cr_assert_eq(strstr(text.data, name) != NULL, (option_rows[j].commands & command_rows[i].bit) != 0, "%s of %s", name, command_rows[i].name);
		}
		text_done(&text);
	}
}

Test(help, completions_name_every_command)
{
	static const char *const shells[] = { "bash", "zsh", "fish" };

	for (size_t i = 0; i < 3; i++) {
		struct text text;

		text_init(&text);
		cr_assert_eq(help_completion(&text, shells[i]), 0);
		cr_assert_not_null(strstr(text.data, "dump-trace"));
		cr_assert_not_null(strstr(text.data, "max-overhead"));
		text_done(&text);
	}
}

/* Every command that takes a process is completed with their numbers, every one that takes a file with files, no other with either. */
Test(help, completions_know_what_the_arguments_are)
{
	struct text text;

	text_init(&text);
	cr_assert_eq(help_completion(&text, "zsh"), 0);
	for (size_t i = 0; i < command_count; i++) {
		const char *begin, *end, *pids, *files;
		char word[32];

		snprintf(word, sizeof word, "\t%.*s) _arguments", (int)strcspn(command_rows[i].name, " "), command_rows[i].name);
		begin = strstr(text.data, word);
		cr_assert_not_null(begin, "%s", word);
		end = strstr(begin, ";;");
		pids = strstr(begin, "'*:process:_pids'");
		files = strstr(begin, "'*:file:_files'");
		cr_expect_eq(pids && pids < end, strstr(command_rows[i].arguments, "PID") != NULL, "processes after %s", command_rows[i].name);
		cr_expect_eq(files && files < end, strstr(command_rows[i].arguments, "TRACE") || strstr(command_rows[i].arguments, "SCRIPT") || strstr(command_rows[i].arguments, "TEXT") || strstr(command_rows[i].arguments, "BEFORE"),
		             "files after %s", command_rows[i].name);
	}
	text_done(&text);
}
