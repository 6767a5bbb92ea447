/*
 * Functions that are chosen when a library is loaded: memcpy() and its like in glibc. What is exported is the chooser (STT_GNU_IFUNC); the functions
 * themselves have no name in a stripped file. Each that the chooser takes the address of gets its name: of several choosers, memcpy's and memmove's say, one.
 */
#include "unwind/code.h"
#include "unwind/elf_bytes.h"
#include "unwind/symtab.h"

#include <stdlib.h>
#include <string.h>

enum { CHOOSER_MAX = 4096, CHOOSERS_MAX = 1 << 16 };

/* Begins of functions alone: what else a chooser points at (the CPU's features) is none. */
static int add_chosen(struct symtab *symtab, const unsigned char *code, size_t size, const struct symtab_entry *chooser, const struct functions *functions)
{
	for (size_t at = 0; at < size; at += CODE_STEP) {
		const struct function_extent *function;
		struct symtab_entry entry = *chooser;

		if (!code_takes_address(code, size, at, chooser->addr, &entry.addr))
			continue;
		function = functions_find(functions, entry.addr);
		if (!function || function->start != entry.addr)
			continue;
		entry.size = function->size;
		if (symtab_push(symtab, &entry) < 0)
			return -1;
	}
	return 0;
}

static int add_chooser(struct symtab *symtab, Elf *elf, int fd, const Elf64_Sym *sym, const struct symtab_entry *chooser, const struct functions *functions)
{
	Elf_Scn *section = elf_getscn(elf, sym->st_shndx);
	size_t size = sym->st_size < CHOOSER_MAX ? sym->st_size : CHOOSER_MAX;
	unsigned char *code;
	GElf_Shdr header;
	int result;

	if (!section || !gelf_getshdr(section, &header) || header.sh_type != SHT_PROGBITS || sym->st_value - header.sh_addr >= header.sh_size)
		return 0;
	code = elf_bytes_read(fd, header.sh_offset + (sym->st_value - header.sh_addr), &size);
	if (!code)
		return 0;
	result = add_chosen(symtab, code, size, chooser, functions);
	free(code);
	return result;
}

int symtab_add_chosen(struct symtab *symtab, Elf *elf, int fd, const struct functions *functions)
{
	GElf_Shdr header;
	Elf_Scn *section = elf_bytes_section(elf, ".dynsym", &header);
	Elf_Data *data = section && header.sh_size / sizeof(Elf64_Sym) <= SYMBOLS_PER_FILE_MAX ? elf_getdata(section, NULL) : NULL;
	int table = data && data->d_buf ? symtab_strings(symtab, elf_getscn(elf, header.sh_link)) : -1, choosers = 0;

	for (size_t i = 0; table >= 0 && i < data->d_size / sizeof(Elf64_Sym) && choosers < CHOOSERS_MAX; i++) {
		const Elf64_Sym *sym = (const Elf64_Sym *)data->d_buf + i;
		struct symtab_entry chooser = { .addr = sym->st_value, .table = (uint8_t)table, .name = sym->st_name };

		if (ELF64_ST_TYPE(sym->st_info) != STT_GNU_IFUNC || sym->st_shndx == SHN_UNDEF || sym->st_name == 0 || sym->st_name >= symtab->strings[table].size)
			continue;
		choosers++;
		if (add_chooser(symtab, elf, fd, sym, &chooser, functions) < 0)
			return -1;
	}
	return 0;
}
