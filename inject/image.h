/*
 * One ELF file as the target has it mapped: symbols, padding, build id. Everything is read from the target's own memory, so that
 * deleted files, other roots and other mount namespaces make no difference, and everything read is bounds-checked: it may lie.
 */
#ifndef INFERSCOPE_INJECT_IMAGE_H
#define INFERSCOPE_INJECT_IMAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/mappings.h"
#include "inject/memory.h"

#define IMAGE_MAX_SEGMENTS 32

struct image_segment {
	uint64_t start, end; /* in memory: load bias + vaddr, + max(filesz, memsz) */
	bool executable, writable;
};

struct image {
	struct memory memory; /* whose descriptor outlives it */
	uint64_t base;      /* where its ELF header lies */
	uint64_t bias;      /* add to a symbol's value */
	uint64_t low, high; /* all of its segments lie in here */
	uint64_t inode;
	const char *path;   /* of the maps it was found in */
	struct image_segment segments[IMAGE_MAX_SEGMENTS];
	uint32_t segment_count;
	uint64_t tls_size, tls_align; /* 0, 0: none */
	uint64_t symtab, strtab, strtab_size, gnu_hash, hash, versym;
	uint64_t jmprel, jmprel_size, rela, rela_size, rela_relative; /* relocations; the last: how many of rela come first and name no symbol */
	uint64_t relro_start, relro_end; /* read-only once relocated; 0, 0: nothing */
	char soname[64];
	char build_id[64]; /* hex, "" = none */
};

/*
 * Looks at the ELF header at MAPPING->start, and at the program headers, which may lie in another of the file's mappings in MAPS (NULL: there are none). False
 * when there is nothing that makes sense.
 */
bool image_open(const struct memory *memory, const struct maps *maps, const struct mapping *mapping, struct image *out);
/* Code of a file that begins like a library, and that image_open() cannot make anything of. */
bool image_is_riddle(const struct memory *memory, const struct maps *maps, const struct mapping *mapping);
/* The ELF header's bytes alone: is this a 32-bit or foreign file? */
bool image_is_elf(const struct memory *memory, uint64_t addr, uint8_t *elf_class, uint16_t *machine);
/* Address of a defined dynamic symbol (its default version first), 0 = none. SIZE may be NULL. */
uint64_t image_symbol(const struct image *image, const char *name, uint64_t *size);
bool image_has(const struct image *image, uint64_t addr);
/* Build id of an ELF file in our own memory; "" = none or no such file. */
void image_build_id_of(const void *bytes, size_t size, char *out, size_t out_size);

#endif
