/* Blocks that grow and are freed together. */
#include "base/arena.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_BLOCK_BYTES = 4096, LARGEST_BLOCK_BYTES = 1 << 20, ALIGNMENT = 16 };

struct arena_block {
	struct arena_block *next;
	size_t used, size; /* of bytes[] */
	unsigned char bytes[] __attribute__((aligned(ALIGNMENT)));
};

void arena_init(struct arena *arena)
{
	memset(arena, 0, sizeof *arena);
}

void arena_done(struct arena *arena)
{
	struct arena_block *block, *next;

	for (block = arena->blocks; block; block = next) {
		next = block->next;
		free(block);
	}
	arena_init(arena);
}

static struct arena_block *block_new(struct arena *arena, size_t need)
{
	size_t size = arena->blocks ? arena->blocks->size * 2 : FIRST_BLOCK_BYTES;
	struct arena_block *block;

	if (size > LARGEST_BLOCK_BYTES)
		size = LARGEST_BLOCK_BYTES;
	if (size < need)
		size = need;
	block = calloc(1, sizeof *block + size);
	if (!block)
		return NULL;
	block->size = size;
	/* A block of its own for one large thing must not end the use of the current one. */
	if (arena->blocks && need > LARGEST_BLOCK_BYTES / 2) {
		block->next = arena->blocks->next;
		arena->blocks->next = block;
	} else {
		block->next = arena->blocks;
		arena->blocks = block;
	}
	return block;
}

void *arena_alloc(struct arena *arena, size_t size)
{
	struct arena_block *block = arena->blocks;
	void *result;

	if (size > SIZE_MAX / 2)
		return NULL;
	size = size ? (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1) : ALIGNMENT;
	if (!block || block->size - block->used < size)
		block = block_new(arena, size);
	if (!block) {
		arena->failed = true;
		return NULL;
	}
	result = block->bytes + block->used;
	block->used += size;
	arena->used_bytes += size;
	return result;
}

char *arena_strndup(struct arena *arena, const char *string, size_t length)
{
	char *copy = length < SIZE_MAX / 2 ? arena_alloc(arena, length + 1) : NULL;

	if (copy && length)
		memcpy(copy, string, length);
	return copy;
}
