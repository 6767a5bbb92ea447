/* What is left out of a trace. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "collector/collector.h"

static bool skips(uint32_t by_default, uint32_t presets, const char *patterns, size_t size, const char *name, const char *file)
{
	struct page *page = calloc(1, sizeof *page);
	bool result;

	page->skip_default = by_default;
	page->skip_presets = presets;
	memcpy(page->skip_patterns, patterns, size);
	result = skip_matches(page, name, "", file);
	free(page);
	return result;
}
#define PATTERNS(text) text, sizeof text

Test(collector_skip, matches_globs_over_name_and_file)
{
	cr_assert(skips(0, 0, PATTERNS("foo\0*bar*"), "rebarred", "/x.py"));
	cr_assert(skips(0, 0, PATTERNS("*/tests/*"), "f", "/a/tests/x.py"));
	cr_assert(skips(0, 0, PATTERNS("f?o"), "foo", "/x.py"));
	cr_assert(skips(0, 0, PATTERNS("*a*b*c"), "aabbcbc", "/x.py"));
	cr_assert_not(skips(0, 0, PATTERNS("f?o"), "fo", "/x.py"));
	cr_assert_not(skips(0, 0, PATTERNS("foo"), "food", "/x.py"));
	cr_assert_not(skips(0, 0, PATTERNS("*a*b*c"), "aabbcbd", "/x.py"));
	cr_assert_not(skips(0, 0, PATTERNS(""), "f", "/x.py"));
}

Test(collector_skip, reads_no_pattern_that_does_not_end)
{
	struct page *page = calloc(1, sizeof *page);

	memset(page->skip_patterns, '*', sizeof page->skip_patterns);
	cr_assert_not(skip_matches(page, "f", "", "x"));
	free(page);
}

Test(collector_skip, prefers_the_qualified_name)
{
	struct page *page = calloc(1, sizeof *page);

	strcpy(page->skip_patterns, "Model.*");
	cr_assert(skip_matches(page, "forward", "Model.forward", "/x.py"));
	cr_assert_not(skip_matches(page, "forward", "Other.forward", "/x.py"));
	free(page);
}

Test(collector_skip, knows_its_presets)
{
	cr_assert(skips(1, 0, PATTERNS(""), "_find_and_load", "<frozen importlib._bootstrap>"));
	cr_assert_not(skips(1, 0, PATTERNS(""), "f", "/home/me/importlib_user.py"));
	cr_assert(skips(0, 1, PATTERNS(""), "__init__", "/x.py"));
	cr_assert_not(skips(0, 1, PATTERNS(""), "____", "/x.py"));
	cr_assert_not(skips(0, 1, PATTERNS(""), "__init", "/x.py"));
	cr_assert(skips(0, 2, PATTERNS(""), "run", "/usr/lib/python3.11/threading.py"));
	cr_assert(skips(0, 2, PATTERNS(""), "run", "/usr/lib/python3.11/asyncio/events.py"));
	cr_assert_not(skips(0, 2, PATTERNS(""), "run", "/usr/lib/python3.11/site-packages/asyncio/events.py"));
	cr_assert_not(skips(0, 2, PATTERNS(""), "run", "/usr/lib/python3.11/json/decoder.py"));
	cr_assert_not(skips(0, 2, PATTERNS(""), "run", "/home/me/threading.py"));
}
