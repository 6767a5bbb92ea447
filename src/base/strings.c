/* Interned strings: an open hash table of ids over an arena. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

struct string {
	const char *bytes;
	uint32_t length, hash;
};

struct strings {
	struct arena arena;
	struct string *rows; /* by id */
	uint32_t count, capacity;
	uint32_t *slots; /* id + 1, 0 = empty; slot_count is a power of two */
	uint32_t slot_count;
};

/* Eight bytes at a time: names of kernels are long. */
static uint32_t hash_of(const char *bytes, size_t length)
{
	const uint64_t factor = 0x9e3779b97f4a7c15u;
	uint64_t hash = length, word;

	for (; length >= 8; bytes += 8, length -= 8) {
		memcpy(&word, bytes, 8);
		hash = (hash ^ word) * factor;
		hash ^= hash >> 32;
	}
	word = 0;
	if (length)
		memcpy(&word, bytes, length);
	hash = (hash ^ word) * factor;
	return (uint32_t)(hash ^ hash >> 32);
}

static int grow_slots(struct strings *strings)
{
	uint32_t count = strings->slot_count ? strings->slot_count * 2 : 256, id, slot;
	uint32_t *slots = calloc(count, sizeof *slots);

	if (!slots)
		return -1;
	for (id = 0; id < strings->count; id++) {
		for (slot = strings->rows[id].hash & (count - 1); slots[slot]; slot = (slot + 1) & (count - 1))
			;
		slots[slot] = id + 1;
	}
	free(strings->slots);
	strings->slots = slots;
	strings->slot_count = count;
	return 0;
}

static int grow_rows(struct strings *strings)
{
	uint32_t capacity = strings->capacity ? strings->capacity * 2 : 128;
	struct string *rows = realloc(strings->rows, capacity * sizeof *rows);

	if (!rows)
		return -1;
	strings->rows = rows;
	strings->capacity = capacity;
	return 0;
}

struct strings *strings_new(void)
{
	struct strings *strings = calloc(1, sizeof *strings);

	if (!strings)
		return NULL;
	arena_init(&strings->arena);
	if (strings_add(strings, "", 0) != 0) {
		strings_free(strings);
		return NULL;
	}
	return strings;
}

void strings_free(struct strings *strings)
{
	if (!strings)
		return;
	arena_done(&strings->arena);
	free(strings->rows);
	free(strings->slots);
	free(strings);
}

uint32_t strings_add(struct strings *strings, const char *string, size_t length)
{
	uint32_t hash = hash_of(string, length), slot = 0, id;
	const struct string *row;
	char *copy;

	if (length >= UINT32_MAX || strings->count >= UINT32_MAX / 4)
		return UINT32_MAX;
	/* At most half full, so that a search ends soon. */
	if (strings->count * 2 >= strings->slot_count && grow_slots(strings) < 0)
		return UINT32_MAX;
	for (slot = hash & (strings->slot_count - 1); strings->slots[slot]; slot = (slot + 1) & (strings->slot_count - 1)) {
		id = strings->slots[slot] - 1;
		row = &strings->rows[id];
		if (row->hash == hash && row->length == length && memcmp(row->bytes, string, length) == 0)
			return id;
	}
	if (strings->count == strings->capacity && grow_rows(strings) < 0)
		return UINT32_MAX;
	copy = arena_strndup(&strings->arena, string, length);
	if (!copy)
		return UINT32_MAX;
	id = strings->count++;
	strings->rows[id] = (struct string){ copy, (uint32_t)length, hash };
	strings->slots[slot] = id + 1;
	return id;
}

const char *strings_get(const struct strings *strings, uint32_t id)
{
	return id < strings->count ? strings->rows[id].bytes : "";
}

size_t strings_count(const struct strings *strings)
{
	return strings->count;
}
