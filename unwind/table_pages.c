/* Bytes of files that may shrink, go, or never have been readable: by pages, kept within a fixed bound, few descriptors open at once. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "unwind/table_file.h"

enum { PAGE = 4096, PAGES = 2048 /* 8 MiB */, OPEN_MAX = 16, FDE_MAX = 1 << 17, CIE_MAX = 1024, HEAD = 12 };

struct page {
	uint32_t module; /* id; 0 = free */
	uint32_t size;   /* bytes of it that are there */
	uint64_t number;
	unsigned char bytes[PAGE];
};

struct table_pages {
	const struct modules *modules;
	struct remote_memory memory;
	struct {
		uint32_t module; /* id; 0 = free */
		int fd;
	} open[OPEN_MAX];
	uint32_t next_open;
	struct page *pages;
	uint8_t *fde, *cie;
};

struct table_pages *table_pages_new(const struct modules *modules, const struct remote_memory *memory)
{
	struct table_pages *pages = calloc(1, sizeof *pages);

	if (!pages)
		return NULL;
	pages->modules = modules;
	pages->memory = *memory;
	pages->pages = calloc(PAGES, sizeof *pages->pages);
	pages->fde = malloc(FDE_MAX);
	pages->cie = malloc(CIE_MAX);
	if (pages->pages && pages->fde && pages->cie)
		return pages;
	table_pages_free(pages);
	return NULL;
}

void table_pages_free(struct table_pages *pages)
{
	if (!pages)
		return;
	for (int i = 0; i < OPEN_MAX; i++)
		if (pages->open[i].module)
			close(pages->open[i].fd);
	free(pages->pages);
	free(pages->fde);
	free(pages->cie);
	free(pages);
}

static const struct module *module_of(const struct table_pages *pages, const struct table_file *file)
{
	uint64_t low, high;
	const struct module *module;

	elf_file_extent(&file->elf, &low, &high);
	module = modules_find(pages->modules, file->bias + low);
	return module && module->id == file->module ? module : NULL;
}

/* Its descriptor, or -1. */
static int fd_of(struct table_pages *pages, struct table_file *file)
{
	const struct module *module;
	uint32_t place;
	int fd;

	for (int i = 0; i < OPEN_MAX; i++)
		if (pages->open[i].module == file->module)
			return pages->open[i].fd;
	module = file->from_memory ? NULL : module_of(pages, file);
	fd = module ? modules_file(pages->modules, module) : -1;
	if (fd < 0) {
		file->from_memory = true;
		return -1;
	}
	place = pages->next_open++ % OPEN_MAX;
	if (pages->open[place].module)
		close(pages->open[place].fd);
	pages->open[place].module = file->module;
	pages->open[place].fd = fd;
	return fd;
}

/* The page of memory that shows page NUMBER of the file. */
static bool addr_of_page(const struct table_file *file, uint64_t number, uint64_t *out)
{
	uint64_t offset = number * PAGE;

	for (uint32_t i = 0; i < file->elf.segment_count; i++) {
		const struct elf_segment *s = &file->elf.segments[i];

		if (offset + PAGE <= s->offset || offset >= s->offset + s->file_size)
			continue;
		*out = file->bias + s->vaddr + (offset - s->offset);
		return true;
	}
	return false;
}

static uint32_t read_page(struct table_pages *pages, struct table_file *file, uint64_t number, void *bytes)
{
	int fd = fd_of(pages, file);
	uint64_t addr;
	ssize_t got;

	if (fd >= 0) {
		got = pread(fd, bytes, PAGE, (off_t)(number * PAGE));
		return got > 0 ? (uint32_t)got : 0;
	}
	if (!pages->memory.read || !addr_of_page(file, number, &addr) || pages->memory.read(pages->memory.context, addr, bytes, PAGE) < 0)
		return 0;
	return PAGE;
}

static const struct page *page_of(struct table_pages *pages, struct table_file *file, uint64_t number)
{
	uint64_t hash = (number ^ (uint64_t)file->module << 32) * 0x9e3779b97f4a7c15ull;
	struct page *page = &pages->pages[hash >> 53]; /* 11 bits */

	if (page->module == file->module && page->number == number)
		return page;
	page->module = 0;
	page->size = read_page(pages, file, number, page->bytes);
	page->number = number;
	page->module = page->size ? file->module : 0;
	return page;
}

int table_pages_read(struct table_pages *pages, struct table_file *file, uint64_t offset, void *buffer, size_t size)
{
	unsigned char *to = buffer;

	while (size) {
		const struct page *page = page_of(pages, file, offset / PAGE);
		uint32_t from = (uint32_t)(offset % PAGE);
		size_t have = page->size > from ? page->size - from : 0;

		if (have == 0)
			return -1;
		have = have < size ? have : size;
		memcpy(to, page->bytes + from, have);
		to += have;
		offset += have;
		size -= have;
	}
	return 0;
}

bool table_pages_entry(struct table_pages *pages, struct table_file *file, uint64_t offset, bool is_cie, struct cfi_entry *out)
{
	uint8_t head[HEAD] = { 0 }, *bytes = is_cie ? pages->cie : pages->fde;
	uint64_t size;

	if (table_pages_read(pages, file, offset, head, 4) < 0)
		return false;
	if (memcmp(head, "\xff\xff\xff\xff", 4) == 0 && table_pages_read(pages, file, offset, head, sizeof head) < 0)
		return false;
	size = cfi_entry_size(head);
	if (size == 0 || size > (is_cie ? CIE_MAX : FDE_MAX) || table_pages_read(pages, file, offset, bytes, (size_t)size) < 0)
		return false;
	out->bytes = bytes;
	out->size = (size_t)size;
	return true;
}
