/* The status line: what fits, and in which letters. */
#include <criterion/criterion.h>
#include <string.h>

#include "cli/status.h"

static const char *fit(const char *line, size_t characters, bool ascii)
{
	static char out[32];

	status_fit(line, characters, ascii, out, sizeof out);
	return out;
}

Test(status, cuts_by_characters)
{
	cr_assert_str_eq(fit("recording…", 10, false), "recording…");
	cr_assert_str_eq(fit("µµµµ", 2, false), "µµ");
	cr_assert_str_eq(fit("abc", 0, false), "");
}

Test(status, writes_ascii_where_that_is_wanted)
{
	cr_assert_str_eq(fit("detaching… 3 s", 40, true), "detaching... 3 s");
	cr_assert_str_eq(fit("5 µs", 40, true), "5 ?s");
}

Test(status, stays_within_its_room)
{
	cr_assert_leq(strlen(fit("0123456789012345678901234567890123456789", 100, false)), 31);
	cr_assert_leq(strlen(fit("……………………………………………………………………", 100, true)), 31);
}

Test(status, says_nothing_when_quiet)
{
	struct status *status = status_open(true);

	cr_assert_null(status);
	cr_assert_not(status_due(status));
	status_phase(status, "attaching");
	status_say(status, "line", NULL);
	status_clear(status);
	status_close(status);
}
