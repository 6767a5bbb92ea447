/* Arenas, interned strings, searching, sorting. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/search.h"
#include "base/sort.h"

Test(arena, gives_zeroed_aligned_memory_of_any_size)
{
	static const size_t sizes[] = { 0, 1, 15, 16, 17, 4000, 4096, 5000, 100000, 3000000, 8 };
	struct arena arena;
	unsigned char *memory;
	size_t i, j, round;

	arena_init(&arena);
	for (round = 0; round < 3; round++)
		for (i = 0; i < sizeof sizes / sizeof *sizes; i++) {
			memory = arena_alloc(&arena, sizes[i]);
			cr_assert_not_null(memory);
			cr_assert_eq((uintptr_t)memory % 16, 0u);
			for (j = 0; j < sizes[i]; j++)
				cr_assert_eq(memory[j], 0);
			memset(memory, 0xaa, sizes[i]);
		}
	cr_assert_geq(arena.used_bytes, 3 * 3113145u);
	arena_done(&arena);
	cr_assert_eq(arena.used_bytes, 0u);
}

Test(arena, refuses_an_impossible_size)
{
	struct arena arena;

	arena_init(&arena);
	cr_assert_null(arena_alloc(&arena, SIZE_MAX));
	cr_assert_null(arena_strndup(&arena, "x", SIZE_MAX));
	arena_done(&arena);
}

Test(arena, copies_strings_with_their_end)
{
	struct arena arena;

	arena_init(&arena);
	cr_assert_str_eq(arena_strndup(&arena, "handler", 4), "hand");
	cr_assert_str_eq(arena_strndup(&arena, NULL, 0), "");
	arena_done(&arena);
}

Test(strings, equal_strings_have_equal_ids)
{
	struct strings *strings = strings_new();
	uint32_t first = strings_add(strings, "app.py", 6);

	cr_assert_eq(strings_add(strings, "app.pyc", 6), first);
	cr_assert_neq(strings_add(strings, "app.pyc", 7), first);
	cr_assert_neq(strings_add(strings, "app\0py", 6), first);
	cr_assert_eq(strings_add(strings, "", 0), 0u);
	cr_assert_str_eq(strings_get(strings, first), "app.py");
	strings_free(strings);
}

Test(strings, unknown_ids_are_the_empty_string)
{
	struct strings *strings = strings_new();

	cr_assert_str_eq(strings_get(strings, 0), "");
	cr_assert_str_eq(strings_get(strings, 12345), "");
	cr_assert_str_eq(strings_get(strings, UINT32_MAX), "");
	strings_free(strings);
	strings_free(NULL);
}

Test(strings, keeps_a_hundred_thousand_apart)
{
	struct strings *strings = strings_new();
	char name[32];
	uint32_t i;

	for (i = 1; i <= 100000; i++)
		cr_assert_eq(strings_add(strings, name, (size_t)snprintf(name, sizeof name, "function_%u", i)), i);
	for (i = 1; i <= 100000; i += 977) {
		snprintf(name, sizeof name, "function_%u", i);
		cr_assert_str_eq(strings_get(strings, i), name);
	}
	cr_assert_eq(strings_count(strings), 100001u);
	strings_free(strings);
}

struct numbered { uint32_t key, came; };

static int compare_keys(const void *left, const void *right, const void *context)
{
	const struct numbered *a = left, *b = right;

	return a->key < b->key ? -1 : a->key > b->key;
}

/* Keys of few values, so that many are equal; RUN of them in order at a time. */
static void fill(struct numbered *items, uint32_t count, uint32_t run)
{
	uint32_t random = count * 2654435761u + run;

	for (uint32_t i = 0; i < count; i++) {
		random = random * 1664525 + 1013904223;
		items[i] = (struct numbered){ (i % run) ? items[i - 1].key + (random >> 30) : random >> 24, i };
	}
}

Test(sort_runs, sorts_whatever_is_in_order_already_and_keeps_equals_as_they_came)
{
	static const uint32_t counts[] = { 0, 1, 2, 3, 7, 100, 1000, 4097 }, runs[] = { 1, 2, 10, 1000, 1u << 30 };
	struct numbered items[4097];

	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
		for (size_t j = 0; j < sizeof runs / sizeof *runs; j++) {
			fill(items, counts[i], runs[j]);
			cr_assert(sort_runs(items, counts[i], sizeof *items, compare_keys, NULL));
			for (uint32_t at = 1; at < counts[i]; at++)
				cr_assert(items[at - 1].key < items[at].key || (items[at - 1].key == items[at].key && items[at - 1].came < items[at].came), "%u of %u in runs of %u", at, counts[i], runs[j]);
		}
}

Test(search, finds_the_first_that_does_not_hold)
{
	const int sorted[] = { 1, 3, 3, 7 };

	cr_assert_eq(search_first(4, i, sorted[i] < 0), 0u);
	cr_assert_eq(search_first(4, i, sorted[i] < 3), 1u);
	cr_assert_eq(search_first(4, i, sorted[i] <= 3), 3u);
	cr_assert_eq(search_first(4, i, sorted[i] < 100), 4u);
	cr_assert_eq(search_first(0, i, sorted[i] < 100), 0u);
}
