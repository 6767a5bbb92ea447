/* Memory of objects that die together, and interned strings. Not thread-safe. */
#ifndef INFERSCOPE_BASE_ARENA_H
#define INFERSCOPE_BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena {
	struct arena_block *blocks;
	size_t used_bytes; /* in all blocks, for limits */
	bool failed;       /* somebody got NULL */
};

void arena_init(struct arena *arena);
void arena_done(struct arena *arena);
/* Zeroed, aligned to 16; NULL when out of memory. */
void *arena_alloc(struct arena *arena, size_t size);
char *arena_strndup(struct arena *arena, const char *string, size_t length);

/* Strings as small numbers: equal strings have equal ids. Id 0 is the empty string. */
struct strings;
struct strings *strings_new(void);
void strings_free(struct strings *strings);
/* The id of STRING (copied), or UINT32_MAX when out of memory. */
uint32_t strings_add(struct strings *strings, const char *string, size_t length);
/* NUL-terminated, valid until strings_free(); "" for an unknown id. */
const char *strings_get(const struct strings *strings, uint32_t id);
size_t strings_count(const struct strings *strings);

#endif
