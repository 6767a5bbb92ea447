/* Bounded reading of ELF headers, notes and section names. */
#include "unwind/elf_file.h"

#include "unwind/machine.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE 4096ull
#define USER_END 0x800000000000ull
#define SECTIONS_MAX 4096
#define NOTES_MAX 65536

static uint64_t page_down(uint64_t addr)
{
	return addr & ~(PAGE - 1);
}

static uint64_t page_up(uint64_t addr)
{
	return (addr + PAGE - 1) & ~(PAGE - 1);
}

static int read_fd(void *context, uint64_t offset, void *buffer, size_t size)
{
	return pread(*(const int *)context, buffer, size, (off_t)offset) == (ssize_t)size ? 0 : -1;
}

struct elf_source elf_source_fd(const int *fd)
{
	return (struct elf_source){ read_fd, (void *)(uintptr_t)fd };
}

static const char *check_head(const Elf64_Ehdr *head)
{
	if (memcmp(head->e_ident, ELFMAG, SELFMAG) != 0)
		return "not an ELF file";
	if (head->e_ident[EI_CLASS] != ELFCLASS64 || head->e_ident[EI_DATA] != ELFDATA2LSB || head->e_machine != MACHINE_FILE)
		return "not a file for this machine";
	if (head->e_type != ET_EXEC && head->e_type != ET_DYN)
		return "neither a program nor a library";
	if (head->e_phentsize != sizeof(Elf64_Phdr) || head->e_phnum == 0 || head->e_phnum >= PN_XNUM)
		return "its program headers make no sense";
	return NULL;
}

static bool in_user_space(uint64_t start, uint64_t size)
{
	return start < USER_END && size <= USER_END - start;
}

static void take_segment(struct elf_file *file, const Elf64_Phdr *header)
{
	if (file->segment_count == ELF_SEGMENTS_MAX || header->p_memsz == 0 || header->p_filesz > header->p_memsz)
		return;
	if (!in_user_space(header->p_vaddr, header->p_memsz) || !in_user_space(header->p_offset, header->p_filesz))
		return;
	file->segments[file->segment_count++] = (struct elf_segment){
		.offset = header->p_offset,
		.file_size = header->p_filesz,
		.vaddr = header->p_vaddr,
		.memory_size = header->p_memsz,
		.executable = header->p_flags & PF_X,
		.writable = header->p_flags & PF_W,
	};
}

static void take_build_id(struct elf_file *file, const unsigned char *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		snprintf(file->build_id + 2 * i, 3, "%02x", bytes[i]);
}

static void read_notes(const struct elf_source *source, const Elf64_Phdr *header, struct elf_file *file)
{
	size_t size = header->p_filesz < NOTES_MAX ? (size_t)header->p_filesz : NOTES_MAX, at = 0, align = header->p_align == 8 ? 8 : 4;
	unsigned char *notes = size ? malloc(size) : NULL;
	Elf64_Nhdr note;

	if (!notes || source->read(source->context, header->p_offset, notes, size) < 0)
		size = 0;
	while (size - at >= sizeof note && !file->build_id[0]) {
		uint64_t name, descriptor, next;

		memcpy(&note, notes + at, sizeof note);
		name = at + sizeof note;
		descriptor = name + ((note.n_namesz + align - 1) & ~(uint64_t)(align - 1));
		next = descriptor + ((note.n_descsz + align - 1) & ~(uint64_t)(align - 1));
		if (descriptor + note.n_descsz > size)
			break;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp(notes + name, "GNU", 4) == 0 && note.n_descsz <= ELF_BUILD_ID_MAX)
			take_build_id(file, notes + descriptor, note.n_descsz);
		if (next > size)
			break;
		at = (size_t)next;
	}
	free(notes);
}

/* SECTION lies, as far as the file goes, in one loaded segment: then it can be read from memory as well. */
static bool is_loaded(const struct elf_file *file, const struct elf_section *section)
{
	for (uint32_t i = 0; i < file->segment_count; i++) {
		const struct elf_segment *s = &file->segments[i];

		if (section->vaddr >= s->vaddr && section->vaddr - s->vaddr <= s->file_size && section->size <= s->file_size - (section->vaddr - s->vaddr))
			return true;
	}
	return false;
}

static void take_tables(struct elf_file *file, const Elf64_Phdr *header)
{
	struct elf_section section = { header->p_vaddr, header->p_offset, header->p_filesz };

	if (is_loaded(file, &section))
		file->eh_frame_hdr = section;
}

const char *elf_file_read(const struct elf_source *source, struct elf_file *out)
{
	size_t headers_size;
	const char *why;
	Elf64_Phdr *headers;
	Elf64_Ehdr head;

	memset(out, 0, sizeof *out);
	if (source->read(source->context, 0, &head, sizeof head) < 0)
		return "not an ELF file";
	why = check_head(&head);
	if (why)
		return why;
	headers_size = head.e_phnum * sizeof *headers;
	headers = malloc(headers_size);
	if (!headers || !in_user_space(head.e_phoff, headers_size) || source->read(source->context, head.e_phoff, headers, headers_size) < 0) {
		free(headers);
		return "its program headers could not be read";
	}
	for (uint16_t i = 0; i < head.e_phnum; i++)
		if (headers[i].p_type == PT_LOAD)
			take_segment(out, &headers[i]);
	for (uint16_t i = 0; i < head.e_phnum; i++) {
		if (headers[i].p_type == PT_GNU_EH_FRAME)
			take_tables(out, &headers[i]);
		else if (headers[i].p_type == PT_NOTE && !out->build_id[0] && in_user_space(headers[i].p_offset, headers[i].p_filesz))
			read_notes(source, &headers[i], out);
	}
	free(headers);
	return out->segment_count ? NULL : "it has nothing to load";
}

static bool has_name(const struct elf_source *source, const Elf64_Shdr *names, uint32_t at, const char *wanted)
{
	char name[32];
	size_t length = strlen(wanted) + 1;

	return length <= sizeof name && at < names->sh_size && length <= names->sh_size - at
	       && source->read(source->context, names->sh_offset + at, name, length) == 0 && memcmp(name, wanted, length) == 0;
}

bool elf_file_section(const struct elf_source *source, const struct elf_file *file, const char *name, struct elf_section *out)
{
	Elf64_Shdr *sections = NULL;
	bool found = false;
	Elf64_Ehdr head;

	if (source->read(source->context, 0, &head, sizeof head) < 0 || head.e_shentsize != sizeof *sections || head.e_shnum > SECTIONS_MAX)
		return false;
	if (head.e_shstrndx >= head.e_shnum || !in_user_space(head.e_shoff, head.e_shnum * sizeof *sections))
		return false;
	sections = malloc(head.e_shnum * sizeof *sections);
	if (sections && source->read(source->context, head.e_shoff, sections, head.e_shnum * sizeof *sections) == 0
	    && in_user_space(sections[head.e_shstrndx].sh_offset, sections[head.e_shstrndx].sh_size)) {
		for (uint16_t i = 0; i < head.e_shnum && !found; i++) {
			struct elf_section section = { sections[i].sh_addr, sections[i].sh_offset, sections[i].sh_size };

			if (sections[i].sh_type == SHT_NOBITS || (sections[i].sh_flags & SHF_COMPRESSED) || !in_user_space(section.offset, section.size))
				continue;
			if (!has_name(source, &sections[head.e_shstrndx], sections[i].sh_name, name) || ((sections[i].sh_flags & SHF_ALLOC) && !is_loaded(file, &section)))
				continue;
			*out = section;
			found = true;
		}
	}
	free(sections);
	return found;
}

void elf_file_extent(const struct elf_file *file, uint64_t *low, uint64_t *high)
{
	uint64_t from = UINT64_MAX, to = 0;

	for (uint32_t i = 0; i < file->segment_count; i++) {
		const struct elf_segment *s = &file->segments[i];

		from = s->vaddr < from ? s->vaddr : from;
		to = s->vaddr + s->memory_size > to ? s->vaddr + s->memory_size : to;
	}
	*low = page_down(from);
	*high = page_up(to);
}

bool elf_file_bias(const struct elf_file *file, uint64_t start, uint64_t offset, uint64_t *out)
{
	const struct elf_segment *found = NULL;

	for (uint32_t i = 0; i < file->segment_count; i++) {
		const struct elf_segment *s = &file->segments[i];

		if (!s->executable || offset < page_down(s->offset) || offset >= page_up(s->offset + s->file_size))
			continue;
		/* Two segments may share a page of the file: the one that begins there is meant. */
		if (!found || offset == page_down(s->offset))
			found = s;
	}
	if (!found)
		return false;
	*out = start - offset + found->offset - found->vaddr;
	return true;
}
