/* What --every keeps is bounded, and nothing else goes. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/rounds.h"
#include "tests/unit/folder.h"

static char folder[FOLDER_BYTES];

static void put(const char *round, const char *name, size_t bytes)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof path, "%s/%s", folder, round);
	mkdir(path, 0700);
	snprintf(path, sizeof path, "%s/%s/%s", folder, round, name);
	file = fopen(path, "w");
	cr_assert_not_null(file);
	for (size_t i = 0; i < bytes; i++)
		fputc('x', file);
	fclose(file);
}

static bool there(const char *name)
{
	char path[256];

	snprintf(path, sizeof path, "%s/%s", folder, name);
	return access(path, F_OK) == 0;
}

static void arrange(void)
{
	folder_make(folder);
	put("inferscope-20260101T000000Z", "process-1.iscope", 100000);
	put("inferscope-20260101T001000Z", "process-1.iscope", 100000);
	put("inferscope-20260101T002000Z", "process-1.iscope", 100000);
	put("inferscope-mine", "process-1.iscope", 500000);
}

static void clean(void)
{
	folder_remove(folder);
}

TestSuite(rounds, .init = arrange, .fini = clean);

Test(rounds, the_oldest_go)
{
	cr_assert_eq(rounds_prune(folder, 250000, NULL), 1);
	cr_assert(!there("inferscope-20260101T000000Z") && there("inferscope-20260101T001000Z") && there("inferscope-20260101T002000Z"));
}

Test(rounds, the_latest_stays_whatever_its_size)
{
	cr_assert_eq(rounds_prune(folder, 1, NULL), 2);
	cr_assert(there("inferscope-20260101T002000Z/process-1.iscope"));
}

Test(rounds, what_is_not_named_as_one_is_not_touched)
{
	rounds_prune(folder, 1, NULL);
	cr_assert(there("inferscope-mine/process-1.iscope"));
}

Test(rounds, nothing_goes_while_there_is_room)
{
	cr_assert_eq(rounds_prune(folder, 1 << 20, NULL), 0);
}

Test(rounds, a_link_is_not_followed)
{
	char target[128], link[192];

	snprintf(target, sizeof target, "%s/inferscope-mine", folder);
	snprintf(link, sizeof link, "%s/inferscope-20250101T000000Z", folder);
	cr_assert_eq(symlink(target, link), 0);
	rounds_prune(folder, 1, NULL);
	cr_assert(there("inferscope-mine/process-1.iscope"));
}

Test(rounds, a_folder_that_is_not_there_is_told)
{
	struct error err = { 0 };

	cr_assert_eq(rounds_prune("/no/such/folder", 1, &err), -1);
	cr_assert_eq(err.code, ERR_OUTPUT);
}
