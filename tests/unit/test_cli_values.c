/* Values as people type them. */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <string.h>

#include "base/words.h"
#include "cli/options.h"
#include "cli/value.h"

struct duration { char text[16]; bool good; uint64_t ns; };

ParameterizedTestParameters(value, reads_durations)
{
	static struct duration rows[] = {
		{ "30", true, 30000000000 }, { "30s", true, 30000000000 }, { "500ms", true, 500000000 }, { "2m", true, 120000000000 }, { "0", true, 0 },
		{ "1.5s", true, 1500000000 }, { ".5", true, 500000000 }, { "1h", true, 3600000000000 }, { "250us", true, 250000 },
		{ "", false, 0 }, { "s", false, 0 }, { "-1", false, 0 }, { "5x", false, 0 }, { "1 s", false, 0 }, { "99999999999", false, 0 }, { "nan", false, 0 }, { "1e3", false, 0 },
	};

	return cr_make_param_array(struct duration, rows, sizeof rows / sizeof *rows);
}

ParameterizedTest(struct duration *row, value, reads_durations)
{
	uint64_t ns = 77;

	cr_assert_eq(value_duration(row->text, &ns), row->good, "%s", row->text);
	cr_assert_eq(ns, row->good ? row->ns : 77, "%s", row->text);
}

struct moment { char text[16]; bool good; uint64_t at; };

ParameterizedTestParameters(value, reads_moments)
{
	static struct moment rows[] = { /* now is 1000.25 s */
		{ "/10s", true, 1010000000000 }, { "/250ms", true, 1000500000000 }, { "/1m", true, 1020000000000 }, { "+30s", true, 1030250000000 }, { "+0", true, 1000250000000 },
		{ "@1234", true, 1234000000000 }, { "/0", false, 0 }, { "10s", false, 0 }, { "/", false, 0 }, { "@", false, 0 }, { "@x", false, 0 }, { "+-1", false, 0 }, { "", false, 0 },
	};

	return cr_make_param_array(struct moment, rows, sizeof rows / sizeof *rows);
}

ParameterizedTest(struct moment *row, value, reads_moments)
{
	uint64_t at = 77;

	cr_assert_eq(value_moment(row->text, 1000250000000, &at), row->good, "%s", row->text);
	cr_assert_eq(at, row->good ? row->at : 77, "%s", row->text);
}

Test(value, reads_percentages)
{
	uint32_t ppm = 0;

	cr_assert(value_percent("5%", &ppm));
	cr_assert_eq(ppm, 50000);
	cr_assert(value_percent("0.5", &ppm));
	cr_assert_eq(ppm, 5000);
	cr_assert(value_percent("none", &ppm));
	cr_assert_eq(ppm, 0);
	cr_assert_not(value_percent("0", &ppm));
	cr_assert_not(value_percent("101%", &ppm));
	cr_assert_not(value_percent("5%%", &ppm));
	cr_assert_not(value_percent("%", &ppm));
}

Test(value, a_pid_is_a_positive_number_and_nothing_else)
{
	int pid = 0;

	cr_assert(value_pid("4711", &pid));
	cr_assert_eq(pid, 4711);
	cr_assert(value_pid("999999999", &pid));
	cr_assert_not(value_pid("0", &pid));
	cr_assert_not(value_pid("-3", &pid));
	cr_assert_not(value_pid("12abc", &pid));
	cr_assert_not(value_pid("", &pid));
	cr_assert_not(value_pid("99999999999999999999999", &pid));
	cr_assert_not(value_pid("4294967297", &pid));
}

Test(value, counts_stay_within_their_limits)
{
	uint64_t count;

	cr_assert(value_count("1000", 0, 1000, &count));
	cr_assert_not(value_count("1001", 0, 1000, &count));
	cr_assert_not(value_count("1k", 0, 10000, &count));
}

Test(value, distance_counts_a_swap_as_one)
{
	cr_assert_eq(words_distance("duration", 8, "duraiton", 8), 1);
	cr_assert_eq(words_distance("abc", 3, "abc", 3), 0);
	cr_assert_eq(words_distance("", 0, "abc", 3), 3);
}

Test(value, a_word_is_near_by_its_beginning_or_by_few_edits_for_its_length)
{
	unsigned closest = 99;

	cr_assert(words_nearer("anlyse", 6, "analyze", &closest) && closest == 2);
	cr_assert_not(words_nearer("nope", 4, "top", &closest));
	cr_assert(words_nearer("ana", 3, "analyze", &closest) && closest == 0);
	cr_assert_not(words_nearer("ana", 3, "analysis", &closest), "not nearer");
}

Test(option, suggests_what_was_meant)
{
	cr_assert_str_eq(option_suggest("duraton", 7, ATTACH), "duration");
	cr_assert_str_eq(option_suggest("max-overhed", 11, ATTACH), "max-overhead");
	cr_assert_str_eq(option_suggest("trace-size", 10, ATTACH), "trace-size-mb");
	cr_assert_null(option_suggest("zzzzzzzz", 8, ATTACH));
}

Test(option, every_row_has_a_good_default_and_no_two_share_a_name_or_letter)
{
	struct options options;
	struct error err = { 0 };

	cr_assert_eq(options_init(&options, &err), 0);
	for (int i = 0; i < OPT_COUNT; i++) {
		struct options copy;

		cr_assert_eq(options_init(&copy, &err), 0);
		if (*option_rows[i].standard)
			cr_assert_eq(options_set(&copy, (enum option_id)i, option_rows[i].standard, ORIGIN_FILE, "default", &err), 0, "%s", option_rows[i].name);
		options_done(&copy);
		for (int j = 0; j < i; j++) {
			bool namesakes = strcmp(option_rows[i].name, option_rows[j].name) == 0;

			/* Of different commands, and only one of them can be set elsewhere than on the command line. */
			cr_assert(!namesakes || (!(option_rows[i].commands & option_rows[j].commands) && (option_rows[i].reach == REACH_ONCE || option_rows[j].reach == REACH_ONCE)),
			          "%s", option_rows[i].name);
			if (option_rows[i].letter && option_rows[i].commands & option_rows[j].commands)
				cr_assert_neq(option_rows[i].letter, option_rows[j].letter, "%s and %s", option_rows[i].name, option_rows[j].name);
		}
	}
	options_done(&options);
}

Test(option, a_stronger_origin_wins_whatever_comes_first)
{
	struct options options;

	options_init(&options, NULL);
	cr_assert_eq(options_set(&options, OPT_DURATION, "1s", ORIGIN_COMMAND_LINE, "", NULL), 0);
	cr_assert_eq(options_set(&options, OPT_DURATION, "2s", ORIGIN_ENVIRONMENT, "", NULL), 0);
	cr_assert_eq(options_set(&options, OPT_DURATION, "3s", ORIGIN_FILE, "", NULL), 0);
	cr_assert_eq(options_duration_ns(&options, OPT_DURATION), 1000000000);
	cr_assert_eq(options_set(&options, OPT_RATE, "10", ORIGIN_FILE, "", NULL), 0);
	cr_assert_eq(options_set(&options, OPT_RATE, "20", ORIGIN_ENVIRONMENT, "", NULL), 0);
	cr_assert_eq(options_count(&options, OPT_RATE), 20);
	options_done(&options);
}
