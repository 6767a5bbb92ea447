/* Symbol tables: reading, sorting, choosing among aliases. */
#include "base/search.h"
#include "unwind/symtab.h"

#include <stdlib.h>
#include <string.h>

enum { BACK_MAX = 256 /* how many smaller symbols inside a larger one are passed over */ };

int symtab_push(struct symtab *symtab, const struct symtab_entry *entry)
{
	struct symtab_entry *room = list_add(&symtab->entries, SYMBOLS_PER_FILE_MAX);

	if (room)
		*room = *entry;
	else if (symtab->entries.count == SYMBOLS_PER_FILE_MAX)
		symtab->cut = true;
	else
		return -1;
	return 0;
}

int symtab_strings(struct symtab *symtab, Elf_Scn *section)
{
	GElf_Shdr header;
	Elf_Data *data;
	char *bytes;

	if (!section || !gelf_getshdr(section, &header) || header.sh_type != SHT_STRTAB)
		return -1;
	if (header.sh_size > STRINGS_PER_FILE_MAX) {
		symtab->cut = true;
		return -1;
	}
	data = elf_getdata(section, NULL);
	if (!data || !data->d_buf)
		return -1;
	/* A file and its debug file often share them, and they are the largest part. */
	for (unsigned i = 0; i < symtab->tables; i++)
		if (symtab->strings[i].size == data->d_size && memcmp(symtab->strings[i].bytes, data->d_buf, data->d_size) == 0)
			return (int)i;
	bytes = symtab->tables < SYMTAB_TABLES_MAX ? malloc(data->d_size + 1) : NULL;
	if (!bytes)
		return -1;
	memcpy(bytes, data->d_buf, data->d_size);
	bytes[data->d_size] = '\0';
	symtab->strings[symtab->tables].bytes = bytes;
	symtab->strings[symtab->tables].size = data->d_size;
	return (int)symtab->tables++;
}

/* The sections that hold code, by index. */
struct code_sections {
	GElf_Shdr *headers; /* sh_size 0: not code */
	size_t count;
};

static int find_code(Elf *elf, struct code_sections *out)
{
	Elf_Scn *section = NULL;

	if (elf_getshdrnum(elf, &out->count) != 0)
		out->count = 0;
	out->headers = calloc(out->count + 1, sizeof *out->headers);
	if (!out->headers)
		return -1;
	while ((section = elf_nextscn(elf, section))) {
		size_t index = elf_ndxscn(section);

		if (index < out->count && gelf_getshdr(section, &out->headers[index]) && !(out->headers[index].sh_flags & SHF_EXECINSTR))
			out->headers[index].sh_size = 0;
	}
	return 0;
}

/* Is SYM a function with a name, or a label in code? Fills all of OUT but the table. */
static bool take(const Elf64_Sym *sym, const struct code_sections *code, size_t strings_size, struct symtab_entry *out)
{
	unsigned type = ELF64_ST_TYPE(sym->st_info);
	uint64_t room;

	if ((type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE) || sym->st_shndx == SHN_UNDEF || sym->st_shndx >= code->count
	    || sym->st_name == 0 || sym->st_name >= strings_size)
		return false;
	if (sym->st_value - code->headers[sym->st_shndx].sh_addr >= code->headers[sym->st_shndx].sh_size)
		return false;
	room = code->headers[sym->st_shndx].sh_addr + code->headers[sym->st_shndx].sh_size - sym->st_value;
	out->addr = sym->st_value;
	out->flags = (uint8_t)((ELF64_ST_BIND(sym->st_info) == STB_LOCAL ? SYMTAB_LOCAL : 0) | (type == STT_NOTYPE ? SYMTAB_LABEL : 0) | (sym->st_size ? 0 : SYMTAB_SIZELESS));
	if (sym->st_size && sym->st_size < room)
		room = sym->st_size;
	out->size = room < UINT32_MAX ? (uint32_t)room : UINT32_MAX;
	out->name = sym->st_name;
	return true;
}

static Elf_Scn *section_of_type(Elf *elf, uint32_t type, GElf_Shdr *out)
{
	Elf_Scn *section = NULL;

	while ((section = elf_nextscn(elf, section)))
		if (gelf_getshdr(section, out) && out->sh_type == type)
			return section;
	return NULL;
}

ssize_t symtab_add(struct symtab *symtab, Elf *elf, uint32_t type)
{
	struct code_sections code = { 0 };
	struct symtab_entry entry = { 0 };
	size_t before = symtab->entries.count;
	ssize_t result = 0;
	GElf_Shdr header;
	Elf_Scn *section = section_of_type(elf, type, &header);
	Elf_Data *data;
	int table;

	if (!section)
		return 0;
	if (header.sh_size / sizeof(Elf64_Sym) > SYMBOLS_PER_FILE_MAX) {
		symtab->cut = true;
		return 0;
	}
	table = symtab_strings(symtab, elf_getscn(elf, header.sh_link));
	data = table >= 0 ? elf_getdata(section, NULL) : NULL;
	if (!data || !data->d_buf)
		return 0;
	if (find_code(elf, &code) < 0)
		return -1;
	entry.table = (uint8_t)table;
	for (size_t i = 0; i < data->d_size / sizeof(Elf64_Sym) && result == 0; i++)
		if (take((const Elf64_Sym *)data->d_buf + i, &code, symtab->strings[table].size, &entry))
			result = symtab_push(symtab, &entry);
	free(code.headers);
	return result < 0 ? -1 : (ssize_t)(symtab->entries.count - before);
}

static const char *raw_name(const struct symtab *symtab, const struct symtab_entry *entry)
{
	return symtab->strings[entry->table].bytes + entry->name;
}

/* Leading underscores that say "private"; those of mangled names say nothing. */
static size_t underscores(const char *name)
{
	return name[0] == '_' && (name[1] == 'Z' || name[1] == 'R') ? 0 : strspn(name, "_");
}

/* Which of two names for one address is shown: the stub's own, a typed one, a visible one, the most public, the shortest, the first of the alphabet. */
static int prefer(const struct symtab *symtab, const struct symtab_entry *a, const struct symtab_entry *b)
{
	static const uint8_t order[] = { SYMTAB_PLT, SYMTAB_LABEL, SYMTAB_SIZELESS, SYMTAB_LOCAL };
	const char *one = raw_name(symtab, a), *two = raw_name(symtab, b);
	size_t one_length = strcspn(one, "@"), two_length = strcspn(two, "@");

	for (size_t i = 0; i < sizeof order; i++)
		if ((a->flags ^ b->flags) & order[i])
			return (a->flags & order[i] ? 1 : -1) * (order[i] == SYMTAB_PLT ? -1 : 1);
	if (underscores(one) != underscores(two))
		return underscores(one) < underscores(two) ? -1 : 1;
	if (one_length != two_length)
		return one_length < two_length ? -1 : 1;
	return strcmp(one, two);
}

static int by_address(const void *a, const void *b, void *context)
{
	const struct symtab_entry *one = a, *two = b;

	if (one->addr != two->addr)
		return one->addr < two->addr ? -1 : 1;
	return prefer(context, one, two);
}

/* Where a symbol without size must end at the latest, by the functions known. */
static uint64_t function_end(const struct functions *functions, uint64_t addr, uint64_t end)
{
	const struct function_extent *in = functions_find(functions, addr);
	size_t next = search_first(functions->count, i, functions->extents[i].start <= addr);

	if (in)
		return in->start + in->size < end ? in->start + in->size : end;
	return next < functions->count && functions->extents[next].start < end ? functions->extents[next].start : end;
}

void symtab_finish(struct symtab *symtab, const struct functions *functions)
{
	struct symtab_entry *entries = symtab->entries.items, *smaller;
	size_t kept = 0;
	uint64_t covered = 0; /* by symbols that have a size */

	if (symtab->entries.count == 0)
		return;
	qsort_r(entries, symtab->entries.count, sizeof *entries, by_address, symtab);
	for (size_t i = 0; i < symtab->entries.count; i++)
		if (i == 0 || entries[i].addr != entries[kept - 1].addr)
			entries[kept++] = entries[i];
	symtab->entries.count = kept;
	kept = 0;
	for (size_t i = 0; i < symtab->entries.count; i++) {
		struct symtab_entry entry = entries[i];
		uint64_t end = entry.addr + entry.size;

		if (entry.flags & SYMTAB_SIZELESS) {
			if (entry.addr < covered)
				continue;
			if (i + 1 < symtab->entries.count && entries[i + 1].addr < end)
				end = entries[i + 1].addr;
			entry.size = (uint32_t)(function_end(functions, entry.addr, end) - entry.addr);
		} else if (end > covered) {
			covered = end;
		}
		entries[kept++] = entry;
	}
	symtab->entries.count = kept;
	smaller = realloc(entries, (kept ? kept : 1) * sizeof *entries);
	if (smaller) {
		symtab->entries.items = smaller;
		symtab->entries.capacity = kept;
	}
}

void symtab_done(struct symtab *symtab)
{
	list_done(&symtab->entries);
	for (unsigned i = 0; i < symtab->tables; i++)
		free(symtab->strings[i].bytes);
	memset(symtab, 0, sizeof *symtab);
}

const struct symtab_entry *symtab_find(const struct symtab *symtab, uint64_t addr)
{
	size_t next = search_first(symtab->entries.count, i, symtab->entries.items[i].addr <= addr);

	for (size_t back = 0; next > 0 && back < BACK_MAX; next--, back++)
		if (addr - symtab->entries.items[next - 1].addr < symtab->entries.items[next - 1].size)
			return &symtab->entries.items[next - 1];
	return NULL;
}

static void cut_suffix(char *name)
{
	static const char cold[] = ".cold", twin[] = ".lto_priv.";
	char *end = name + strlen(name), *digits = end;

	if (end - name > (ptrdiff_t)sizeof cold && strcmp(end - (sizeof cold - 1), cold) == 0)
		digits = end -= sizeof cold - 1;
	*end = '\0';
	while (digits > name && digits[-1] >= '0' && digits[-1] <= '9')
		digits--;
	if (digits < end && digits - name > (ptrdiff_t)sizeof twin && strncmp(digits - (sizeof twin - 1), twin, sizeof twin - 1) == 0)
		digits[-(ptrdiff_t)(sizeof twin - 1)] = '\0';
}

void symtab_name(const struct symtab *symtab, const struct symtab_entry *entry, char out[SYMTAB_NAME_MAX])
{
	static const char plt[] = "@plt";
	const char *name = raw_name(symtab, entry);
	size_t length = strcspn(name, "@");

	if (length > SYMTAB_NAME_MAX - sizeof plt)
		length = SYMTAB_NAME_MAX - sizeof plt;
	memcpy(out, name, length);
	out[length] = '\0';
	if (entry->flags & SYMTAB_PLT)
		memcpy(out + length, plt, sizeof plt);
	else
		cut_suffix(out);
}
