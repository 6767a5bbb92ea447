/* The search table of .eh_frame_hdr, and of each entry in .eh_frame its length. Formats: Linux Standard Base, "Exception Frames". */
#include "unwind/functions.h"

#include "base/search.h"
#include "unwind/elf_bytes.h"

#include <gelf.h>
#include <stdlib.h>
#include <string.h>

enum {
	PE_OMIT = 0xff, PE_FORMAT = 0x0f, PE_RELATION = 0x70, PE_INDIRECT = 0x80,
	PE_ABSPTR = 0x00, PE_UDATA2 = 0x02, PE_UDATA4 = 0x03, PE_UDATA8 = 0x04, PE_SDATA2 = 0x0a, PE_SDATA4 = 0x0b, PE_SDATA8 = 0x0c,
	PE_PCREL = 0x10, PE_DATAREL = 0x30,
	HEADER_BYTES = 12, ROW_BYTES = 8,
	EH_FRAME_MAX = 256 << 20, HEADER_MAX = 128 << 20,
};

/* Bytes of the file that have an address. */
struct piece {
	unsigned char *bytes;
	size_t size;
	uint64_t addr;
};

static uint64_t number(const struct piece *piece, size_t at, size_t size)
{
	uint64_t value = 0;

	memcpy(&value, piece->bytes + at, size);
	return value;
}

static size_t encoded_size(unsigned char encoding)
{
	switch (encoding & PE_FORMAT) {
	case PE_UDATA2: case PE_SDATA2: return 2;
	case PE_UDATA4: case PE_SDATA4: return 4;
	case PE_ABSPTR: case PE_UDATA8: case PE_SDATA8: return 8;
	default: return 0;
	}
}

/* A pointer without its relation. False: an encoding that is not used in these tables, or cut. */
static bool encoded(const struct piece *piece, size_t at, unsigned char encoding, uint64_t *out)
{
	size_t size = encoded_size(encoding);
	uint64_t value;

	if (size == 0 || at > piece->size || piece->size - at < size)
		return false;
	value = number(piece, at, size);
	if ((encoding & PE_FORMAT) == PE_SDATA4)
		value = (uint64_t)(int64_t)(int32_t)value;
	else if ((encoding & PE_FORMAT) == PE_SDATA2)
		value = (uint64_t)(int64_t)(int16_t)value;
	*out = value;
	return true;
}

static bool leb(const struct piece *piece, size_t *at)
{
	while (*at < piece->size)
		if (!(piece->bytes[(*at)++] & 0x80))
			return true;
	return false;
}

/* The encoding of addresses in the entries of the common part (CIE) at AT; PE_OMIT when it cannot be read. */
static unsigned char cie_encoding(const struct piece *frames, size_t at)
{
	size_t end, place = at + 9; /* after length, id, version */
	const char *augmentation;
	unsigned char version;
	uint64_t personality;

	if (at > frames->size || frames->size - at < 16 || number(frames, at + 4, 4) != 0)
		return PE_OMIT;
	version = frames->bytes[at + 8];
	augmentation = (const char *)frames->bytes + place;
	end = place + strnlen(augmentation, frames->size - place);
	if (end == frames->size || (version != 1 && version != 3))
		return PE_OMIT;
	if (augmentation[0] != 'z')
		return augmentation[0] == '\0' ? PE_ABSPTR : PE_OMIT;
	place = end + 1;
	/* NOLINTNEXTLINE(misc-redundant-expression): each call reads on */
	if (!leb(frames, &place) || !leb(frames, &place)) /* alignment factors */
		return PE_OMIT;
	if (version == 1)
		place++;
	else if (!leb(frames, &place))
		return PE_OMIT;
	if (!leb(frames, &place)) /* length of the augmentation */
		return PE_OMIT;
	for (augmentation++; *augmentation; augmentation++) {
		if (*augmentation == 'S' || *augmentation == 'B')
			continue;
		if (place >= frames->size)
			return PE_OMIT;
		if (*augmentation == 'R')
			return frames->bytes[place];
		if (*augmentation == 'L') {
			place++;
		} else if (*augmentation == 'P') {
			if (!encoded(frames, place + 1, frames->bytes[place], &personality))
				return PE_OMIT;
			place += 1 + encoded_size(frames->bytes[place]);
		} else {
			return PE_OMIT;
		}
	}
	return PE_ABSPTR;
}

/* The length of the function whose entry (FDE) is at AT; 0 when it cannot be read. *CIE and *ENCODING remember the last common part. */
static uint32_t fde_length(const struct piece *frames, uint64_t at, size_t *cie, unsigned char *encoding)
{
	uint64_t back, length;

	if (at > frames->size || frames->size - at < 8)
		return 0;
	back = number(frames, at + 4, 4);
	if (back == 0 || back > at + 4)
		return 0;
	if (at + 4 - back != *cie) {
		*cie = at + 4 - back;
		*encoding = cie_encoding(frames, *cie);
	}
	/* The length has the address's format, and no relation. */
	if (*encoding == PE_OMIT || !encoded(frames, at + 8 + encoded_size(*encoding), *encoding & PE_FORMAT, &length))
		return 0;
	return length < UINT32_MAX ? (uint32_t)length : 0;
}

/* Reads what the file has from virtual address ADDR on, to the end of its segment. */
static int read_piece(Elf *elf, int fd, uint64_t addr, uint64_t limit, struct piece *out)
{
	size_t count;
	GElf_Phdr phdr;

	if (elf_getphdrnum(elf, &count) != 0)
		return -1;
	for (size_t i = 0; i < count; i++) {
		if (!gelf_getphdr(elf, (int)i, &phdr) || phdr.p_type != PT_LOAD || addr < phdr.p_vaddr || addr - phdr.p_vaddr >= phdr.p_filesz)
			continue;
		out->size = phdr.p_filesz - (addr - phdr.p_vaddr);
		if (out->size > limit)
			out->size = limit;
		out->addr = addr;
		out->bytes = elf_bytes_read(fd, phdr.p_offset + (addr - phdr.p_vaddr), &out->size);
		return out->bytes ? 0 : -1;
	}
	return -1;
}

static int by_start(const void *a, const void *b)
{
	const struct function_extent *one = a, *two = b;

	return (one->start > two->start) - (one->start < two->start);
}

static int load_rows(const struct piece *header, const struct piece *frames, struct functions *out)
{
	uint64_t rows = number(header, 8, 4);
	size_t cie = SIZE_MAX;
	unsigned char encoding = PE_OMIT;
	bool sorted = true;

	if (rows > (header->size - HEADER_BYTES) / ROW_BYTES)
		rows = (header->size - HEADER_BYTES) / ROW_BYTES;
	out->extents = malloc((rows ? rows : 1) * sizeof *out->extents);
	if (!out->extents)
		return -1;
	for (uint64_t i = 0; i < rows; i++) {
		size_t at = HEADER_BYTES + i * ROW_BYTES;
		uint64_t start = header->addr + (uint64_t)(int64_t)(int32_t)number(header, at, 4);
		uint64_t fde = header->addr + (uint64_t)(int64_t)(int32_t)number(header, at + 4, 4) - frames->addr;
		uint32_t size = fde_length(frames, fde, &cie, &encoding);

		if (size == 0)
			continue;
		/* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): as many as are counted */
		sorted = sorted && (out->count == 0 || out->extents[out->count - 1].start <= start);
		out->extents[out->count++] = (struct function_extent){ start, size };
	}
	if (!sorted)
		qsort(out->extents, out->count, sizeof *out->extents, by_start);
	return 0;
}

int functions_load(Elf *elf, int fd, struct functions *out)
{
	struct piece header = { 0 }, frames = { 0 };
	size_t count;
	GElf_Phdr phdr;
	uint64_t addr;
	int result = 0;

	memset(out, 0, sizeof *out);
	if (elf_getphdrnum(elf, &count) != 0)
		return 0;
	for (size_t i = 0; i < count; i++)
		if (gelf_getphdr(elf, (int)i, &phdr) && phdr.p_type == PT_GNU_EH_FRAME && phdr.p_filesz <= HEADER_MAX) {
			read_piece(elf, fd, phdr.p_vaddr, phdr.p_filesz, &header);
			break;
		}
	/* Version 1; .eh_frame by a 4-byte distance, a table of pairs relative to the header: what every linker writes. */
	if (header.bytes && header.size >= HEADER_BYTES && header.bytes[0] == 1 && header.bytes[1] == (PE_PCREL | PE_SDATA4) && header.bytes[2] == PE_UDATA4
	    && header.bytes[3] == (PE_DATAREL | PE_SDATA4)) {
		addr = header.addr + 4 + (uint64_t)(int64_t)(int32_t)number(&header, 4, 4);
		if (read_piece(elf, fd, addr, EH_FRAME_MAX, &frames) == 0)
			result = load_rows(&header, &frames, out);
	}
	free(header.bytes);
	free(frames.bytes);
	return result;
}

void functions_done(struct functions *functions)
{
	free(functions->extents);
	memset(functions, 0, sizeof *functions);
}

/* How many functions begin at or before ADDR. */
static size_t count_before(const struct functions *functions, uint64_t addr)
{
	return search_first(functions->count, i, functions->extents[i].start <= addr);
}

const struct function_extent *functions_find(const struct functions *functions, uint64_t addr)
{
	size_t before = count_before(functions, addr);

	if (before == 0 || addr - functions->extents[before - 1].start >= functions->extents[before - 1].size)
		return NULL;
	return &functions->extents[before - 1];
}

bool functions_between(const struct functions *functions, uint64_t addr, uint64_t *start, uint64_t *end)
{
	size_t before = count_before(functions, addr);

	if (before == 0 || before == functions->count || functions_find(functions, addr))
		return false;
	*start = functions->extents[before - 1].start + functions->extents[before - 1].size;
	*end = functions->extents[before].start;
	return true;
}
