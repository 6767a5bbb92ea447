/*
 * The modules of a process: mappings put together by file, sorted by address and apart. Where two claim the same address, the one that
 * begins later has it. How a file is opened is module_file.c's, what its headers say elf_file.c's.
 */
#include "unwind/modules.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mappings.h"
#include "unwind/elf_file.h"
#include "unwind/module_list.h"

enum { GONE_MAX = 4096 /* modules kept after they went */ };

#define PAGE UINT64_C(4096)

struct modules {
	struct module_owner owner;
	struct module_list list; /* by start; apart */
	uint32_t last_id;
};

static void copy_text(char *out, size_t size, const char *text)
{
	snprintf(out, size, "%s", text);
}

/* Fills what a module shows of its file; takes over one use of FILE. */
static void entry_describe(struct module_entry *entry, const struct module_owner *owner, struct module_file *file)
{
	struct module *module = &entry->module;

	entry->file = file;
	copy_text(module->path, sizeof module->path, module_owner_path(owner, file->shown));
	copy_text(module->why, sizeof module->why, file->why);
	module->deleted = file->deleted;
	if (module->kind == MODULE_FILE || module->kind == MODULE_VDSO) {
		copy_text(module->build_id, sizeof module->build_id, file->elf.build_id);
		module->elf = &file->elf;
	}
}

/* Executable memory behind a descriptor alone: code generators map theirs twice, once to write, once to run. */
static bool is_generated(const struct module_file *file)
{
	static const char *const names[] = { "/memfd:", "/dev/zero", "/dev/shm/", "/SYSV" };

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strncmp(file->shown, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

/* All mappings of one file, by address. */
struct group {
	const struct mapping *const *list;
	size_t count;
	bool headed; /* the file's beginning is mapped somewhere */
};

/* Is it a page of the file that somebody has mapped once more, without the rest? libffi (3.4 and later) does that with its trampolines, right behind itself. */
static bool is_lone(const struct group *group, uint64_t start)
{
	for (size_t i = 0; i < group->count; i++)
		if (group->list[i]->start == start && group->list[i]->offset == 0)
			return false;
	return group->headed;
}

/* Adds the module that MAPPING, executable, is a part of, unless LAST is that one already. LAST is updated. */
static int add_of_file(struct module_list *list, const struct module_owner *owner, struct module_file *file, const struct group *group, const struct mapping *mapping, struct module_entry **last)
{
	uint64_t bias = 0, low, high, start = mapping->start, end = mapping->end;
	enum module_kind kind = file->is_elf ? MODULE_FILE : is_generated(file) ? MODULE_JIT : MODULE_OTHER;

	if (kind == MODULE_FILE && elf_file_bias(&file->elf, mapping->start, mapping->offset, &bias)) {
		elf_file_extent(&file->elf, &low, &high);
		if (!is_lone(group, bias + low)) {
			start = bias + low;
			end = bias + high;
		}
	}
	if (kind == MODULE_FILE && (start > mapping->start || end <= mapping->start)) {
		kind = MODULE_OTHER;
		start = mapping->start;
		end = mapping->end;
		bias = 0;
	}
	if (*last && (*last)->module.kind == kind && kind == MODULE_FILE && (*last)->module.bias == bias)
		return 0;
	*last = module_list_add(list, start, end, kind);
	if (!*last)
		return -1;
	(*last)->module.bias = bias;
	file->users++;
	entry_describe(*last, owner, file);
	if (kind == MODULE_OTHER && !(*last)->module.why[0])
		copy_text((*last)->module.why, sizeof (*last)->module.why, "what is mapped is no part of the program that its headers describe");
	return 0;
}

/* The file that MAPPING shows: as an earlier look left it, or read now. The caller's to release. */
static struct module_file *file_of(const struct modules *modules, const struct mapping *mapping, const struct mapping *head)
{
	const struct module_entry *known = module_list_find(&modules->list, mapping->start);
	size_t mark = strlen(" (deleted)"), length = strlen(mapping->path);

	if (!known || !known->file || known->gone || !module_file_is(known->file, mapping))
		return module_file_new(&modules->owner, mapping, head);
	if (!known->file->deleted && length > mark && strcmp(mapping->path + length - mark, " (deleted)") == 0)
		known->file->deleted = !module_file_in_place(&modules->owner, known->file);
	module_file_moved(known->file, head ? head : mapping);
	known->file->users++;
	return known->file;
}

static int add_group(struct module_list *list, const struct modules *modules, struct group *group)
{
	const struct mapping *head = NULL;
	struct module_file *file = NULL;
	struct module_entry *last = NULL;
	int result = 0;

	for (size_t i = 0; i < group->count; i++)
		group->headed |= group->list[i]->offset == 0;
	for (size_t i = 0; i < group->count && result == 0; i++) {
		const struct mapping *mapping = group->list[i];

		if (mapping->offset == 0 && mapping->readable && (!head || !file))
			head = mapping;
		if (!mapping->executable)
			continue;
		if (!file)
			file = file_of(modules, mapping, head);
		result = file ? add_of_file(list, &modules->owner, file, group, mapping, &last) : -1;
	}
	module_file_release(file);
	return result;
}

static int by_file(const void *a, const void *b)
{
	const struct mapping *x = *(const struct mapping *const *)a, *y = *(const struct mapping *const *)b;

	if (x->inode != y->inode)
		return x->inode < y->inode ? -1 : 1;
	if (x->device_major != y->device_major)
		return x->device_major < y->device_major ? -1 : 1;
	if (x->device_minor != y->device_minor)
		return x->device_minor < y->device_minor ? -1 : 1;
	return (x->start > y->start) - (x->start < y->start);
}

static int add_files(struct module_list *list, const struct modules *modules, const struct maps *maps)
{
	const struct mapping **sorted = calloc(maps->count + 1, sizeof *sorted);
	size_t count = 0, from = 0;
	int result = sorted ? 0 : -1;

	for (size_t i = 0; sorted && i < maps->count; i++)
		if (maps->list[i].inode)
			sorted[count++] = &maps->list[i];
	if (count)
		qsort(sorted, count, sizeof *sorted, by_file);
	for (size_t i = 1; i <= count && result == 0; i++) {
		if (i < count && mapping_same_file(sorted[i], sorted[from]))
			continue;
		result = add_group(list, modules, &(struct group){ sorted + from, i - from, false });
		from = i;
	}
	free(sorted);
	return result;
}

static int add_vdso(struct module_list *list, const struct modules *modules, const struct mapping *mapping)
{
	struct module_file *file = file_of(modules, mapping, mapping);
	struct module_entry *entry = file ? module_list_add(list, mapping->start, mapping->end, file->is_elf ? MODULE_VDSO : MODULE_OTHER) : NULL;

	if (!entry) {
		module_file_release(file);
		return -1;
	}
	if (file->is_elf)
		elf_file_bias(&file->elf, mapping->start, mapping->offset, &entry->module.bias);
	entry_describe(entry, &modules->owner, file);
	return 0;
}

/* Is any part of [START, END) in a segment of the module's file? Between segments there may be room that others map something in. */
static bool holds_segment(const struct module *module, uint64_t start, uint64_t end)
{
	for (uint32_t i = 0; i < module->elf->segment_count; i++) {
		const struct elf_segment *s = &module->elf->segments[i];

		if (start < ((module->bias + s->vaddr + s->memory_size + PAGE - 1) & ~(PAGE - 1)) && end > ((module->bias + s->vaddr) & ~(PAGE - 1)))
			return true;
	}
	return false;
}

/* The module of a file whose extent ADDR lies in, or NULL. */
static const struct module_entry *file_around(const struct module_list *files, uint64_t addr)
{
	const struct module_entry *around = module_list_find(files, addr);

	return around && around->module.kind == MODULE_FILE ? around : NULL;
}

/* Executable memory without a file. In a segment of a module it is the module's (text moved to huge pages). */
static int add_anonymous(struct module_list *list, const struct module_list *files, const struct mapping *mapping)
{
	const struct module_entry *around = file_around(files, mapping->start);
	struct module_entry *last = list->count ? list->entries[list->count - 1] : NULL;
	bool kernels = strcmp(mapping->path, "[vsyscall]") == 0 || strcmp(mapping->path, "[uprobes]") == 0;

	if (around && holds_segment(&around->module, mapping->start, mapping->end))
		return 0;
	if (!kernels && last && last->module.kind == MODULE_JIT && last->module.end == mapping->start) {
		last->module.end = mapping->end;
		return 0;
	}
	last = module_list_add(list, mapping->start, mapping->end, kernels ? MODULE_OTHER : MODULE_JIT);
	if (!last)
		return -1;
	copy_text(last->module.path, sizeof last->module.path, mapping->path);
	if (kernels)
		copy_text(last->module.why, sizeof last->module.why, "a page of the kernel's");
	return 0;
}

/* Who begins later has an address: what a module has behind something in one of its holes is an entry of its own. */
static int add_behind_holes(struct module_list *list, const struct module_list *files, const struct modules *modules)
{
	size_t count = list->count;

	for (size_t i = 0; i < count; i++) {
		uint64_t start = list->entries[i]->module.end;
		const struct module_entry *around = file_around(files, list->entries[i]->module.start);
		struct module_entry *entry;

		if (!around || start >= around->module.end || !holds_segment(&around->module, start, around->module.end))
			continue;
		entry = module_list_add(list, start, around->module.end, MODULE_FILE);
		if (!entry)
			return -1;
		entry->module.bias = around->module.bias;
		around->file->users++;
		entry_describe(entry, &modules->owner, around->file);
	}
	return 0;
}

static int add_rest(struct module_list *list, const struct module_list *files, const struct modules *modules, const struct maps *maps)
{
	int result = 0;

	for (size_t i = 0; i < maps->count && result == 0; i++) {
		const struct mapping *mapping = &maps->list[i];

		if (mapping->inode || !mapping->executable)
			continue;
		if (strcmp(mapping->path, "[vdso]") == 0)
			result = add_vdso(list, modules, mapping);
		else
			result = add_anonymous(list, files, mapping);
	}
	return result < 0 ? -1 : add_behind_holes(list, files, modules);
}

static int build(const struct modules *modules, const struct maps *maps, struct module_list *out)
{
	struct module_list files = { 0 }, rest = { 0 };
	int result = add_files(&files, modules, maps);

	if (result == 0) {
		module_list_order(&files);
		result = add_rest(&rest, &files, modules, maps);
	}
	if (result == 0)
		result = module_list_take(&files, &rest);
	module_list_done(&rest);
	if (result < 0) {
		module_list_done(&files);
		return -1;
	}
	module_list_order(&files);
	*out = files;
	return 0;
}

static bool same_module(const struct module_entry *x, const struct module_entry *y)
{
	return x->module.start == y->module.start && x->module.kind == y->module.kind && x->module.bias == y->module.bias && x->file == y->file;
}

/* Gives new entries the ids of those they continue, and says whether anything is different. */
static bool take_ids(struct modules *modules, struct module_list *fresh)
{
	bool changed = false;

	for (size_t i = 0; i < fresh->count; i++) {
		struct module_entry *entry = fresh->entries[i], *old = module_list_find(&modules->list, entry->module.start);

		if (old && !old->gone && same_module(old, entry)) {
			entry->module.id = old->module.id;
			changed |= old->module.end != entry->module.end;
			continue;
		}
		entry->module.id = ++modules->last_id;
		changed = true;
	}
	return changed;
}

/* Entries whose place is free in FRESH move there. LIST keeps the rest. */
static int keep_gone(struct module_list *list, struct module_list *fresh, bool *changed)
{
	struct module_list gone = { 0 };
	size_t left = 0;
	int result;

	if (module_list_reserve(&gone, list->count) < 0 || module_list_reserve(fresh, list->count) < 0) {
		free(gone.entries);
		return -1;
	}
	for (size_t i = 0; i < list->count; i++) {
		struct module_entry *entry = list->entries[i];

		if (module_list_overlaps(fresh, &entry->module) || gone.count == GONE_MAX) {
			*changed |= entry->gone;
			list->entries[left++] = entry;
			continue;
		}
		*changed |= !entry->gone;
		entry->gone = true;
		gone.entries[gone.count++] = entry;
	}
	list->count = left;
	result = module_list_take(fresh, &gone);
	free(gone.entries);
	module_list_order(fresh);
	return result;
}

int modules_refresh(struct modules *modules)
{
	struct module_list fresh;
	struct maps maps;
	bool changed;

	if (maps_read(modules->owner.procfs, modules->owner.pid, &maps) < 0)
		return -1;
	if (maps.count == 0 || build(modules, &maps, &fresh) < 0) {
		errno = maps.count ? ENOMEM : ESRCH;
		maps_done(&maps);
		return -1;
	}
	maps_done(&maps);
	changed = take_ids(modules, &fresh);
	if (keep_gone(&modules->list, &fresh, &changed) < 0) {
		module_list_done(&fresh);
		errno = ENOMEM;
		return -1;
	}
	module_list_done(&modules->list);
	modules->list = fresh;
	return changed;
}

int modules_open(const struct procfs *procfs, pid_t pid, struct modules **out, struct error *err)
{
	struct modules *modules = calloc(1, sizeof *modules);

	if (!modules || module_owner_open(procfs, pid, &modules->owner) < 0) {
		free(modules);
		return fail(err, ERR_MEMORY, "reading the modules of process %d", (int)pid);
	}
	if (modules_refresh(modules) < 0) {
		int cause = errno;

		modules_close(modules);
		errno = cause;
		if (cause == ESRCH || cause == ENOENT)
			return fail(err, ERR_EXITED, "process %d has no memory map any more", (int)pid);
		return fail(err, error_of(cause, ERR_PERMISSION), "cannot read the memory map of process %d: %s", (int)pid, strerror(cause));
	}
	*out = modules;
	return 0;
}

void modules_close(struct modules *modules)
{
	if (!modules)
		return;
	module_list_done(&modules->list);
	module_owner_close(&modules->owner);
	free(modules);
}

const struct module *modules_find(const struct modules *modules, uint64_t addr)
{
	const struct module_entry *entry = module_list_find(&modules->list, addr);

	return entry ? &entry->module : NULL;
}

size_t modules_count(const struct modules *modules)
{
	return modules->list.count;
}

const struct module *modules_at(const struct modules *modules, size_t index)
{
	return &modules->list.entries[index]->module;
}

int modules_file(const struct modules *modules, const struct module *module)
{
	const struct module_entry *entry = (const struct module_entry *)module;

	if (!entry->file) {
		errno = ENOENT;
		return -1;
	}
	return module_file_open(&modules->owner, entry->file);
}
