/* Reads one mapped ELF file out of another process: program headers, dynamic section, symbol lookup by its own hash tables. */
#include "inject/image.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>

#include "inject/machine.h"

#define MAX_DYNAMIC 256
#define MAX_CHAIN 1024 /* steps through one hash chain, each a read of the process: a chain that lies must end soon */
#define MAX_NAME 64
#define FIRST_PAGE 4096

bool image_is_elf(const struct memory *memory, uint64_t addr, uint8_t *elf_class, uint16_t *machine)
{
	unsigned char head[20];

	if (memory_read(memory, addr, head, sizeof head) < 0 || memcmp(head, ELFMAG, SELFMAG) != 0)
		return false;
	*elf_class = head[EI_CLASS];
	memcpy(machine, head + 18, sizeof *machine);
	return true;
}

bool image_has(const struct image *image, uint64_t addr)
{
	return addr >= image->low && addr < image->high;
}

static bool inside(const struct image *image, uint64_t addr, uint64_t size)
{
	return addr >= image->low && addr <= image->high && size <= image->high - addr;
}

static void build_id_from_notes(const unsigned char *notes, size_t size, char *out, size_t out_size)
{
	size_t at = 0;

	while (size - at >= sizeof(Elf64_Nhdr)) {
		Elf64_Nhdr note;
		size_t name, desc, next;

		memcpy(&note, notes + at, sizeof note);
		name = at + sizeof note;
		if (note.n_namesz > size || note.n_descsz > size)
			return;
		desc = name + (((size_t)note.n_namesz + 3) & ~(size_t)3);
		next = desc + (((size_t)note.n_descsz + 3) & ~(size_t)3);
		if (desc > size || note.n_descsz > size - desc)
			return;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp(notes + name, "GNU", 4) == 0) {
			for (size_t i = 0; i < note.n_descsz && 2 * i + 3 <= out_size; i++)
				snprintf(out + 2 * i, 3, "%02x", notes[desc + i]);
			return;
		}
		if (next > size)
			return;
		at = next;
	}
}

void image_build_id_of(const void *bytes, size_t size, char *out, size_t out_size)
{
	const unsigned char *file = bytes;
	Elf64_Ehdr header;

	out[0] = '\0';
	if (size < sizeof header)
		return;
	memcpy(&header, file, sizeof header);
	if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_phentsize != sizeof(Elf64_Phdr))
		return;
	for (uint32_t i = 0; i < header.e_phnum; i++) {
		Elf64_Phdr segment;
		uint64_t at = header.e_phoff + (uint64_t)i * sizeof segment;

		if (at > size || sizeof segment > size - at)
			return;
		memcpy(&segment, file + at, sizeof segment);
		if (segment.p_type != PT_NOTE || segment.p_offset > size || segment.p_filesz > size - segment.p_offset)
			continue;
		build_id_from_notes(file + segment.p_offset, segment.p_filesz, out, out_size);
		if (out[0])
			return;
	}
}

static void read_notes(struct image *image, uint64_t addr, uint64_t size)
{
	unsigned char notes[4096];

	if (image->build_id[0] || size == 0 || size > sizeof notes || !inside(image, addr, size))
		return;
	if (memory_read(&image->memory, addr, notes, size) == 0)
		build_id_from_notes(notes, size, image->build_id, sizeof image->build_id);
}

/* glibc relocates most of these pointers in place, other loaders do not: an address that lies in the image is one already. */
static uint64_t dynamic_pointer(const struct image *image, uint64_t value)
{
	if (image_has(image, value))
		return value;
	return image_has(image, image->bias + value) ? image->bias + value : 0;
}

static void read_dynamic(struct image *image, uint64_t addr, uint64_t size)
{
	Elf64_Dyn entries[MAX_DYNAMIC];
	size_t count = size / sizeof *entries;
	uint64_t soname = 0;

	if (count > MAX_DYNAMIC)
		count = MAX_DYNAMIC;
	if (count == 0 || !inside(image, addr, count * sizeof *entries) ||
	    memory_read(&image->memory, addr, entries, count * sizeof *entries) < 0)
		return;
	for (size_t i = 0; i < count && entries[i].d_tag != DT_NULL; i++) {
		uint64_t value = entries[i].d_un.d_val;

		switch (entries[i].d_tag) {
		case DT_SYMTAB: image->symtab = dynamic_pointer(image, value); break;
		case DT_STRTAB: image->strtab = dynamic_pointer(image, value); break;
		case DT_STRSZ: image->strtab_size = value; break;
		case DT_GNU_HASH: image->gnu_hash = dynamic_pointer(image, value); break;
		case DT_HASH: image->hash = dynamic_pointer(image, value); break;
		case DT_VERSYM: image->versym = dynamic_pointer(image, value); break;
		case DT_SONAME: soname = value; break;
		case DT_JMPREL: image->jmprel = dynamic_pointer(image, value); break;
		case DT_PLTRELSZ: image->jmprel_size = value; break;
		case DT_RELA: image->rela = dynamic_pointer(image, value); break;
		case DT_RELASZ: image->rela_size = value; break;
		case DT_RELACOUNT: image->rela_relative = value; break;
		default: break;
		}
	}
	if (image->strtab && soname && soname < image->strtab_size && inside(image, image->strtab, image->strtab_size))
		if (memory_read_string(&image->memory, image->strtab + soname, image->soname, sizeof image->soname) < 0)
			image->soname[0] = '\0';
}

static bool read_segments(struct image *image, const Elf64_Phdr *headers, uint32_t count)
{
	bool first = true;

	for (uint32_t i = 0; i < count; i++) {
		const Elf64_Phdr *header = &headers[i];
		uint64_t size = header->p_memsz > header->p_filesz ? header->p_memsz : header->p_filesz;
		struct image_segment *segment;

		if (header->p_type != PT_LOAD)
			continue;
		if (image->segment_count == IMAGE_MAX_SEGMENTS)
			return false;
		if (first) /* the first segment's page holds the ELF header */
			image->bias = image->base - (header->p_vaddr & ~0xfffull) + (header->p_offset & ~0xfffull);
		first = false;
		segment = &image->segments[image->segment_count++];
		segment->start = image->bias + header->p_vaddr;
		segment->end = segment->start + size;
		segment->executable = header->p_flags & PF_X;
		segment->writable = header->p_flags & PF_W;
		if (segment->end < segment->start || segment->end >= 1ull << MACHINE_ADDRESS_BITS)
			return false;
		if (image->low == 0 || segment->start < image->low)
			image->low = segment->start & ~0xfffull;
		if (segment->end > image->high)
			image->high = segment->end;
	}
	return image->segment_count > 0;
}

/* Tools that make room for a longer path (patchelf, LIEF) move them to the file's end. The file may be mapped more than once. 0: they lie nowhere. */
static uint64_t find_headers(const struct maps *maps, const struct mapping *mapping, uint64_t offset, uint64_t size)
{
	if (offset <= FIRST_PAGE)
		return mapping->start + offset;
	for (size_t i = 0; maps && i < maps->count; i++) {
		const struct mapping *other = &maps->list[i];

		if (other->start >= mapping->start && mapping_same_file(other, mapping) && offset >= other->offset && offset - other->offset <= other->end - other->start &&
		    size <= other->end - other->start - (offset - other->offset))
			return other->start + (offset - other->offset);
	}
	return 0;
}

bool image_is_riddle(const struct memory *memory, const struct maps *maps, const struct mapping *mapping)
{
	struct image image;
	uint16_t machine;
	uint8_t class;

	if (!image_is_elf(memory, mapping->start, &class, &machine) || class != ELFCLASS64 || machine != MACHINE_ELF || image_open(memory, maps, mapping, &image))
		return false;
	for (size_t i = 0; i < maps->count; i++)
		if (maps->list[i].executable && mapping_same_file(&maps->list[i], mapping))
			return true;
	return false;
}

bool image_open(const struct memory *memory, const struct maps *maps, const struct mapping *mapping, struct image *out)
{
	Elf64_Phdr headers[64];
	Elf64_Ehdr header;
	uint64_t at;

	memset(out, 0, sizeof *out);
	if (memory_read(memory, mapping->start, &header, sizeof header) < 0 || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
		return false;
	if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != MACHINE_ELF || header.e_phentsize != sizeof(Elf64_Phdr))
		return false;
	if (header.e_phnum == 0 || header.e_phnum > 64)
		return false;
	at = find_headers(maps, mapping, header.e_phoff, header.e_phnum * sizeof *headers);
	if (!at || memory_read(memory, at, headers, header.e_phnum * sizeof *headers) < 0)
		return false;
	out->memory = *memory;
	out->base = mapping->start;
	out->inode = mapping->inode;
	out->path = mapping->path;
	if (!read_segments(out, headers, header.e_phnum))
		return false;
	for (uint32_t i = 0; i < header.e_phnum; i++) {
		uint64_t addr = out->bias + headers[i].p_vaddr;

		if (headers[i].p_type == PT_TLS) {
			out->tls_size = headers[i].p_memsz;
			out->tls_align = headers[i].p_align;
		} else if (headers[i].p_type == PT_NOTE) {
			read_notes(out, addr, headers[i].p_memsz);
		} else if (headers[i].p_type == PT_DYNAMIC) {
			read_dynamic(out, addr, headers[i].p_memsz);
		} else if (headers[i].p_type == PT_GNU_RELRO && inside(out, addr, headers[i].p_memsz)) {
			out->relro_start = addr;
			out->relro_end = addr + headers[i].p_memsz;
		}
	}
	return true;
}

static uint32_t gnu_hash_of(const char *name)
{
	uint32_t hash = 5381;

	for (const unsigned char *c = (const unsigned char *)name; *c; c++)
		hash = hash * 33 + *c;
	return hash;
}

static uint32_t sysv_hash_of(const char *name)
{
	uint32_t hash = 0;

	for (const unsigned char *c = (const unsigned char *)name; *c; c++) {
		uint32_t high;

		hash = (hash << 4) + *c;
		high = hash & 0xf0000000u;
		if (high)
			hash ^= high >> 24;
		hash &= ~high;
	}
	return hash;
}

static bool read_inside(const struct image *image, uint64_t addr, void *out, size_t size)
{
	return inside(image, addr, size) && memory_read(&image->memory, addr, out, size) == 0;
}

/* The symbol at INDEX, if it is NAME and defined here. */
static uint64_t symbol_at(const struct image *image, uint32_t index, const char *name, uint64_t *size, bool *hidden)
{
	char found[MAX_NAME];
	uint16_t version = 0;
	Elf64_Sym symbol;
	size_t length = strlen(name) + 1;

	if (length > sizeof found || !read_inside(image, image->symtab + (uint64_t)index * sizeof symbol, &symbol, sizeof symbol))
		return 0;
	if (symbol.st_shndx == SHN_UNDEF || symbol.st_value == 0 || symbol.st_name >= image->strtab_size)
		return 0;
	if (!read_inside(image, image->strtab + symbol.st_name, found, length) || memcmp(found, name, length) != 0)
		return 0;
	if (image->versym)
		read_inside(image, image->versym + 2ull * index, &version, sizeof version);
	*hidden = version & 0x8000;
	if (size)
		*size = symbol.st_size;
	return inside(image, image->bias + symbol.st_value, 1) ? image->bias + symbol.st_value : 0;
}

static uint64_t lookup_gnu(const struct image *image, const char *name, uint64_t *size)
{
	uint32_t head[4], bucket, chain, hash = gnu_hash_of(name), index;
	uint64_t buckets, chains, found = 0;
	bool hidden = false;

	if (!read_inside(image, image->gnu_hash, head, sizeof head) || head[0] == 0)
		return 0;
	buckets = image->gnu_hash + sizeof head + 8ull * head[2];
	chains = buckets + 4ull * head[0];
	if (!read_inside(image, buckets + 4ull * (hash % head[0]), &bucket, sizeof bucket) || bucket < head[1])
		return 0;
	for (index = bucket; index - bucket < MAX_CHAIN; index++) {
		if (!read_inside(image, chains + 4ull * (index - head[1]), &chain, sizeof chain))
			return found;
		if ((chain | 1) == (hash | 1)) {
			uint64_t addr = symbol_at(image, index, name, size, &hidden);

			if (addr && !hidden)
				return addr;
			if (addr)
				found = addr;
		}
		if (chain & 1)
			break;
	}
	return found;
}

static uint64_t lookup_sysv(const struct image *image, const char *name, uint64_t *size)
{
	uint32_t head[2], index;
	uint64_t found = 0;
	bool hidden = false;

	if (!read_inside(image, image->hash, head, sizeof head) || head[0] == 0)
		return 0;
	if (!read_inside(image, image->hash + 8 + 4ull * (sysv_hash_of(name) % head[0]), &index, sizeof index))
		return 0;
	for (uint32_t steps = 0; index != 0 && steps < MAX_CHAIN; steps++) {
		uint64_t addr = symbol_at(image, index, name, size, &hidden);

		if (addr && !hidden)
			return addr;
		if (addr)
			found = addr;
		if (!read_inside(image, image->hash + 8 + 4ull * head[0] + 4ull * index, &index, sizeof index))
			break;
	}
	return found;
}

uint64_t image_symbol(const struct image *image, const char *name, uint64_t *size)
{
	if (!image->symtab || !image->strtab)
		return 0;
	if (image->gnu_hash)
		return lookup_gnu(image, name, size);
	return image->hash ? lookup_sysv(image, name, size) : 0;
}
