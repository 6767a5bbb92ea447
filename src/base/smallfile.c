/* Reading them whole: they are short, and their numbers are decimal. */
#include "base/smallfile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool smallfile_read(const char *path, char *out, size_t size)
{
	FILE *file = fopen(path, "re");
	size_t length;

	if (!file)
		return false;
	length = fread(out, 1, size - 1, file);
	out[length] = '\0';
	fclose(file);
	return length > 0;
}

static int64_t number_at(const char *text, int64_t fallback)
{
	int64_t number;
	char *end;

	errno = 0;
	number = strtoll(text, &end, 10);
	return end == text || errno ? fallback : number;
}

int64_t smallfile_number(const char *path, int64_t fallback)
{
	char text[64];

	return smallfile_read(path, text, sizeof text) ? number_at(text, fallback) : fallback;
}

int64_t smallfile_field(const char *text, const char *key, int64_t fallback)
{
	size_t length = strlen(key);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, key, length) == 0 && line[length] == ' ')
			return number_at(line + length + 1, fallback);
	}
	return fallback;
}
