/* A small direct-mapped cache of the target's pages. A page is one moment of its memory; two pages are two moments. */
#include "unwind/pages.h"

#include <string.h>
#include <sys/uio.h>

void pages_init(struct pages *pages, const struct remote_memory *memory)
{
	pages->memory = *memory;
	pages->round = 1;
	pages->used_count = 0;
	for (size_t i = 0; i < PAGE_COUNT; i++)
		pages->slots[i].round = 0;
}

void pages_forget(struct pages *pages)
{
	pages->round++;
	pages->used_count = 0;
}

void pages_expect(struct pages *pages, const uint64_t *numbers, uint32_t count)
{
	struct iovec here[PAGES_USED_MAX], there[PAGES_USED_MAX];
	size_t wanted = 0, got;

	for (uint32_t i = 0; i < count && pages->memory.read_many; i++) {
		size_t slot = numbers[i] % PAGE_COUNT;

		if (pages->slots[slot].round == pages->round)
			continue;
		pages->slots[slot].number = numbers[i];
		pages->slots[slot].round = pages->round;
		pages->slots[slot].used = false;
		here[wanted] = (struct iovec){ pages->slots[slot].bytes, PAGE_SIZE_BYTES };
		there[wanted++] = (struct iovec){ (void *)(uintptr_t)(numbers[i] * PAGE_SIZE_BYTES), PAGE_SIZE_BYTES };
	}
	got = wanted ? pages->memory.read_many(pages->memory.context, here, there, wanted) : 0;
	while (got < wanted)
		/* cppcheck-suppress uninitvar ; as many as are wanted were filled */
		pages->slots[(uintptr_t)there[got++].iov_base / PAGE_SIZE_BYTES % PAGE_COUNT].round = 0;
}

static void mark_used(struct pages *pages, size_t slot)
{
	pages->slots[slot].used = true;
	if (pages->used_count < PAGES_USED_MAX)
		pages->used[pages->used_count++] = pages->slots[slot].number;
}

static const unsigned char *page_bytes(struct pages *pages, uint64_t number)
{
	size_t slot = number % PAGE_COUNT;

	if (pages->slots[slot].round == pages->round && pages->slots[slot].number == number) {
		if (!pages->slots[slot].used)
			mark_used(pages, slot);
		return pages->slots[slot].bytes;
	}
	pages->slots[slot].round = 0;
	if (pages->memory.read(pages->memory.context, number * PAGE_SIZE_BYTES, pages->slots[slot].bytes, PAGE_SIZE_BYTES) < 0)
		return NULL;
	pages->slots[slot].round = pages->round;
	pages->slots[slot].number = number;
	mark_used(pages, slot);
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
