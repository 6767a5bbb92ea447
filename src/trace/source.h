/* A window over the bytes of a file, pipe or memory: always a whole run of bytes from where the reader stands. For this layer alone. */
#ifndef INFERSCOPE_TRACE_SOURCE_H
#define INFERSCOPE_TRACE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct source {
	int fd; /* -1: memory */
	bool own_fd, end, mapped;
	int failed; /* errno of a failed read, 0 = none */
	const unsigned char *bytes; /* all that the window holds */
	unsigned char *buffer;      /* the same, when it is ours */
	size_t start, length, capacity;
};

/* FD is closed by source_close() when OWN. */
void source_open_fd(struct source *source, int fd, bool own);
void source_open_memory(struct source *source, const void *bytes, size_t size);
/* BYTES is a mapping, which source_close() ends. */
void source_open_mapping(struct source *source, void *bytes, size_t size);
void source_close(struct source *source);

/* Tries to have WANTED bytes at source_at(). Returns how many there are: fewer only at the end, after a failure, or out of memory (failed = ENOMEM). */
size_t source_need(struct source *source, size_t wanted);
static inline const unsigned char *source_at(const struct source *source)
{
	return source->bytes + source->start;
}
/* COUNT is at most what source_need() returned. What source_at() gave before stays valid until the next source_need(). */
void source_skip(struct source *source, size_t count);
/* Back to the beginning; -1 with errno on a pipe. */
int source_rewind(struct source *source);

#endif
