/* A test's own folder in /tmp. */
#ifndef INFERSCOPE_TEST_FOLDER_H
#define INFERSCOPE_TEST_FOLDER_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

enum { FOLDER_BYTES = 64 };

static inline void folder_make(char folder[FOLDER_BYTES])
{
	snprintf(folder, FOLDER_BYTES, "/tmp/inferscope-test-XXXXXX");
	cr_assert_not_null(mkdtemp(folder));
}

/* Makes FILE, and the folders on the way to it. */
static inline void folder_write(const char *folder, const char *file, const char *text)
{
	char path[512];
	FILE *out;

	snprintf(path, sizeof path, "mkdir -p $(dirname %s/%s)", folder, file);
	cr_assert_eq(system(path), 0);
	snprintf(path, sizeof path, "%s/%s", folder, file);
	out = fopen(path, "w");
	cr_assert_not_null(out, "%s", path);
	fputs(text, out);
	fclose(out);
}

/* With all that is in it. */
static inline void folder_remove(const char *folder)
{
	char command[FOLDER_BYTES + 16];

	snprintf(command, sizeof command, "rm -rf '%s'", folder);
	cr_assert_eq(system(command), 0);
}

#endif
