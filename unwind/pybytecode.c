/* A sorted list; of two that lie over each other the newer one is right, for the other one's memory was given away. */
#include "unwind/pybytecode.h"

#include <string.h>

#include "abi/cpython.h"
#include "base/search.h"
#include "unwind/pyreader.h"

enum { CODES_MAX = 1 << 16, BYTES_MAX = 1 << 22 /* of one function's instructions */, UNIT = 2 /* bytes of a code unit */, PAGE_SHIFT = 12, PAGE_BITS = 1 << 16 };

void bytecodes_init(struct bytecodes *bytecodes, struct pyreader *reader)
{
	memset(bytecodes, 0, sizeof *bytecodes);
	bytecodes->reader = reader;
}

void bytecodes_done(struct bytecodes *bytecodes)
{
	list_done(&bytecodes->list);
	map_done(&bytecodes->stamps);
}

/* Up to 3.10 they are a bytes object of their own, later they stand at the end of the code object, whose size counts them. */
static bool locate(const struct pyreader *reader, uint64_t code, struct bytecode *out)
{
	const struct cpython_layout *layout = reader->walk.layout;
	uint64_t holder = code, size, unit = UNIT;

	if (layout->code_code >= 0) {
		if (reader_word(reader, code + (uint64_t)layout->code_code, &holder) < 0 || !address_plausible(holder))
			return false;
		unit = 1;
	}
	if (reader_word(reader, holder + (uint64_t)layout->object_size, &size) < 0 || size == 0 || size > BYTES_MAX)
		return false;
	out->start = holder + (uint64_t)(layout->code_code >= 0 ? layout->bytes_text : layout->code_bytes);
	out->end = out->start + size * unit;
	return true;
}

/* The first one that ends behind ADDR. */
static size_t place_of(const struct bytecode *items, size_t count, uint64_t addr)
{
	return search_first(count, i, items[i].end <= addr);
}

/* Has another function the very same instructions? */
static bool is_shared(struct bytecodes *bytecodes, const struct bytecode *fresh)
{
	size_t place = place_of(bytecodes->list.items, bytecodes->list.count, fresh->start);
	struct bytecode *known = place < bytecodes->list.count ? &bytecodes->list.items[place] : NULL;

	if (!known || known->start != fresh->start || known->end != fresh->end || known->code == fresh->code)
		return false;
	known->shared = true;
	return true;
}

/* Takes out what lies over FRESH; it is looked at again when it is met again. */
static void make_way(struct bytecodes *bytecodes, const struct bytecode *fresh)
{
	struct bytecode *items = bytecodes->list.items;
	size_t first = place_of(items, bytecodes->list.count, fresh->start), end = first;

	while (end < bytecodes->list.count && items[end].start < fresh->end) {
		map_put(&bytecodes->stamps, items[end].code, ~items[end].stamp);
		end++;
	}
	if (end == first)
		return;
	memmove(items + first, items + end, (bytecodes->list.count - end) * sizeof *items);
	bytecodes->list.count -= end - first;
}

static void mark_pages(struct bytecodes *bytecodes, const struct bytecode *fresh)
{
	for (uint64_t page = fresh->start >> PAGE_SHIFT; page <= (fresh->end - 1) >> PAGE_SHIFT; page++)
		bytecodes->pages[page % PAGE_BITS / 64] |= 1ull << page % 64;
}

void bytecodes_learn(struct bytecodes *bytecodes, uint64_t code, uint32_t stamp)
{
	struct bytecode fresh = { .code = code, .stamp = stamp };
	size_t place;

	if (map_get(&bytecodes->stamps, code) == stamp || !locate(bytecodes->reader, code, &fresh))
		return;
	if (is_shared(bytecodes, &fresh)) {
		map_put(&bytecodes->stamps, code, stamp);
		return;
	}
	make_way(bytecodes, &fresh);
	if (!list_add(&bytecodes->list, CODES_MAX))
		return;
	place = place_of(bytecodes->list.items, bytecodes->list.count - 1, fresh.start);
	memmove(bytecodes->list.items + place + 1, bytecodes->list.items + place, (bytecodes->list.count - 1 - place) * sizeof fresh);
	bytecodes->list.items[place] = fresh;
	mark_pages(bytecodes, &fresh);
	map_put(&bytecodes->stamps, code, stamp);
}

const struct bytecode *bytecodes_find(const struct bytecodes *bytecodes, uint64_t addr)
{
	uint64_t page = addr >> PAGE_SHIFT;
	size_t place;

	if (!(bytecodes->pages[page % PAGE_BITS / 64] >> page % 64 & 1))
		return NULL;
	place = place_of(bytecodes->list.items, bytecodes->list.count, addr);
	return place < bytecodes->list.count && bytecodes->list.items[place].start <= addr ? &bytecodes->list.items[place] : NULL;
}
