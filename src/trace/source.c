/* The window grows to what its user asks for, and moves by reading. */
#include "trace/source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LEAST_BYTES = 256 << 10 };

void source_open_fd(struct source *source, int fd, bool own)
{
	*source = (struct source){ .fd = fd, .own_fd = own };
}

void source_open_memory(struct source *source, const void *bytes, size_t size)
{
	*source = (struct source){ .fd = -1, .end = true, .bytes = bytes, .length = size };
}

void source_open_mapping(struct source *source, void *bytes, size_t size)
{
	source_open_memory(source, bytes, size);
	source->mapped = true;
}

void source_close(struct source *source)
{
	if (source->mapped)
		munmap((void *)source->bytes, source->length);
	if (source->own_fd)
		close(source->fd);
	free(source->buffer);
}

/* Moves what is left to the front, with room for WANTED bytes. */
static bool make_room(struct source *source, size_t wanted)
{
	size_t left = source->length - source->start;
	unsigned char *larger;

	if (wanted < LEAST_BYTES)
		wanted = LEAST_BYTES;
	if (left && source->start)
		memmove(source->buffer, source->buffer + source->start, left);
	source->start = 0;
	source->length = left;
	if (wanted > source->capacity) {
		larger = realloc(source->buffer, wanted);
		if (!larger) {
			source->failed = ENOMEM;
			return false;
		}
		source->buffer = larger;
		source->capacity = wanted;
	}
	source->bytes = source->buffer;
	return true;
}

size_t source_need(struct source *source, size_t wanted)
{
	ssize_t got;

	if (source->length - source->start >= wanted || source->end || source->failed || !make_room(source, wanted))
		return source->length - source->start;
	while (source->length < wanted) {
		got = read(source->fd, source->buffer + source->length, source->capacity - source->length);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			source->failed = errno;
		if (got == 0)
			source->end = true;
		if (got <= 0)
			break;
		source->length += (size_t)got;
	}
	return source->length - source->start;
}

void source_skip(struct source *source, size_t count)
{
	source->start += count;
}

int source_rewind(struct source *source)
{
	if (source->fd < 0) {
		source->start = 0;
		return 0;
	}
	if (lseek(source->fd, 0, SEEK_SET) < 0)
		return -1;
	source->start = source->length = 0;
	source->end = false;
	source->failed = 0;
	return 0;
}
