#include "report/source.h"

#include <ctype.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Newer than glibc 2.31 knows (Linux 5.6). */
#ifndef SYS_openat2
#define SYS_openat2 437
#endif

enum { TAB_COLUMNS = 4, DECORATORS_MAX = 16, LINE_BYTES_MAX = 1024 };

struct lines { const char *at, *end; };

/* Without openat2 (before Linux 5.6) a link could lead out of ROOT: no source then. */
static int open_below(const char *root, const char *path)
{
	struct open_how how = { .flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	int folder = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC), fd;

	if (folder < 0)
		return -1;
	fd = (int)syscall(SYS_openat2, folder, path, &how, sizeof how);
	close(folder);
	return fd;
}

/* The caller's to free; NULL when it is no file to trust, or out of memory, which ARENA remembers. */
static char *read_file(struct arena *arena, const char *root, const char *path, uint64_t newest_ns, size_t *length)
{
	int fd = open_below(root, path);
	char *content = NULL;
	struct stat status;
	ssize_t got = 0;

	*length = 0;
	if (fd < 0)
		return NULL;
	if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0 && status.st_size <= SOURCE_BYTES_MAX &&
	    (uint64_t)status.st_mtim.tv_sec * 1000000000 + (uint64_t)status.st_mtim.tv_nsec <= newest_ns) {
		content = malloc((size_t)status.st_size);
		arena->failed |= !content;
	}
	while (content && *length < (size_t)status.st_size && (got = read(fd, content + *length, (size_t)status.st_size - *length)) > 0)
		*length += (size_t)got;
	close(fd);
	if (got < 0) {
		free(content);
		return NULL;
	}
	return content;
}

static bool next_line(struct lines *lines, const char **line, size_t *length)
{
	const char *end;

	if (lines->at >= lines->end)
		return false;
	end = memchr(lines->at, '\n', (size_t)(lines->end - lines->at));
	*line = lines->at;
	*length = (size_t)((end ? end : lines->end) - lines->at);
	lines->at = end ? end + 1 : lines->end;
	while (*length && (*line)[*length - 1] == '\r')
		--*length;
	return true;
}

static bool has_word(const char *line, size_t length, const char *word)
{
	size_t size = strlen(word);

	for (const char *at = line; (at = memmem(at, length - (size_t)(at - line), word, size)); at++) {
		bool begins = at == line || !(isalnum((unsigned char)at[-1]) || at[-1] == '_');
		bool ends = at + size == line + length || !(isalnum((unsigned char)at[size]) || at[size] == '_');

		if (begins && ends)
			return true;
	}
	return false;
}

static size_t blanks(const char *line, size_t length)
{
	size_t count = 0;

	while (count < length && (line[count] == ' ' || line[count] == '\t'))
		count++;
	return count;
}

/* "Server.handle" is called "handle" in its file. A module's body may begin with anything. */
static bool names_function(struct lines lines, const char *function)
{
	const char *name = strrchr(function, '.'), *line;
	size_t length, decorators = 0;

	name = name ? name + 1 : function;
	if (strcmp(name, "<module>") == 0)
		return true;
	if (strcmp(name, "<lambda>") == 0)
		name = "lambda";
	while (*name && *name != '<' && decorators++ < DECORATORS_MAX && next_line(&lines, &line, &length)) {
		size_t deep = blanks(line, length);

		if (has_word(line, length, name))
			return true;
		if (decorators == 1 && (deep == length || line[deep] != '@'))
			return false;
	}
	return false;
}

static const char *keep_line(struct arena *arena, const char *line, size_t length)
{
	char kept[LINE_BYTES_MAX + 1];
	size_t used = 0;

	for (size_t i = 0; i < length && used < LINE_BYTES_MAX - TAB_COLUMNS; i++)
		if (line[i] == '\t') {
			memset(kept + used, ' ', TAB_COLUMNS);
			used += TAB_COLUMNS;
		} else if (line[i]) {
			kept[used++] = line[i];
		}
	return arena_strndup(arena, kept, used);
}

/* From its first line on, until something begins that stands no deeper. */
static const struct source *keep_lines(struct arena *arena, struct lines lines, uint32_t first)
{
	struct source *source = arena_alloc(arena, sizeof *source);
	size_t length, indent = 0, shown = 0;
	bool body = false;
	const char *line;

	if (!source)
		return NULL;
	source->first = first;
	while (shown < SOURCE_LINES && next_line(&lines, &line, &length)) {
		size_t deep = blanks(line, length);

		if (!shown)
			indent = deep;
		if (body && deep < length && deep <= indent && line[deep] != ')' && line[deep] != ']')
			break;
		body |= deep > indent;
		source->lines[shown] = keep_line(arena, line, length);
		if (!source->lines[shown])
			return NULL;
		shown++;
		if (deep < length)
			source->count = shown; /* blank lines at the end go */
	}
	return source->count ? source : NULL;
}

static bool is_source(const struct location *location)
{
	size_t length = strlen(location->file);

	return location->kind == FUNCTION_PYTHON && location->line && location->file[0] == '/' && length > 3 && strcmp(location->file + length - 3, ".py") == 0;
}

const struct source *source_read(struct arena *arena, const char *root, const struct location *location, uint64_t newest_ns)
{
	const struct source *source = NULL;
	size_t length, skipped;
	const char *line;
	struct lines lines;
	char *content;

	if (!is_source(location) || !(content = read_file(arena, root, location->file, newest_ns, &length)))
		return NULL;
	lines = (struct lines){ content, content + length };
	for (uint32_t number = 1; number < location->line && next_line(&lines, &line, &skipped); number++)
		;
	if (names_function(lines, location->function))
		source = keep_lines(arena, lines, location->line);
	free(content);
	return source;
}
