/* Patterns: what fits, what is refused and why, and that what takes for ever ends. */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <pthread.h>
#include <string.h>

#include "base/pattern.h"

enum { STEPS = 100000 };

static struct pattern *made(const char *text)
{
	const char *why;
	char room[128];
	struct pattern *pattern = pattern_new(text, &why, room, sizeof room);

	cr_assert(pattern, "%s: %s", text, why);
	return pattern;
}

static bool fits(const char *pattern_text, const char *text, uint64_t *steps)
{
	struct pattern *pattern = made(pattern_text);
	bool result = pattern_matches(pattern, text, strlen(text), steps);

	pattern_free(pattern);
	return result;
}

struct pattern_row { char pattern[64], text[64]; bool fits; };

ParameterizedTestParameters(pattern, fits)
{
	static struct pattern_row rows[] = {
		{ "enc", "tokenizers.encode", true }, { "^enc", "tokenizers.encode", false }, { "(^|[.])recv(_into)?$", "socket.recv_into", true }, { "(^|[.])recv(_into)?$", "socket.recvfrom", false },
		{ "a{2,3}$", "baa", true }, { "[[:digit:]](]|$)", "a7", true }, { "[[:digit:](]", "(", true }, { "", "anything", true }, { "a.b$", "a\nb", true }, { "a$", "a\n", false },
		{ "^.$", "\xc3\xa4", false }, { "^\xc3\xa4$", "\xc3\xa4", true }, { "\\.py$", "x.py", true }, { "(?i)NORM", "layer_norm", true }, { "[^a]b", "\xff" "b", true },
	};

	return cr_make_param_array(struct pattern_row, rows, sizeof rows / sizeof *rows);
}

ParameterizedTest(struct pattern_row *row, pattern, fits)
{
	uint64_t steps = STEPS;

	cr_assert_eq(fits(row->pattern, row->text, &steps), row->fits, "%s in %s", row->pattern, row->text);
	cr_assert(steps > STEPS - 200, "%s: %lu left", row->pattern, (unsigned long)steps);
}

static void expect_refused(const char *text, const char *message)
{
	const char *why;
	char room[128];

	cr_assert_null(pattern_new(text, &why, room, sizeof room), "%s", text);
	cr_assert(why && strstr(why, message), "%s: %s", text, why);
}

Test(pattern, is_refused_with_a_reason)
{
	char longer[PATTERN_BYTES_MAX + 2];

	expect_refused("(", "parenthes");
	expect_refused("(a)\\1", "non-existent");
	expect_refused("[a", "character class");
	expect_refused("a*??*", "quantifier");
	expect_refused("(*UTF)a", "UTF");
	expect_refused("((a{1,999}){1,999}){1,999}", "too large");
	expect_refused("((((((((((((a|b){0,2}){0,2}){0,2}){0,2}){0,2}){0,2}){0,2}){0,2}){0,2}){0,2}){0,2}){0,2}", "too large");
	memset(longer, 'a', sizeof longer - 1);
	longer[sizeof longer - 1] = '\0';
	expect_refused(longer, "256 bytes");
	longer[PATTERN_BYTES_MAX] = '\0';
	pattern_free(made(longer));
}

/* Of these glibc's regcomp() makes gigabytes, or never ends. */
Test(pattern, repetitions_of_repetitions_stay_small, .timeout = 20)
{
	uint64_t steps = STEPS;
	char text[PATTERN_BYTES_MAX + 1];
	const char *const marks[] = { "+", "*", "?", "*?" };

	for (size_t mark = 0; mark < sizeof marks / sizeof *marks; mark++) {
		const size_t depth = 60 / strlen(marks[mark]);

		memset(text, 0, sizeof text);
		memset(text, '(', depth);
		strcat(text, "a|b");
		for (size_t i = 0; i < depth; i++)
			strcat(strcat(text, ")"), marks[mark]);
		pattern_free(made(text));
	}
	cr_assert(fits("((((((a+)+)+b)+)+)+)+", "aaaab", &steps));
}

Test(pattern, steps_end_what_takes_for_ever, .timeout = 20)
{
	char text[65];
	uint64_t steps = STEPS;

	memset(text, 'a', 63);
	text[63] = 'b';
	text[64] = '\0';
	cr_assert_not(fits("^(a+)+$", text, &steps));
	cr_assert_eq(steps, 0);
	cr_assert_not(fits("a", "a", &steps), "nothing fits without steps");
	steps = STEPS;
	cr_assert(fits("^(a+)+b$", text, &steps));
	cr_assert(steps > 0);
}

Test(pattern, those_of_one_owner_are_chained)
{
	struct pattern *first = made("a"), *second = made("b");

	cr_assert_null(pattern_next(first));
	pattern_link(first, second);
	cr_assert_eq(pattern_next(first), second);
	pattern_free(first);
	pattern_free(second);
	pattern_free(NULL);
}

/* ---- traces that are analyzed side by side ---- */

enum { MATCHERS = 4, MATCHES = 2000, STEPS_GIVEN = 100000 };
static const char side_text[] = "aaaaaaaaaacb";

static void *match_often(void *pattern)
{
	uint64_t first = 0, wrong = 0;

	for (int i = 0; i < MATCHES; i++) {
		uint64_t steps = STEPS_GIVEN;

		wrong += pattern_matches(pattern, side_text, sizeof side_text - 1, &steps);
		first = i ? first : steps;
		wrong += steps != first || steps == STEPS_GIVEN;
	}
	return (void *)(uintptr_t)wrong;
}

/* Each counts its own steps. */
Test(pattern, serves_several_threads_at_once)
{
	struct pattern *pattern = made("(a|aa)+b");
	pthread_t threads[MATCHERS];

	for (size_t i = 0; i < MATCHERS; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, match_often, pattern), 0);
	for (size_t i = 0; i < MATCHERS; i++) {
		void *wrong;

		pthread_join(threads[i], &wrong);
		cr_expect_null(wrong, "thread %zu: %zu of %d", i, (size_t)(uintptr_t)wrong, MATCHES);
	}
	pattern_free(pattern);
}
