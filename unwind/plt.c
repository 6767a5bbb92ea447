/*
 * Stubs of the procedure linkage table: each jumps through a slot, or pushes a number, that a relocation belongs to, which names the function.
 * Read from the instructions, because their order differs between linkers.
 */
#include "unwind/code.h"
#include "unwind/elf_bytes.h"
#include "unwind/symtab.h"

#include <stdlib.h>
#include <string.h>

enum { STUB_BYTES = 16, STUB_BYTES_SHORT = 8, RELOCATIONS_MAX = 1 << 20, SLOTS_MAX = 1 << 20 };

/* A slot that the loader fills. */
struct slot {
	uint64_t addr;
	uint32_t name; /* in the strings of .dynsym */
};

struct slots {
	struct slot *all; /* in the order of .rela.plt first: its numbers are pushed */
	size_t count, pushed;
	int table;
};

static int by_addr(const void *a, const void *b)
{
	const struct slot *one = a, *two = b;

	return (one->addr > two->addr) - (one->addr < two->addr);
}

static int add_relocations(Elf *elf, const char *name, const Elf_Data *symbols, struct slots *slots)
{
	GElf_Shdr header;
	Elf_Scn *section = elf_bytes_section(elf, name, &header);
	Elf_Data *data;
	size_t count;

	if (!section || header.sh_type != SHT_RELA || header.sh_size / sizeof(Elf64_Rela) > RELOCATIONS_MAX || !(data = elf_getdata(section, NULL)) || !data->d_buf)
		return 0;
	count = data->d_size / sizeof(Elf64_Rela);
	for (size_t i = 0; i < count && slots->count < SLOTS_MAX; i++) {
		const Elf64_Rela *rela = (const Elf64_Rela *)data->d_buf + i;
		size_t index = ELF64_R_SYM(rela->r_info);
		uint32_t type = ELF64_R_TYPE(rela->r_info), symbol_name = 0;

		if (!code_fills_slot(type))
			continue;
		if (index > 0 && index < symbols->d_size / sizeof(Elf64_Sym))
			symbol_name = ((const Elf64_Sym *)symbols->d_buf)[index].st_name;
		if (slots->count % 1024 == 0) {
			struct slot *grown = realloc(slots->all, (slots->count + 1024) * sizeof *grown);

			if (!grown)
				return -1;
			slots->all = grown;
		}
		slots->all[slots->count++] = (struct slot){ rela->r_offset, symbol_name };
	}
	return 0;
}

/* The name behind the stub of SIZE bytes at ADDR, 0 when its instructions tell none. SORTED is by address. */
static uint32_t stub_name(const unsigned char *stub, size_t size, uint64_t addr, const struct slots *slots, const struct slot *sorted)
{
	const struct slot *found;
	uint64_t slot, number;

	if (code_stub_slot(stub, size, addr, &slot)) {
		found = bsearch(&(struct slot){ .addr = slot }, sorted, slots->count, sizeof *sorted, by_addr);
		return found ? found->name : 0;
	}
	/* NOLINTNEXTLINE(clang-analyzer-core.uninitialized.UndefReturn): as many as were pushed are filled */
	return code_stub_number(stub, size, &number) && number < slots->pushed ? slots->all[number].name : 0;
}

static int add_stubs(struct symtab *symtab, Elf *elf, const char *name, const struct slots *slots, const struct slot *sorted)
{
	GElf_Shdr header;
	Elf_Scn *section = elf_bytes_section(elf, name, &header);
	Elf_Data *data;
	size_t step;

	if (!section || header.sh_type != SHT_PROGBITS || header.sh_size / STUB_BYTES_SHORT > SLOTS_MAX || !(data = elf_getdata(section, NULL)) || !data->d_buf)
		return 0;
	step = header.sh_entsize == STUB_BYTES_SHORT ? STUB_BYTES_SHORT : STUB_BYTES;
	for (size_t at = 0; at + step <= data->d_size; at += step) {
		struct symtab_entry entry = { .addr = header.sh_addr + at, .size = (uint32_t)step, .table = (uint8_t)slots->table, .flags = SYMTAB_PLT };

		entry.name = stub_name((const unsigned char *)data->d_buf + at, step, entry.addr, slots, sorted);
		if (entry.name != 0 && entry.name < symtab->strings[slots->table].size && symtab_push(symtab, &entry) < 0)
			return -1;
	}
	return 0;
}

int symtab_add_plt(struct symtab *symtab, Elf *elf)
{
	static const char *const sections[] = { ".plt", ".plt.sec", ".plt.got" };
	struct slots slots = { 0 };
	struct slot *sorted = NULL;
	GElf_Shdr header;
	Elf_Scn *section = elf_bytes_section(elf, ".dynsym", &header);
	Elf_Data *symbols = section && header.sh_size / sizeof(Elf64_Sym) <= SYMBOLS_PER_FILE_MAX ? elf_getdata(section, NULL) : NULL;
	int result = 0;

	if (!symbols || !symbols->d_buf || (slots.table = symtab_strings(symtab, elf_getscn(elf, header.sh_link))) < 0)
		return 0;
	result = add_relocations(elf, ".rela.plt", symbols, &slots);
	slots.pushed = slots.count;
	if (result == 0)
		result = add_relocations(elf, ".rela.dyn", symbols, &slots);
	if (result == 0 && slots.count > 0) {
		sorted = malloc(slots.count * sizeof *sorted);
		result = sorted ? 0 : -1;
	}
	if (sorted) {
		memcpy(sorted, slots.all, slots.count * sizeof *sorted);
		qsort(sorted, slots.count, sizeof *sorted, by_addr);
		for (size_t i = 0; i < sizeof sections / sizeof *sections && result == 0; i++)
			result = add_stubs(symtab, elf, sections[i], &slots, sorted);
	}
	free(slots.all);
	free(sorted);
	return result;
}
