/* PCRE2: of bounded size once compiled, whatever is repeated (glibc's regcomp() takes exponential room and time), and counting while it matches. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "base/pattern.h"

#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

enum { HEAP_KIB_MAX = 16384 }; /* to return to other ways of matching */

struct pattern { pcre2_code *code; const struct pattern *next; };

/* Before each part of the pattern, at each place where it is tried. */
static int count_step(pcre2_callout_block *block, void *steps)
{
	uint64_t *left = steps;

	if (!*left)
		return PCRE2_ERROR_CALLOUT;
	--*left;
	return 0;
}

static int compile(struct pattern *pattern, const char *text)
{
	const uint32_t options = PCRE2_AUTO_CALLOUT | PCRE2_DOLLAR_ENDONLY | PCRE2_DOTALL | PCRE2_NEVER_UCP | PCRE2_NEVER_UTF | PCRE2_NO_AUTO_CAPTURE;
	PCRE2_SIZE offset;
	int failure = 0;

	pattern->code = pcre2_compile((PCRE2_SPTR)text, PCRE2_ZERO_TERMINATED, options, &failure, &offset, NULL);
	if (!pattern->code)
		return failure;
	return 0;
}

struct pattern *pattern_new(const char *text, const char **why, char *room, size_t room_size)
{
	struct pattern *pattern;
	int failure;

	*why = NULL;
	if (strlen(text) > PATTERN_BYTES_MAX) {
		*why = "a pattern has at most 256 bytes";
		return NULL;
	}
	pattern = calloc(1, sizeof *pattern);
	if (!pattern)
		return NULL;
	failure = compile(pattern, text);
	if (!failure)
		return pattern;
	pattern_free(pattern);
	if (failure != PCRE2_ERROR_NOMEMORY && failure != PCRE2_ERROR_HEAP_FAILED) {
		pcre2_get_error_message(failure, (PCRE2_UCHAR *)room, room_size);
		*why = room;
	}
	return NULL;
}

void pattern_free(struct pattern *pattern)
{
	if (!pattern)
		return;
	pcre2_code_free(pattern->code);
	free(pattern);
}

bool pattern_matches(const struct pattern *pattern, const char *text, size_t length, uint64_t *steps)
{
	/* Of this call alone: traces that are analyzed side by side match the same patterns. */
	pcre2_match_data *data = pcre2_match_data_create(1, NULL);
	pcre2_match_context *context = pcre2_match_context_create(NULL);
	int result = PCRE2_ERROR_NOMEMORY;

	if (data && context) {
		pcre2_set_heap_limit(context, HEAP_KIB_MAX);
		pcre2_set_callout(context, count_step, steps);
		result = pcre2_match(pattern->code, (PCRE2_SPTR)text, length, 0, 0, data, context);
	}
	pcre2_match_context_free(context);
	pcre2_match_data_free(data);
	if (result < 0 && result != PCRE2_ERROR_NOMATCH)
		*steps = 0;
	return result >= 0;
}

void pattern_link(struct pattern *pattern, const struct pattern *next)
{
	pattern->next = next;
}

const struct pattern *pattern_next(const struct pattern *pattern)
{
	return pattern->next;
}
