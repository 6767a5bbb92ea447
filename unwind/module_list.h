/* Modules sorted by address, each with the file it is of. For modules.c alone. */
#ifndef INFERSCOPE_UNWIND_MODULE_LIST_H
#define INFERSCOPE_UNWIND_MODULE_LIST_H

#include "unwind/module_file.h"

struct module_entry {
	struct module module; /* first: modules_file() finds the rest by it */
	struct module_file *file; /* one use of it; NULL for JIT */
	bool gone;
};

/* Owns its entries. Zeroed = empty. */
struct module_list {
	struct module_entry **entries;
	size_t count, capacity;
};

void module_list_done(struct module_list *list);
/* Room for MORE entries: 0 or -1. */
int module_list_reserve(struct module_list *list, size_t more);
/* A new last entry, or NULL. */
struct module_entry *module_list_add(struct module_list *list, uint64_t start, uint64_t end, enum module_kind kind);
/* Moves everything from FROM into LIST: 0, or -1 and nothing moved. */
int module_list_take(struct module_list *list, struct module_list *from);
/* Sorts by address, and cuts what reaches into the next one; what is left with nothing goes. */
void module_list_order(struct module_list *list);
/* The rest is for ordered lists. */
struct module_entry *module_list_find(const struct module_list *list, uint64_t addr);
bool module_list_overlaps(const struct module_list *list, const struct module *module);

#endif
