/*
 * From an address to its FDE: by the search table of .eh_frame_hdr, as the C++ runtime does; files without one get an index of their
 * .eh_frame; addresses that neither covers are looked for in .debug_frame.
 */
#include "base/search.h"
#include "unwind/table_file.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

enum { HDR_READ = 64, ROW = 8 /* of the search table */, INDEX_MAX = 1 << 19 /* 8 MiB */, SCANNED_MAX = 1 << 20 };

static bool offset_of(const struct table_file *file, uint64_t addr, uint64_t *out)
{
	for (uint32_t i = 0; i < file->elf.segment_count; i++) {
		const struct elf_segment *s = &file->elf.segments[i];

		if (addr < s->vaddr || addr - s->vaddr >= s->file_size)
			continue;
		*out = s->offset + (addr - s->vaddr);
		return true;
	}
	return false;
}

static int read_at(struct table_pages *pages, struct table_file *file, uint64_t addr, void *buffer, size_t size)
{
	uint64_t offset;

	return offset_of(file, addr, &offset) ? table_pages_read(pages, file, offset, buffer, size) : -1;
}

/* Fills what .eh_frame_hdr tells: its search table, and where .eh_frame begins. */
static void read_hdr(struct table_file *file, struct table_pages *pages)
{
	const struct elf_section *hdr = &file->elf.eh_frame_hdr;
	uint8_t head[HDR_READ];
	size_t size = hdr->size < sizeof head ? (size_t)hdr->size : sizeof head;
	struct cfi_bytes bytes = { head, head + size, false };
	uint8_t version, frame_encoding, count_encoding, table_encoding;
	uint64_t frame, count = 0, room;

	if (size == 0 || read_at(pages, file, hdr->vaddr, head, size) < 0)
		return;
	version = (uint8_t)cfi_number(&bytes, 1);
	frame_encoding = (uint8_t)cfi_number(&bytes, 1);
	count_encoding = (uint8_t)cfi_number(&bytes, 1);
	table_encoding = (uint8_t)cfi_number(&bytes, 1);
	if (version != 1 || !cfi_pointer(&bytes, frame_encoding, hdr->vaddr + 4, &frame))
		return;
	file->eh_frame.section.vaddr = frame;
	if (table_encoding != (DW_EH_PE_datarel | DW_EH_PE_sdata4) || !cfi_pointer(&bytes, count_encoding, 0, &count))
		return;
	room = (hdr->size - (uint64_t)(bytes.at - head)) / ROW;
	file->search_addr = hdr->vaddr + (uint64_t)(bytes.at - head);
	file->search_count = count < room ? count : room;
}

struct table_file *table_file_new(struct table_pages *pages, const struct module *module)
{
	struct table_file *file = calloc(1, sizeof *file);

	if (!file)
		return NULL;
	file->module = module->id;
	file->bias = module->bias;
	file->elf = *module->elf;
	read_hdr(file, pages);
	return file;
}

void table_file_free(struct table_file *file)
{
	if (!file)
		return;
	free(file->eh_frame.entries);
	free(file->debug_frame.entries);
	free(file);
}

int table_file_read(struct table_file *file, struct table_pages *pages, uint64_t addr, void *buffer, size_t size)
{
	for (uint32_t i = 0; i < file->elf.segment_count; i++) {
		const struct elf_segment *s = &file->elf.segments[i];

		if (!s->writable && addr >= s->vaddr && addr - s->vaddr < s->file_size && size <= s->file_size - (addr - s->vaddr))
			return table_pages_read(pages, file, s->offset + (addr - s->vaddr), buffer, size);
	}
	return -1;
}

/* Reads the FDE at OFFSET of the file, and its CIE. 0, or -1: neither; 1: it is a CIE. SIZE is how long it is. */
static int read_fde(struct table_file *file, struct table_pages *pages, const struct table_index *index, uint64_t offset, struct table_found *out, uint64_t *size)
{
	struct cfi_entry *fde = &out->fde_entry, *cie = &out->cie_entry;
	uint64_t pointer, cie_at, shift = index->section.vaddr - index->section.offset;
	size_t field;

	if (!table_pages_entry(pages, file, offset, false, fde))
		return -1;
	*size = fde->size;
	fde->addr = offset + shift;
	fde->debug_frame = cie->debug_frame = index->debug_frame;
	if (!cfi_cie_pointer(fde, &pointer, &field))
		return 1;
	cie_at = index->debug_frame ? index->section.offset + pointer : offset + field - pointer;
	if (!table_pages_entry(pages, file, cie_at, true, cie))
		return -1;
	cie->addr = cie_at + shift;
	return cfi_read_cie(cie, &out->cie) == 0 && cfi_read_fde(fde, &out->cie, &out->fde) == 0 ? 0 : -1;
}

/* ---- the search table ---- */

static bool search_entry(struct table_file *file, struct table_pages *pages, uint64_t number, uint64_t *start, uint64_t *fde)
{
	uint8_t row[ROW];
	struct cfi_bytes bytes = { row, row + sizeof row, false };

	if (read_at(pages, file, file->search_addr + number * ROW, row, sizeof row) < 0)
		return false;
	*start = file->elf.eh_frame_hdr.vaddr + (uint64_t)cfi_signed(&bytes, 4);
	*fde = file->elf.eh_frame_hdr.vaddr + (uint64_t)cfi_signed(&bytes, 4);
	return true;
}

static bool search(struct table_file *file, struct table_pages *pages, uint64_t addr, struct table_found *out)
{
	uint64_t low = 0, high = file->search_count, start, at = 0, offset, size;
	struct table_index here = { 0 };

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (!search_entry(file, pages, middle, &start, &at))
			return false;
		if (start <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 || !search_entry(file, pages, low - 1, &start, &at) || !offset_of(file, at, &offset))
		return false;
	here.section.vaddr = at;
	here.section.offset = offset;
	return read_fde(file, pages, &here, offset, out, &size) == 0;
}

/* ---- an index of our own ---- */

static int by_start(const void *a, const void *b)
{
	const struct table_index_entry *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

static bool index_add(struct table_index *index, size_t *capacity, uint64_t start, uint64_t at)
{
	if (index->count == *capacity) {
		size_t more = *capacity ? 2 * *capacity : 256;
		struct table_index_entry *bigger = more <= INDEX_MAX ? realloc(index->entries, more * sizeof *bigger) : NULL;

		if (!bigger)
			return false;
		index->entries = bigger;
		*capacity = more;
	}
	index->entries[index->count++] = (struct table_index_entry){ start, at };
	return true;
}

static void build_index(struct table_file *file, struct table_pages *pages, struct table_index *index)
{
	uint64_t at = index->section.offset, end = at + index->section.size, size;
	size_t capacity = 0;
	struct table_found found;

	for (int scanned = 0; at < end && scanned < SCANNED_MAX; scanned++) {
		int kind;

		size = 0;
		kind = read_fde(file, pages, index, at, &found, &size);
		if (size == 0)
			break;
		if (kind == 0 && found.fde.start < found.fde.end && !index_add(index, &capacity, found.fde.start, at))
			break;
		at += size;
	}
	if (index->count)
		qsort(index->entries, index->count, sizeof *index->entries, by_start);
}

struct reader {
	struct table_pages *pages;
	struct table_file *file;
};

static int read_source(void *context, uint64_t offset, void *buffer, size_t size)
{
	const struct reader *reader = context;

	return table_pages_read(reader->pages, reader->file, offset, buffer, size);
}

static bool find_section(struct table_file *file, struct table_pages *pages, const char *name, struct elf_section *out)
{
	struct reader reader = { pages, file };
	struct elf_source source = { read_source, &reader };

	return !file->from_memory && elf_file_section(&source, &file->elf, name, out);
}

/* .eh_frame by its section, else from where .eh_frame_hdr points to the end of the segment: it has a terminator. */
static bool find_eh_frame(struct table_file *file, struct table_pages *pages)
{
	struct elf_section *section = &file->eh_frame.section;
	uint64_t vaddr = section->vaddr;

	if (find_section(file, pages, ".eh_frame", section))
		return true;
	for (uint32_t i = 0; vaddr && i < file->elf.segment_count; i++) {
		const struct elf_segment *s = &file->elf.segments[i];

		if (vaddr < s->vaddr || vaddr - s->vaddr >= s->file_size)
			continue;
		*section = (struct elf_section){ vaddr, s->offset + (vaddr - s->vaddr), s->file_size - (vaddr - s->vaddr) };
		return true;
	}
	return false;
}

static bool look_up(struct table_file *file, struct table_pages *pages, const struct table_index *index, uint64_t addr, struct table_found *out)
{
	size_t next = search_first(index->count, i, index->entries[i].start <= addr);
	uint64_t size;

	return next && read_fde(file, pages, index, index->entries[next - 1].at, out, &size) == 0;
}

static bool covers(const struct cfi_fde *fde, uint64_t addr)
{
	return fde->start <= addr && addr < fde->end;
}

bool table_file_find(struct table_file *file, struct table_pages *pages, uint64_t addr, struct table_found *out)
{
	if (file->search_count && search(file, pages, addr, out) && covers(&out->fde, addr))
		return true;
	if (!file->search_count && !file->looked_for_eh_frame && find_eh_frame(file, pages))
		build_index(file, pages, &file->eh_frame);
	file->looked_for_eh_frame = true;
	if (look_up(file, pages, &file->eh_frame, addr, out) && covers(&out->fde, addr))
		return true;
	file->debug_frame.debug_frame = true;
	if (!file->looked_for_debug_frame && find_section(file, pages, ".debug_frame", &file->debug_frame.section))
		build_index(file, pages, &file->debug_frame);
	file->looked_for_debug_frame = true;
	return look_up(file, pages, &file->debug_frame, addr, out) && covers(&out->fde, addr);
}
