/* Symbols of a mapped ELF object, found by its own hash tables in the target's memory. Knows nothing of Python. */
#include "inject/remote_elf.h"

#include <elf.h>
#include <string.h>
#include <sys/uio.h>

enum { SEGMENTS_MAX = 64, DYNAMIC_MAX = 256, CHAIN_MAX = 1 << 16, NAME_MAX_BYTES = 128 };

struct gnu_hash_header {
	uint32_t bucket_count, first_symbol, bloom_size, bloom_shift;
};

int remote_read(pid_t pid, remote_addr addr, void *buffer, size_t size)
{
	struct iovec here = { buffer, size };
	struct iovec there = { (void *)(uintptr_t)addr, size };

	return process_vm_readv(pid, &here, 1, &there, 1, 0) == (ssize_t)size ? 0 : -1;
}

/* glibc turns the addresses of PT_DYNAMIC into absolute ones in place, musl and static-pie start-up do not. */
static remote_addr absolute(const struct remote_elf *elf, uint64_t value)
{
	return value < elf->bias ? elf->bias + value : value;
}

static int read_dynamic(struct remote_elf *elf, remote_addr addr, uint64_t size)
{
	Elf64_Dyn entries[DYNAMIC_MAX];
	size_t count = size / sizeof entries[0];

	if (count > DYNAMIC_MAX)
		count = DYNAMIC_MAX;
	if (remote_read(elf->pid, addr, entries, count * sizeof entries[0]) < 0)
		return -1;
	for (size_t i = 0; i < count && entries[i].d_tag != DT_NULL; i++) {
		switch (entries[i].d_tag) {
		case DT_SYMTAB: elf->symbols = absolute(elf, entries[i].d_un.d_ptr); break;
		case DT_STRTAB: elf->strings = absolute(elf, entries[i].d_un.d_ptr); break;
		case DT_GNU_HASH: elf->gnu_hash = absolute(elf, entries[i].d_un.d_ptr); break;
		case DT_HASH: elf->old_hash = absolute(elf, entries[i].d_un.d_ptr); break;
		case DT_STRSZ: elf->strings_size = entries[i].d_un.d_val; break;
		default: break;
		}
	}
	return 0;
}

int remote_elf_open(pid_t pid, remote_addr base, struct remote_elf *out)
{
	struct remote_elf elf = { .pid = pid, .base = base };
	Elf64_Ehdr header;
	Elf64_Phdr segments[SEGMENTS_MAX];
	const Elf64_Phdr *dynamic = NULL;
	bool have_bias = false;

	if (remote_read(pid, base, &header, sizeof header) < 0 || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0
	    || header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != EM_X86_64 || header.e_phentsize != sizeof segments[0]
	    || header.e_phnum == 0 || header.e_phnum > SEGMENTS_MAX
	    || remote_read(pid, base + header.e_phoff, segments, header.e_phnum * sizeof segments[0]) < 0)
		return -1;
	for (size_t i = 0; i < header.e_phnum; i++)
		if (segments[i].p_type == PT_LOAD && !have_bias) {
			elf.bias = base - (segments[i].p_vaddr - segments[i].p_offset);
			have_bias = true;
		}
	for (size_t i = 0; i < header.e_phnum; i++) {
		if (segments[i].p_type == PT_DYNAMIC)
			dynamic = &segments[i];
		if (segments[i].p_type == PT_LOAD && segments[i].p_flags & PF_X && !(segments[i].p_flags & PF_W)) {
			elf.code_start = elf.bias + segments[i].p_vaddr;
			elf.code_end = elf.code_start + (segments[i].p_memsz > segments[i].p_filesz ? segments[i].p_memsz : segments[i].p_filesz);
		}
	}
	if (!have_bias || (dynamic && read_dynamic(&elf, elf.bias + dynamic->p_vaddr, dynamic->p_memsz) < 0))
		return -1;
	*out = elf;
	return 0;
}

/* The symbol's address if number INDEX of the table is a definition of NAME. */
static remote_addr symbol_if_named(const struct remote_elf *elf, uint32_t index, const char *name)
{
	char text[NAME_MAX_BYTES];
	size_t size = strlen(name) + 1;
	Elf64_Sym symbol;

	if (remote_read(elf->pid, elf->symbols + (uint64_t)index * sizeof symbol, &symbol, sizeof symbol) < 0)
		return 0;
	if (symbol.st_shndx == SHN_UNDEF || symbol.st_name >= elf->strings_size || size > sizeof text)
		return 0;
	if (remote_read(elf->pid, elf->strings + symbol.st_name, text, size) < 0 || memcmp(text, name, size) != 0)
		return 0;
	return elf->bias + symbol.st_value;
}

static remote_addr find_by_gnu_hash(const struct remote_elf *elf, const char *name)
{
	struct gnu_hash_header header;
	uint32_t hash = 5381, index, link;
	remote_addr buckets, chains;

	for (const unsigned char *c = (const unsigned char *)name; *c; c++)
		hash = hash * 33 + *c;
	if (remote_read(elf->pid, elf->gnu_hash, &header, sizeof header) < 0 || header.bucket_count == 0)
		return 0;
	buckets = elf->gnu_hash + sizeof header + (uint64_t)header.bloom_size * 8;
	chains = buckets + (uint64_t)header.bucket_count * 4;
	if (remote_read(elf->pid, buckets + (uint64_t)(hash % header.bucket_count) * 4, &index, sizeof index) < 0 || index < header.first_symbol)
		return 0;
	for (uint32_t steps = 0; steps < CHAIN_MAX; steps++, index++) {
		if (remote_read(elf->pid, chains + (uint64_t)(index - header.first_symbol) * 4, &link, sizeof link) < 0)
			return 0;
		if ((link | 1) == (hash | 1)) {
			remote_addr found = symbol_if_named(elf, index, name);

			if (found)
				return found;
		}
		if (link & 1)
			return 0;
	}
	return 0;
}

static remote_addr find_by_old_hash(const struct remote_elf *elf, const char *name)
{
	uint32_t header[2], hash = 0, index;
	remote_addr buckets = elf->old_hash + sizeof header;

	for (const unsigned char *c = (const unsigned char *)name; *c; c++) {
		hash = (hash << 4) + *c;
		hash ^= hash >> 24 & 0xf0;
		hash &= 0x0fffffff;
	}
	if (remote_read(elf->pid, elf->old_hash, header, sizeof header) < 0 || header[0] == 0)
		return 0;
	if (remote_read(elf->pid, buckets + (uint64_t)(hash % header[0]) * 4, &index, sizeof index) < 0)
		return 0;
	for (uint32_t steps = 0; steps < CHAIN_MAX && index != 0 && index < header[1]; steps++) {
		remote_addr found = symbol_if_named(elf, index, name);

		if (found)
			return found;
		if (remote_read(elf->pid, buckets + ((uint64_t)header[0] + index) * 4, &index, sizeof index) < 0)
			return 0;
	}
	return 0;
}

remote_addr remote_elf_symbol(const struct remote_elf *elf, const char *name)
{
	if (!elf->symbols || !elf->strings)
		return 0;
	if (elf->gnu_hash)
		return find_by_gnu_hash(elf, name);
	return elf->old_hash ? find_by_old_hash(elf, name) : 0;
}
