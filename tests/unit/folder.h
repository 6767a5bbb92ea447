/* A test's own folder in /tmp. */
#ifndef INFERSCOPE_TEST_FOLDER_H
#define INFERSCOPE_TEST_FOLDER_H

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { FOLDER_BYTES = 64 };

static inline void folder_make(char folder[FOLDER_BYTES])
{
	snprintf(folder, FOLDER_BYTES, "/tmp/inferscope-test-XXXXXX");
	cr_assert_not_null(mkdtemp(folder));
}

/* Makes the folders in it on the way to PATH, which ends with a '/' where the last one is a folder, too. */
static inline void folder_way(const char *folder, const char *path)
{
	char way[512];

	snprintf(way, sizeof way, "%s/%s", folder, path);
	for (char *slash = way + strlen(folder) + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
		*slash = '\0';
		cr_assert(mkdir(way, 0700) == 0 || errno == EEXIST, "%s", way);
	}
}

/* Makes FILE, and the folders on the way to it. */
static inline void folder_write_bytes(const char *folder, const char *file, const void *bytes, size_t size)
{
	char path[512];
	FILE *out;

	folder_way(folder, file);
	snprintf(path, sizeof path, "%s/%s", folder, file);
	out = fopen(path, "w");
	cr_assert(out && fwrite(bytes, 1, size, out) == size && fclose(out) == 0, "%s", path);
}

static inline void folder_write(const char *folder, const char *file, const char *text)
{
	folder_write_bytes(folder, file, text, strlen(text));
}

/* With all that is in it. */
static inline void folder_remove(const char *folder)
{
	char command[FOLDER_BYTES + 16];

	snprintf(command, sizeof command, "rm -rf '%s'", folder);
	cr_assert_eq(system(command), 0);
}

#endif
