/* A small direct-mapped cache of the target's pages. A page is one moment of its memory; two pages are two moments. */
#include "unwind/pages.h"

#include <string.h>

void pages_init(struct pages *pages, const struct remote_memory *memory)
{
	pages->memory = *memory;
	pages->round = 1;
	for (size_t i = 0; i < PAGE_COUNT; i++)
		pages->slots[i].round = 0;
}

void pages_forget(struct pages *pages)
{
	pages->round++;
}

static const unsigned char *page_bytes(struct pages *pages, uint64_t number)
{
	size_t slot = number % PAGE_COUNT;

	if (pages->slots[slot].round == pages->round && pages->slots[slot].number == number)
		return pages->slots[slot].bytes;
	pages->slots[slot].round = 0;
	if (pages->memory.read(pages->memory.context, number * PAGE_SIZE_BYTES, pages->slots[slot].bytes, PAGE_SIZE_BYTES) < 0)
		return NULL;
	pages->slots[slot].round = pages->round;
	pages->slots[slot].number = number;
	return pages->slots[slot].bytes;
}

int pages_read(struct pages *pages, uint64_t addr, void *buffer, size_t size)
{
	unsigned char *out = buffer;

	if (addr > UINT64_MAX - size)
		return -1;
	while (size > 0) {
		size_t offset = addr % PAGE_SIZE_BYTES;
		size_t part = PAGE_SIZE_BYTES - offset < size ? PAGE_SIZE_BYTES - offset : size;
		const unsigned char *page = page_bytes(pages, addr / PAGE_SIZE_BYTES);

		if (!page)
			return -1;
		memcpy(out, page + offset, part);
		out += part;
		addr += part;
		size -= part;
	}
	return 0;
}
