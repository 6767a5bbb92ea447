/* From an address to its module's file, and results remembered. What a file says is symfile.c's, generated code jitfiles.c's. */
#include "unwind/symbols.h"

#include "base/arena.h"
#include "base/list.h"
#include "base/map.h"
#include "unwind/jitfiles.h"
#include "unwind/symfile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES_MAX = 1 << 16, RESULTS_MAX = 1 << 21, FRAMES_MAX = 1 << 23, DEBUGINFOD_TIMEOUT_S = 10 };
static const uint64_t BYTES_MAX = 1u << 30; /* of symbols and debug information in all files together */

/* One file, however often it is mapped. */
struct known_file {
	char build_id[MODULE_BUILD_ID_MAX * 2 + 1];
	struct stat identity;
	struct symfile *file;    /* NULL: not read, `why` */
	struct map results;      /* virtual address: index of its result */
	char why[160];
};

struct result {
	uint32_t first, count;   /* in frames */
};

struct symbols {
	const struct procfs *procfs;
	const struct modules *modules;
	pid_t pid;
	struct debug_places places;
	struct strings *names;
	struct jitfiles *jit;
	struct map by_module;    /* module's id: index of its file */
	LIST(struct known_file) files;
	LIST(struct result) results;
	LIST(struct symbol) frames;
	uint64_t bytes;
	char problem[128];
	char source[256];
};

int symbols_open(const struct procfs *procfs, pid_t pid, const struct modules *modules, const struct symbols_options *options, struct symbols **out, struct error *err)
{
	struct symbols *symbols = calloc(1, sizeof *symbols);
	char root[512];

	if (!symbols)
		return fail(err, ERR_MEMORY, "opening the symbols of %d", (int)pid);
	symbols->procfs = procfs;
	symbols->modules = modules;
	symbols->pid = pid;
	snprintf(root, sizeof root, "%s/%d/root", procfs->root, (int)pid);
	symbols->places.process_root = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	symbols->places.own_root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	symbols->places.folder = options && options->debug_folder ? options->debug_folder : "/usr/lib/debug";
	if (options && options->debuginfod)
		symbols->places.debuginfod = debuginfod_open(options->debuginfod_timeout_s ? options->debuginfod_timeout_s : DEBUGINFOD_TIMEOUT_S, symbols->problem, sizeof symbols->problem);
	symbols->names = strings_new();
	symbols->jit = symbols->names ? jitfiles_open(procfs, pid, symbols->places.process_root, modules, symbols->names) : NULL;
	if (!symbols->jit) {
		symbols_close(symbols);
		return fail(err, ERR_MEMORY, "opening the symbols of %d", (int)pid);
	}
	*out = symbols;
	return 0;
}

void symbols_close(struct symbols *symbols)
{
	if (!symbols)
		return;
	for (size_t i = 0; i < symbols->files.count; i++) {
		symfile_free(symbols->files.items[i].file);
		map_done(&symbols->files.items[i].results);
	}
	list_done(&symbols->files);
	list_done(&symbols->results);
	list_done(&symbols->frames);
	map_done(&symbols->by_module);
	jitfiles_close(symbols->jit);
	strings_free(symbols->names);
	debuginfod_close(symbols->places.debuginfod);
	if (symbols->places.process_root >= 0)
		close(symbols->places.process_root);
	if (symbols->places.own_root >= 0)
		close(symbols->places.own_root);
	free(symbols);
}

static bool is_same(const struct known_file *known, const struct module *module, const struct stat *st)
{
	if (known->build_id[0] || module->build_id[0])
		return strcmp(known->build_id, module->build_id) == 0 && known->identity.st_size == st->st_size;
	return known->file && known->identity.st_dev == st->st_dev && known->identity.st_ino == st->st_ino && known->identity.st_size == st->st_size
		&& known->identity.st_mtim.tv_sec == st->st_mtim.tv_sec && known->identity.st_mtim.tv_nsec == st->st_mtim.tv_nsec;
}

static void load(struct symbols *symbols, const struct module *module, int fd, struct known_file *known)
{
	if (fd < 0) {
		snprintf(known->why, sizeof known->why, "it cannot be opened: %s", strerror(errno));
		return;
	}
	if (symbols->bytes > BYTES_MAX) {
		snprintf(known->why, sizeof known->why, "not read, after 1 GiB of other files' symbols");
		return;
	}
	known->file = symfile_load(fd, module->path, &symbols->places, symbols->names);
	if (known->file)
		symbols->bytes += symfile_bytes(known->file);
	else
		snprintf(known->why, sizeof known->why, "out of memory");
}

/* The file of MODULE, loaded at its first use. NULL when there is no room for one more. */
static struct known_file *file_of(struct symbols *symbols, const struct module *module)
{
	uint32_t index = map_get(&symbols->by_module, module->id);
	struct known_file *known;
	struct stat st = { .st_size = 0 };
	int fd;

	if (index != MAP_ABSENT)
		return &symbols->files.items[index];
	fd = modules_file(symbols->modules, module);
	if (fd >= 0)
		fstat(fd, &st);
	for (index = 0; fd >= 0 && index < symbols->files.count; index++)
		if (is_same(&symbols->files.items[index], module, &st))
			break;
	if (fd < 0 || index == symbols->files.count) {
		index = (uint32_t)symbols->files.count;
		known = list_add(&symbols->files, FILES_MAX);
		if (known) {
			snprintf(known->build_id, sizeof known->build_id, "%s", module->build_id);
			known->identity = st;
			load(symbols, module, fd, known);
		}
	}
	if (fd >= 0)
		close(fd);
	if (index == symbols->files.count || !map_put(&symbols->by_module, module->id, index))
		return NULL;
	return &symbols->files.items[index];
}

static const char *intern(struct symbols *symbols, const char *string)
{
	uint32_t id = strings_add(symbols->names, string, strlen(string));

	return id == UINT32_MAX ? "?" : strings_get(symbols->names, id);
}

/* Code that is in no ELF file. */
static size_t find_generated(struct symbols *symbols, const struct module *module, uint64_t addr, struct symbol *out)
{
	*out = (struct symbol){ .file = "" };
	if (jitfiles_find(symbols->jit, addr, &out->name, &out->file, &out->line) && out->name[0])
		out->named = true;
	else
		out->name = intern(symbols, module && module->kind == MODULE_JIT ? "[jit]" : "[unknown]");
	return 1;
}

/* A module without readable file: its name and the address as it would be in the file. */
static size_t find_unread(struct symbols *symbols, const struct module *module, uint64_t vaddr, struct symbol *out)
{
	char label[NAME_MAX], text[NAME_MAX + 32];

	symfile_label(module->path[0] ? module->path : "[unknown]", label, sizeof label);
	snprintf(text, sizeof text, "%s+0x%llx", label, (unsigned long long)vaddr);
	*out = (struct symbol){ .name = intern(symbols, text), .file = "" };
	return 1;
}

static void remember(struct symbols *symbols, struct known_file *known, uint64_t vaddr, const struct symbol *found, size_t count)
{
	size_t first = symbols->frames.count, index = symbols->results.count;
	struct result *result;

	if (first + count > FRAMES_MAX)
		return;
	for (size_t i = 0; i < count; i++) {
		struct symbol *frame = list_add(&symbols->frames, FRAMES_MAX);

		if (!frame)
			return;
		*frame = found[i];
	}
	result = list_add(&symbols->results, RESULTS_MAX);
	if (!result)
		return;
	*result = (struct result){ (uint32_t)first, (uint32_t)count };
	map_put(&known->results, vaddr, (uint32_t)index);
}

size_t symbols_find(struct symbols *symbols, uint64_t addr, bool call, struct symbol out[SYMBOL_INLINES_MAX])
{
	uint64_t place = addr - (call && addr > 0);
	const struct module *module = modules_find(symbols->modules, place);
	struct known_file *known;
	uint64_t vaddr;
	uint32_t index;
	size_t count;

	if (!module || (module->kind != MODULE_FILE && module->kind != MODULE_VDSO))
		return find_generated(symbols, module, place, out);
	vaddr = place - module->bias;
	known = file_of(symbols, module);
	if (!known || !known->file)
		return find_unread(symbols, module, vaddr, out);
	index = map_get(&known->results, vaddr);
	if (index != MAP_ABSENT) {
		const struct result *result = &symbols->results.items[index];

		memcpy(out, symbols->frames.items + result->first, result->count * sizeof *out);
		return result->count;
	}
	count = symfile_find(known->file, vaddr, out);
	remember(symbols, known, vaddr, out, count);
	return count;
}

const char *symbols_source(struct symbols *symbols, const struct module *module)
{
	struct known_file *known;

	if (module->kind == MODULE_JIT)
		return jitfiles_source(symbols->jit);
	if (module->kind == MODULE_OTHER) {
		snprintf(symbols->source, sizeof symbols->source, "none: %s", module->why[0] ? module->why : "no ELF file");
		return symbols->source;
	}
	known = file_of(symbols, module);
	if (known && known->file)
		return symfile_source(known->file);
	snprintf(symbols->source, sizeof symbols->source, "none: %s", known ? known->why : "too many files");
	return symbols->source;
}

const char *symbols_debuginfod_problem(const struct symbols *symbols)
{
	return symbols->problem;
}
