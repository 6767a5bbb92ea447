/* Reads /proc/PID/maps and answers what lies where, and where nothing does. */
#include "base/mappings.h"
#include "base/search.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_TEXT_BYTES (64u << 20) /* 65 530 mappings (the kernel's default limit) with long names are below 16 MiB */
#ifdef __aarch64__
#define USER_END 0xffffffff0000ull
#define GAP_ABOVE_LOW true /* the only large one may begin below; what lies between libraries and the stack is small here, and little pages of ours divide it */
#else
#define USER_END 0x7fffffff0000ull
#define GAP_ABOVE_LOW false
#endif
#define GAP_LOW 0x10000000000ull /* above what non-PIE programs, their heap and 32-bit tricks use */
#define GAP_MARGIN 0x2000000ull  /* room for neighbours that grow */

static char *read_whole(const struct procfs *procfs, pid_t pid, size_t *length)
{
	size_t capacity = 64 << 10;
	char *text = NULL;

	while (capacity <= MAX_TEXT_BYTES) {
		char *bigger = realloc(text, capacity);
		ssize_t got;

		if (!bigger)
			break;
		text = bigger;
		got = procfs_read(procfs, pid, "maps", text, capacity);
		if (got < 0) {
			int saved = errno;

			free(text);
			errno = saved;
			return NULL;
		}
		if ((size_t)got < capacity - 1) {
			*length = (size_t)got;
			return text;
		}
		capacity *= 4;
	}
	free(text);
	errno = ENOMEM;
	return NULL;
}

static bool take_number(const char **cursor, int base, char end, uint64_t *out)
{
	char *after;

	errno = 0;
	*out = strtoull(*cursor, &after, base);
	if (after == *cursor || errno || *after != end)
		return false;
	*cursor = after + 1;
	return true;
}

/* "55d0-55d1 r-xp 00001000 08:01 123   /usr/bin/python3"; LINE ends with NUL. */
static bool parse_line(const char *line, struct mapping *out)
{
	uint64_t major, minor;

	memset(out, 0, sizeof *out);
	if (!take_number(&line, 16, '-', &out->start) || !take_number(&line, 16, ' ', &out->end) || out->start >= out->end)
		return false;
	if (strlen(line) < 5 || line[4] != ' ')
		return false;
	out->readable = line[0] == 'r';
	out->writable = line[1] == 'w';
	out->executable = line[2] == 'x';
	out->shared = line[3] == 's';
	line += 5;
	if (!take_number(&line, 16, ' ', &out->offset) || !take_number(&line, 16, ':', &major) || !take_number(&line, 16, ' ', &minor))
		return false;
	out->device_major = (uint32_t)major;
	out->device_minor = (uint32_t)minor;
	out->inode = strtoull(line, NULL, 10);
	line += strspn(line, "0123456789");
	out->path = line + strspn(line, " ");
	return true;
}

static int parse_in_place(char *text, size_t length, struct maps *out)
{
	size_t lines = 1, count = 0;
	struct mapping *list;
	char *line = text;

	for (size_t i = 0; i < length; i++)
		lines += text[i] == '\n';
	list = calloc(lines, sizeof *list);
	if (!list) {
		free(text);
		errno = ENOMEM;
		return -1;
	}
	while (line && *line) {
		char *end = strchr(line, '\n');

		if (end)
			*end = '\0';
		/* Sorted and apart, whatever the text says: the rest relies on it. */
		if (parse_line(line, &list[count]) && (count == 0 || list[count].start >= list[count - 1].end))
			count++;
		line = end ? end + 1 : NULL;
	}
	out->list = list;
	out->count = count;
	out->text = text;
	return 0;
}

int maps_read(const struct procfs *procfs, pid_t pid, struct maps *out)
{
	size_t length = 0;
	char *text = read_whole(procfs, pid, &length);

	return text ? parse_in_place(text, length, out) : -1;
}

int maps_parse(const char *text, size_t length, struct maps *out)
{
	char *copy = malloc(length + 1);

	if (!copy) {
		errno = ENOMEM;
		return -1;
	}
	memcpy(copy, text, length);
	copy[length] = '\0';
	return parse_in_place(copy, length, out);
}

void maps_done(struct maps *maps)
{
	if (!maps)
		return;
	free(maps->list);
	free(maps->text);
	memset(maps, 0, sizeof *maps);
}

/* Index of the first mapping that ends above ADDR. */
static size_t first_above(const struct maps *maps, uint64_t addr)
{
	return search_first(maps->count, i, maps->list[i].end <= addr);
}

bool mapping_same_file(const struct mapping *a, const struct mapping *b)
{
	return a->inode == b->inode && a->device_major == b->device_major && a->device_minor == b->device_minor;
}

const struct mapping *maps_find(const struct maps *maps, uint64_t addr)
{
	size_t index = first_above(maps, addr);

	return index < maps->count && maps->list[index].start <= addr ? &maps->list[index] : NULL;
}

bool maps_free(const struct maps *maps, uint64_t start, uint64_t size)
{
	size_t index = first_above(maps, start);

	if (start == 0 || size == 0 || start + size < start || start + size > USER_END)
		return false;
	return index == maps->count || maps->list[index].start >= start + size;
}

uint64_t maps_gap(const struct maps *maps, uint64_t size, uint64_t seed)
{
	uint64_t best_start = 0, best_room = 0, slide;

	for (size_t i = 0; i + 1 < maps->count; i++) {
		uint64_t from = maps->list[i].end, to = maps->list[i + 1].start;

		if (to > USER_END)
			break;
		if (GAP_ABOVE_LOW && from < GAP_LOW && to > GAP_LOW)
			from = GAP_LOW;
		if (from < GAP_LOW || to - from < size + 2 * GAP_MARGIN)
			continue;
		if (to - from - size - 2 * GAP_MARGIN >= best_room) {
			best_room = to - from - size - 2 * GAP_MARGIN;
			best_start = from + GAP_MARGIN;
		}
	}
	if (best_start == 0)
		return 0;
	/* Somewhere in the first 64 GiB of it: two attachers must not choose the same place. */
	slide = best_room < (1ull << 36) ? best_room : 1ull << 36;
	return (best_start + (slide ? seed % slide : 0)) & ~0xfffull;
}
