/* Finding rows: the caches, and from an address to its FDE. The bytes themselves come through table_file.c. */
#include "unwind/tables.h"

#include <stdlib.h>
#include <string.h>

#include "unwind/table_file.h"

enum { ROWS = 8192 /* 1.5 MiB; a busy inference server shows some 3 000 call sites */ };

struct known_row {
	uint32_t module; /* id; 0 = free */
	bool none;
	uint64_t addr;   /* in the file */
	struct cfi_row row;
};

struct tables {
	const struct modules *modules;
	struct table_pages *pages;
	struct table_file **files;
	size_t file_count, file_capacity;
	struct known_row *rows;
	struct cfi_expressions expressions;
};

struct tables *tables_new(const struct modules *modules, const struct remote_memory *memory)
{
	struct tables *tables = calloc(1, sizeof *tables);

	if (!tables)
		return NULL;
	tables->modules = modules;
	tables->rows = calloc(ROWS, sizeof *tables->rows);
	tables->pages = table_pages_new(modules, memory);
	if (!tables->rows || !tables->pages) {
		tables_free(tables);
		return NULL;
	}
	return tables;
}

void tables_free(struct tables *tables)
{
	if (!tables)
		return;
	for (size_t i = 0; i < tables->file_count; i++)
		table_file_free(tables->files[i]);
	free(tables->files);
	table_pages_free(tables->pages);
	free(tables->rows);
	free(tables);
}

static bool is_there(const struct tables *tables, uint32_t id)
{
	for (size_t i = 0; i < modules_count(tables->modules); i++)
		if (modules_at(tables->modules, i)->id == id)
			return true;
	return false;
}

/* Rows and pages of modules that went are never asked for again: ids are not used twice. */
void tables_forget(struct tables *tables)
{
	size_t kept = 0;

	for (size_t i = 0; i < tables->file_count; i++) {
		if (is_there(tables, tables->files[i]->module))
			tables->files[kept++] = tables->files[i];
		else
			table_file_free(tables->files[i]);
	}
	tables->file_count = kept;
}

static struct table_file *file_of(struct tables *tables, const struct module *module)
{
	struct table_file *file;

	for (size_t i = 0; i < tables->file_count; i++)
		if (tables->files[i]->module == module->id)
			return tables->files[i];
	if (tables->file_count == tables->file_capacity) {
		size_t capacity = tables->file_capacity ? 2 * tables->file_capacity : 64;
		struct table_file **bigger = realloc(tables->files, capacity * sizeof *bigger);

		if (!bigger)
			return NULL;
		tables->files = bigger;
		tables->file_capacity = capacity;
	}
	file = table_file_new(tables->pages, module);
	if (file)
		tables->files[tables->file_count++] = file;
	return file;
}

static void forget_rows(struct tables *tables)
{
	for (size_t i = 0; i < ROWS; i++)
		tables->rows[i].module = 0;
	tables->expressions.count = 0;
}

static int run(struct tables *tables, const struct table_found *found, uint64_t addr, struct cfi_row *out)
{
	int result = cfi_row(&found->cie, &found->fde, addr, &tables->expressions, out);

	if (result != -2)
		return result;
	forget_rows(tables);
	return cfi_row(&found->cie, &found->fde, addr, &tables->expressions, out);
}

static int make_row(struct tables *tables, const struct module *module, uint64_t addr, struct cfi_row *out)
{
	struct table_file *file = file_of(tables, module);
	struct table_found found;

	return file && table_file_find(file, tables->pages, addr, &found) ? run(tables, &found, addr, out) : -1;
}

static struct known_row *place_of(const struct tables *tables, uint32_t module, uint64_t addr)
{
	uint64_t hash = (addr ^ (uint64_t)module << 40) * 0x9e3779b97f4a7c15ull;

	return &tables->rows[hash >> 51]; /* 13 bits */
}

const struct cfi_row *tables_row(struct tables *tables, const struct module *module, uint64_t addr)
{
	struct known_row *known;
	struct cfi_row row;

	addr -= module->bias;
	known = place_of(tables, module->id, addr);
	if (known->module != module->id || known->addr != addr) {
		bool none = !module->elf || make_row(tables, module, addr, &row) < 0;

		known->module = module->id;
		known->addr = addr;
		known->none = none;
		if (!none)
			known->row = row;
	}
	return known->none ? NULL : &known->row;
}

const struct cfi_expressions *tables_expressions(const struct tables *tables)
{
	return &tables->expressions;
}

bool tables_entries(struct tables *tables, const struct module *module, uint64_t addr, struct table_entries *out)
{
	struct table_file *file = module->elf ? file_of(tables, module) : NULL;
	struct table_found found;
	struct cfi_row row;

	addr -= module->bias;
	if (!file || !table_file_find(file, tables->pages, addr, &found) || found.fde_entry.debug_frame)
		return false;
	if (run(tables, &found, addr, &row) < 0 || row.foreign)
		return false;
	*out = (struct table_entries){ found.fde_entry, found.cie_entry, found.fde.start + module->bias, found.fde.end + module->bias };
	out->fde.addr += module->bias;
	out->cie.addr += module->bias;
	return true;
}

int tables_read(struct tables *tables, const struct module *module, uint64_t addr, void *buffer, size_t size)
{
	struct table_file *file = module->elf ? file_of(tables, module) : NULL;

	return file ? table_file_read(file, tables->pages, addr - module->bias, buffer, size) : -1;
}
