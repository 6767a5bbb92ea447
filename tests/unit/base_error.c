/* Errors and their rows. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "base/error.h"

Test(error, fail_fills_and_keeps_errno)
{
	struct error err;

	errno = ENOENT;
	cr_assert_eq(fail(&err, ERR_OUTPUT, "cannot write %s", "x"), -1);
	cr_assert_eq(errno, ENOENT);
	cr_assert_eq(err.sys_errno, ENOENT);
	cr_assert_eq(err.code, ERR_OUTPUT);
	cr_assert_str_eq(err.text, "cannot write x");
	cr_assert_eq(fail(NULL, ERR_OUTPUT, "nobody listens"), -1);
}

Test(error, what_we_lack_is_no_missing_permission)
{
	cr_assert_eq(error_of(ENOMEM, ERR_PERMISSION), ERR_MEMORY);
	cr_assert_eq(error_of(EMFILE, ERR_PERMISSION), ERR_DESCRIPTORS);
	cr_assert_eq(error_of(ENFILE, ERR_EXITED), ERR_DESCRIPTORS);
	cr_assert_eq(error_of(EIO, ERR_PERMISSION), ERR_INTERNAL);
	cr_assert_eq(error_of(EACCES, ERR_PERMISSION), ERR_PERMISSION);
}

Test(error, memory_says_so_where_no_cause_is_told)
{
	struct error err;

	fail(&err, ERR_MEMORY, "reading %s", "a:b");
	cr_assert_str_eq(err.text, "reading a:b: out of memory");
	fail(&err, ERR_MEMORY, "starting it: %s", "too many threads");
	cr_assert_str_eq(err.text, "starting it: too many threads");
	fail(&err, ERR_MEMORY, "it cannot be read (%s)", "Cannot allocate memory");
	cr_assert_str_eq(err.text, "it cannot be read (Cannot allocate memory)");
}

Test(error, its_own_hint_goes_before_the_general_one)
{
	struct error err;

	fail(&err, ERR_ZOMBIE, "it ended");
	cr_assert_str_eq(error_hint(&err), "it has ended; its parent has not collected it yet");
	fail_hint(&err, "wait for %d", 7);
	cr_assert_str_eq(error_hint(&err), "wait for 7");
	fail(&err, ERR_ZOMBIE, "again");
	cr_assert_str_neq(error_hint(&err), "wait for 7");
}

Test(error, what_outranks_another_tells_both)
{
	struct error err, over;
	char longer[1024];

	errno = ENOSPC;
	fail(&err, ERR_OUTPUT, "cannot write a: %s", strerror(ENOSPC));
	errno = EAGAIN;
	fail(&over, ERR_NOT_CLEAN, "process 7 was left");
	fail_hint(&over, "try again");
	cr_assert_eq(fail_over(&err, &over), -1);
	cr_assert_str_eq(err.text, "cannot write a: No space left on device; process 7 was left");
	cr_assert_str_eq(error_hint(&err), "try again");
	cr_assert_eq(err.code, ERR_NOT_CLEAN);
	cr_assert_eq(err.sys_errno, ENOSPC);
	memset(longer, 'a', sizeof longer - 1);
	longer[sizeof longer - 1] = '\0';
	fail(&err, ERR_OUTPUT, "%s", longer);
	fail_over(&err, &over);
	cr_assert_eq(strlen(err.text), sizeof err.text - 1);
	cr_assert_str_eq(err.text + strlen(err.text) - 21, "a; process 7 was left");
	memset(over.text, 'b', sizeof over.text - 1);
	over.text[sizeof over.text - 1] = '\0';
	fail_over(&err, &over);
	cr_assert_eq(strlen(err.text), sizeof err.text - 1);
}

Test(error, text_is_one_line_without_control_characters)
{
	struct error err;

	fail(&err, ERR_USAGE, "comm is '%s'", "a\nb\x1b[2J\xff");
	cr_assert_str_eq(err.text, "comm is 'a?b?[2J?'");
}

Test(error, long_text_is_cut_at_a_whole_character)
{
	struct error err;
	char longer[2100];
	size_t i;

	for (i = 0; i < 2098; i += 2)
		memcpy(longer + i, "\xc3\xa9", 2);
	longer[i] = '\0';
	fail(&err, ERR_USAGE, "%s", longer); /* 1 023 bytes fit: half a character too many */
	cr_assert_eq(strlen(err.text), 1022u);
}

Test(error, every_row_has_a_name_a_status_and_a_hint)
{
	enum error_code code;
	struct error err;

	for (code = ERR_NONE + 1; code < ERR_COUNT; code++) {
		fail(&err, code, "x");
		cr_assert(strncmp(error_name(code), "E_", 2) == 0);
		cr_assert(error_status(code) > 0 && error_status(code) <= 130);
		cr_assert(*error_hint(&err));
	}
	cr_assert_eq(error_status(ERR_NONE), 0);
}
