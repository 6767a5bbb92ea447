/* regcomp() with limits: glibc expands repetitions, so that nested ones grow without bound, and its back-references take exponential time. */
#include "analyze/pattern.h"

#include <ctype.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

enum { REPEAT_MAX = 64, TEXT_BYTES_MAX = 1024 };

struct pattern { regex_t compiled; const struct pattern *next; };

/* The largest number in {m,n} at AT, or -1 when there is none. */
static long repeat_at(const char *at)
{
	long largest = -1, number = 0;
	bool digits = false;

	for (at++; *at && *at != '}'; at++) {
		if (isdigit((unsigned char)*at)) {
			number = number < REPEAT_MAX * 10 ? number * 10 + (*at - '0') : number;
			digits = true;
			largest = number > largest ? number : largest;
		} else if (*at == ',') {
			number = 0;
		} else {
			return -1;
		}
	}
	return digits ? largest : -1;
}

/* The last byte of a [class] at AT, or of the text. [:digit:], [.-.] and [=a=] may stand in one. */
static const char *class_end(const char *at)
{
	at += at[1] == '^';
	at += at[1] == ']';
	for (at++; *at && *at != ']'; at++) {
		if (*at == '[' && at[1] && strchr(":.=", at[1])) {
			const char end[] = { at[1], ']', '\0' }, *inner = strstr(at + 2, end);

			at = inner ? inner + 1 : at;
		}
	}
	return *at ? at : at - 1;
}

/*
 * How often glibc writes an atom out, repetitions of repetitions multiplied: {m,n} as often as it says, + twice; and where * and ? repeat one another it
 * walks twice as many ways for each. WITHIN: the most in a group so far, for each group that is open; LAST: of what stands before.
 */
static const char *refusal(const char *text)
{
	long within[PATTERN_BYTES_MAX + 1] = { 1 }, last = 1;
	size_t depth = 0;

	if (strlen(text) > PATTERN_BYTES_MAX)
		return "a pattern has at most 256 bytes";
	for (const char *at = text; *at; at++) {
		long repeat = *at == '+' || *at == '*' || *at == '?' ? 2 : *at == '{' ? repeat_at(at) : 0;

		if (repeat) {
			last *= repeat > 1 ? repeat : 1;
			if (last > REPEAT_MAX)
				return "the repetitions {m,n} + * ? of a pattern multiply to at most 64 where one repeats another";
			if (*at == '{' && repeat > 0)
				at += strcspn(at, "}");
		} else if (*at == '(') {
			within[++depth] = last = 1;
		} else if (*at == ')' && depth) {
			last = within[depth--];
		} else {
			last = 1;
			if (*at == '\\' && isdigit((unsigned char)at[1]))
				return "back-references are not used here";
			if (*at == '\\')
				at += at[1] != '\0';
			else if (*at == '[')
				at = class_end(at);
		}
		if (last > within[depth])
			within[depth] = last;
	}
	return NULL;
}

struct pattern *pattern_new(const char *text, const char **why, char *room, size_t room_size)
{
	struct pattern *pattern;
	int failure;

	*why = refusal(text);
	if (*why)
		return NULL;
	pattern = calloc(1, sizeof *pattern);
	if (!pattern)
		return NULL;
	failure = regcomp(&pattern->compiled, text, REG_EXTENDED | REG_NOSUB);
	if (!failure)
		return pattern;
	regerror(failure, &pattern->compiled, room, room_size);
	*why = failure == REG_ESPACE ? NULL : room;
	free(pattern);
	return NULL;
}

void pattern_free(struct pattern *pattern)
{
	if (!pattern)
		return;
	regfree(&pattern->compiled);
	free(pattern);
}

bool pattern_matches(const struct pattern *pattern, const char *text)
{
	char cut[TEXT_BYTES_MAX + 1];

	if (strnlen(text, TEXT_BYTES_MAX + 1) > TEXT_BYTES_MAX) {
		memcpy(cut, text, TEXT_BYTES_MAX);
		cut[TEXT_BYTES_MAX] = '\0';
		text = cut;
	}
	return regexec(&pattern->compiled, text, 0, NULL, 0) == 0;
}

void pattern_link(struct pattern *pattern, const struct pattern *next)
{
	pattern->next = next;
}

const struct pattern *pattern_next(const struct pattern *pattern)
{
	return pattern->next;
}
