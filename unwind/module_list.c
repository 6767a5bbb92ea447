/* Growing, sorting and searching lists of modules. */
#include "base/search.h"
#include "unwind/module_list.h"

#include <stdlib.h>
#include <string.h>

static void module_entry_free(struct module_entry *entry)
{
	if (!entry)
		return;
	module_file_release(entry->file);
	free(entry);
}

void module_list_done(struct module_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		module_entry_free(list->entries[i]);
	free(list->entries);
	*list = (struct module_list){ 0 };
}

int module_list_reserve(struct module_list *list, size_t more)
{
	size_t capacity = list->capacity ? list->capacity : 64;
	struct module_entry **bigger;

	while (capacity < list->count + more)
		capacity *= 2;
	if (capacity == list->capacity)
		return 0;
	bigger = realloc(list->entries, capacity * sizeof *bigger);
	if (!bigger)
		return -1;
	list->entries = bigger;
	list->capacity = capacity;
	return 0;
}

struct module_entry *module_list_add(struct module_list *list, uint64_t start, uint64_t end, enum module_kind kind)
{
	struct module_entry *entry = module_list_reserve(list, 1) == 0 ? calloc(1, sizeof *entry) : NULL;

	if (!entry)
		return NULL;
	entry->module.start = start;
	entry->module.end = end;
	entry->module.kind = kind;
	list->entries[list->count++] = entry;
	return entry;
}

/* Index of the first entry that begins above ADDR. */
static size_t first_above(const struct module_list *list, uint64_t addr)
{
	return search_first(list->count, i, list->entries[i]->module.start <= addr);
}

struct module_entry *module_list_find(const struct module_list *list, uint64_t addr)
{
	size_t index = first_above(list, addr);

	return index && addr < list->entries[index - 1]->module.end ? list->entries[index - 1] : NULL;
}

static int by_start(const void *a, const void *b)
{
	const struct module *x = &(*(struct module_entry *const *)a)->module, *y = &(*(struct module_entry *const *)b)->module;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->end > y->end) - (x->end < y->end);
}

void module_list_order(struct module_list *list)
{
	size_t kept = 0;

	if (list->count)
		qsort(list->entries, list->count, sizeof *list->entries, by_start);
	for (size_t i = 0; i < list->count; i++) {
		struct module_entry *entry = list->entries[i];

		if (i + 1 < list->count && entry->module.end > list->entries[i + 1]->module.start)
			entry->module.end = list->entries[i + 1]->module.start;
		if (entry->module.start < entry->module.end)
			list->entries[kept++] = entry;
		else
			module_entry_free(entry);
	}
	list->count = kept;
}

int module_list_take(struct module_list *list, struct module_list *from)
{
	if (module_list_reserve(list, from->count) < 0)
		return -1;
	if (from->count)
		memcpy(list->entries + list->count, from->entries, from->count * sizeof *from->entries);
	list->count += from->count;
	from->count = 0;
	return 0;
}

bool module_list_overlaps(const struct module_list *list, const struct module *module)
{
	size_t index = first_above(list, module->start);

	return (index && list->entries[index - 1]->module.end > module->start) || (index < list->count && list->entries[index]->module.start < module->end);
}
