/*
 * The symbols of one file, from its own tables and those of its debug file, sorted by address. A symbol covers its size; one without size ends at
 * the next symbol, function or section: an address beyond has no name here, because the nearest name would be another function's.
 */
#ifndef INFERSCOPE_UNWIND_SYMTAB_H
#define INFERSCOPE_UNWIND_SYMTAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <gelf.h>

#include "base/list.h"
#include "unwind/functions.h"

enum { SYMBOLS_PER_FILE_MAX = 8 << 20, STRINGS_PER_FILE_MAX = 512 << 20, SYMTAB_TABLES_MAX = 4, SYMTAB_NAME_MAX = 4096 };

enum symtab_entry_flags {
	SYMTAB_SIZELESS = 1,
	SYMTAB_PLT = 2,      /* the stub that calls the symbol */
	SYMTAB_LOCAL = 4,
	SYMTAB_LABEL = 8,    /* no type: assembler's */
};

struct symtab_entry {
	uint64_t addr;
	uint32_t size;
	uint32_t name;     /* offset in strings[table] */
	uint8_t table, flags;
};

/* Filled by symtab_add*(), then sorted by symtab_finish(); symtab_done() takes all-zero memory, too. */
struct symtab {
	LIST(struct symtab_entry) entries;
	struct {
		char *bytes; /* ends with NUL */
		size_t size;
	} strings[SYMTAB_TABLES_MAX];
	unsigned tables;
	bool cut; /* a bound was reached */
};

/* Adds what the section of TYPE (SHT_SYMTAB, SHT_DYNSYM) defines. How many there were, or -1: out of memory. */
ssize_t symtab_add(struct symtab *symtab, Elf *elf, uint32_t type);
/* Adds the stubs of .plt, .plt.sec and .plt.got under the names of what they call. 0, or -1: out of memory. */
int symtab_add_plt(struct symtab *symtab, Elf *elf);
/* Adds the functions that choosers (STT_GNU_IFUNC) choose from, under their names. FD is the file that ELF was opened on. As above. */
int symtab_add_chosen(struct symtab *symtab, Elf *elf, int fd, const struct functions *functions);
/* Sorts, and chooses one name where several have the same address. */
void symtab_finish(struct symtab *symtab, const struct functions *functions);
void symtab_done(struct symtab *symtab);

const struct symtab_entry *symtab_find(const struct symtab *symtab, uint64_t addr);
/* The name without version, ".cold" and ".lto_priv.N": pieces of one function have one name. Not demangled; cut. */
void symtab_name(const struct symtab *symtab, const struct symtab_entry *entry, char out[SYMTAB_NAME_MAX]);

/* For plt.c and ifunc.c: keeps the strings of SECTION, returns the table's number or -1; adds an entry. */
int symtab_strings(struct symtab *symtab, Elf_Scn *section);
int symtab_push(struct symtab *symtab, const struct symtab_entry *entry);

#endif
