/* One ELF file: what is loaded from where, and which of several answers is given. */
#include "unwind/symfile.h"

#include "unwind/debuginfo.h"
#include "unwind/demangle.h"
#include "unwind/elf_bytes.h"
#include "unwind/functions.h"
#include "unwind/machine.h"
#include "unwind/symtab.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WORDS_MAX = 256, SOURCE_MAX = DEBUGFILE_PATH_MAX + 2 * WORDS_MAX };

struct symfile {
	struct strings *names;
	const char *label;           /* "libz.so.1": in names */
	struct functions functions;
	struct symtab symtab;
	struct debuginfo *debuginfo;
	bool elf, own_symbols, dynamic_symbols, packed_symbols, separate_symbols;
	char debug_from[DEBUGFILE_PATH_MAX]; /* "" = the file itself */
	char why_not[WORDS_MAX];      /* no debug information, or why it is not used */
	char source[SOURCE_MAX];
	uint64_t debug_bytes;
};

static const char *intern(struct symfile *file, const char *string)
{
	uint32_t id = strings_add(file->names, string, strlen(string));

	return id == UINT32_MAX ? "" : strings_get(file->names, id);
}

/* Takes the debug information of ELF, which is consumed. FOUND is where it lies, "" = in the file itself. */
static void use_debuginfo(struct symfile *file, Elf *elf, const struct debug_places *places, const char *found)
{
	const char *shared_name;
	const void *id;
	size_t id_size;
	char hex[BUILD_ID_HEX_MAX] = "";
	int fd;

	file->debuginfo = debuginfo_open(elf);
	if (!file->debuginfo) {
		snprintf(file->why_not, sizeof file->why_not, "its debug information is damaged");
		return;
	}
	if (!debuginfo_needs_shared(file->debuginfo, &shared_name, &id, &id_size))
		return;
	for (size_t i = 0; i < id_size && i * 2 + 2 < sizeof hex; i++)
		snprintf(hex + i * 2, 3, "%02x", ((const unsigned char *)id)[i]);
	fd = debugfile_find_shared(places, found, shared_name, hex);
	elf = fd >= 0 ? elf_bytes_open(fd) : NULL;
	if (elf) {
		uint64_t bytes;

		if (debuginfo_look(elf, &bytes) == DEBUGINFO_GOOD) {
			file->debug_bytes += bytes;
			debuginfo_set_shared(file->debuginfo, elf);
			close(fd);
			return;
		}
		elf_end(elf);
	}
	if (fd >= 0)
		close(fd);
	/* libdw would look for it by itself, wherever the file says. */
	debuginfo_close(file->debuginfo);
	file->debuginfo = NULL;
	snprintf(file->why_not, sizeof file->why_not, "the part that its debug information shares with others (%.100s) is missing or damaged", shared_name);
}

/* Looks at the debug information in ELF (consumed) and uses it. False when it has none. */
static bool take_debuginfo(struct symfile *file, Elf *elf, const struct debug_places *places, const char *found)
{
	uint64_t bytes;

	switch (debuginfo_look(elf, &bytes)) {
	case DEBUGINFO_GOOD:
		file->debug_bytes += bytes;
		use_debuginfo(file, elf, places, found);
		return true;
	case DEBUGINFO_TOO_LARGE:
		snprintf(file->why_not, sizeof file->why_not, "its debug information is too large to be read");
		elf_end(elf);
		return true;
	case DEBUGINFO_DAMAGED:
		snprintf(file->why_not, sizeof file->why_not, "its debug information is damaged");
		elf_end(elf);
		return true;
	default:
		elf_end(elf);
		return false;
	}
}

static int use_debug_file(struct symfile *file, int fd, const struct debug_places *places, const char *found)
{
	Elf *elf = elf_bytes_open(fd);
	ssize_t added = 0;

	if (elf && !file->own_symbols)
		added = symtab_add(&file->symtab, elf, SHT_SYMTAB);
	file->separate_symbols = added > 0;
	elf_end(elf);
	elf = elf_bytes_open(fd);
	if (elf && !file->debuginfo) {
		take_debuginfo(file, elf, places, found);
		snprintf(file->debug_from, sizeof file->debug_from, "%s", found);
	} else {
		elf_end(elf);
	}
	return added < 0 ? -1 : 0;
}

static int use_packed(struct symfile *file, Elf *main)
{
	size_t size;
	unsigned char *bytes = debugfile_unpack(main, &size);
	Elf *elf = bytes ? elf_memory((char *)bytes, size) : NULL;
	ssize_t added = 0;

	if (elf && gelf_getclass(elf) == ELFCLASS64)
		added = symtab_add(&file->symtab, elf, SHT_SYMTAB);
	file->packed_symbols = added > 0;
	elf_end(elf);
	free(bytes);
	return added < 0 ? -1 : 0;
}

static int load_separate(struct symfile *file, Elf *elf, int fd, const char *path, const struct debug_places *places)
{
	char found[DEBUGFILE_PATH_MAX], id[BUILD_ID_HEX_MAX];
	int debug_fd = debugfile_find(places, elf, fd, path, found), result;

	if (debug_fd < 0) {
		elf_bytes_build_id(elf, id, sizeof id);
		if (!file->debuginfo)
			snprintf(file->why_not, sizeof file->why_not, id[0] ? "no debug file for build id %s" : "no debug file, and no build id to find one by", id);
		return use_packed(file, elf);
	}
	result = use_debug_file(file, debug_fd, places, found);
	close(debug_fd);
	return result;
}

static int load(struct symfile *file, Elf *elf, int fd, const char *path, const struct debug_places *places)
{
	Elf *debug = elf_bytes_open(fd);
	ssize_t own, dynamic = 0;
	bool has_debuginfo = debug && take_debuginfo(file, debug, places, path);

	if (functions_load(elf, fd, &file->functions) < 0)
		return -1;
	own = symtab_add(&file->symtab, elf, SHT_SYMTAB);
	file->own_symbols = own > 0;
	if (own == 0)
		dynamic = symtab_add(&file->symtab, elf, SHT_DYNSYM);
	file->dynamic_symbols = dynamic > 0;
	if (own < 0 || dynamic < 0 || symtab_add_plt(&file->symtab, elf) < 0)
		return -1;
	if ((!has_debuginfo || own == 0) && load_separate(file, elf, fd, path, places) < 0)
		return -1;
	if (file->dynamic_symbols && !file->separate_symbols && !file->packed_symbols && symtab_add_chosen(&file->symtab, elf, fd, &file->functions) < 0)
		return -1;
	symtab_finish(&file->symtab, &file->functions);
	return 0;
}

void symfile_label(const char *path, char *out, size_t size)
{
	const char *slash = strrchr(path, '/'), *name = slash && slash[1] ? slash + 1 : path, *tag = strstr(name, ".cpython-"), *end = strrchr(name, '.');

	if (tag && tag > name && strcmp(end, ".so") == 0)
		snprintf(out, size, "%.*s.so", (int)(tag - name), name);
	else
		snprintf(out, size, "%s", name);
}

struct symfile *symfile_load(int fd, const char *path, const struct debug_places *places, struct strings *names)
{
	struct symfile *file = calloc(1, sizeof *file);
	char label[NAME_MAX];
	Elf *elf;

	if (!file)
		return NULL;
	file->names = names;
	symfile_label(path, label, sizeof label);
	file->label = intern(file, label);
	elf = elf_bytes_open(fd);
	if (!elf)
		return file;
	file->elf = true;
	if (load(file, elf, fd, path, places) < 0) {
		elf_end(elf);
		symfile_free(file);
		return NULL;
	}
	elf_end(elf);
	return file;
}

void symfile_free(struct symfile *file)
{
	if (!file)
		return;
	debuginfo_close(file->debuginfo);
	symtab_done(&file->symtab);
	functions_done(&file->functions);
	free(file);
}

static const char *demangled(struct symfile *file, const char *name)
{
	char text[DEMANGLED_MAX];

	demangle(name, text);
	return intern(file, text);
}

static const char *source_path(struct symfile *file, const struct debuginfo_frame *frame)
{
	char path[DEBUGFILE_PATH_MAX * 2];

	if (!frame->file || !frame->file[0])
		return "";
	/* A folder that was made relative to hide where the file was built says nothing. */
	if (frame->file[0] == '/' || !frame->folder || frame->folder[0] != '/')
		return intern(file, frame->file);
	snprintf(path, sizeof path, "%s/%s", frame->folder, frame->file);
	return intern(file, path);
}

/* No name: that of its function's first byte, so that all places in one function are one; that of the stretch without functions; else the address itself. */
static void name_by_place(struct symfile *file, uint64_t addr, struct symbol *out)
{
	const struct function_extent *function = functions_find(&file->functions, addr);
	char text[DEMANGLED_MAX];
	uint64_t start, end;

	if (!function && functions_between(&file->functions, addr, &start, &end))
		snprintf(text, sizeof text, "%s+0x%llx..0x%llx", file->label, (unsigned long long)start, (unsigned long long)end);
	else
		snprintf(text, sizeof text, "%s+0x%llx", file->label, (unsigned long long)(function ? function->start : addr));
	out->name = intern(file, text);
	out->named = false;
}

static void name_by_symbol(struct symfile *file, const struct symtab_entry *entry, struct symbol *out)
{
	char raw[SYMTAB_NAME_MAX];

	symtab_name(&file->symtab, entry, raw);
	out->name = demangled(file, raw);
	out->named = true;
}

static bool is_mangled(const char *name)
{
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): a linker's name is one */
	return name[0] == '_' && (name[1] == 'Z' || name[1] == 'R');
}

/* Is the symbol that begins where the function does a better name for it? Debug information knows the name in the source, which lacks its namespace
 * where there is no linker's name, and is the private one where there are aliases. */
static bool symbol_is_better(struct symfile *file, const struct debuginfo_frame *frame, const struct symtab_entry *entry, uint64_t start)
{
	char raw[SYMTAB_NAME_MAX];

	if (!entry || (frame->name && entry->addr != start) || (frame->linkage && is_mangled(frame->name)))
		return false;
	symtab_name(&file->symtab, entry, raw);
	return !frame->name || is_mangled(raw) || (frame->name[0] == '_' && raw[0] != '_');
}

size_t symfile_find(struct symfile *file, uint64_t addr, struct symbol out[SYMBOL_INLINES_MAX])
{
	const struct symtab_entry *entry = symtab_find(&file->symtab, addr);
	struct debuginfo_frame frames[DEBUGINFO_FRAMES_MAX] = { { .name = NULL } };
	uint64_t start = 0;
	size_t count = file->debuginfo ? debuginfo_find(file->debuginfo, addr, frames, &start) : 0;

	_Static_assert((int)DEBUGINFO_FRAMES_MAX == (int)SYMBOL_INLINES_MAX, "frames of one place");
	if (count == 0)
		count = 1;
	for (size_t i = 0; i < count; i++) {
		const struct debuginfo_frame *frame = &frames[i];

		out[i] = (struct symbol){ .file = source_path(file, frame), .line = frame->line, .inlined = frame->inlined, .named = true };
		if (i + 1 == count && symbol_is_better(file, frame, entry, start))
			name_by_symbol(file, entry, &out[i]);
		else if (frame->name)
			out[i].name = demangled(file, frame->name);
		else
			name_by_place(file, addr, &out[i]);
		if (!out[i].name[0])
			out[i].name = "?";
	}
	return count;
}

static const char *symbols_from(const struct symfile *file)
{
	if (file->own_symbols)
		return "symbol table";
	if (file->separate_symbols)
		return "symbol table of its debug file";
	if (file->packed_symbols)
		return "packed symbol table (.gnu_debugdata)";
	if (file->dynamic_symbols)
		return "dynamic symbols only";
	return "none: stripped";
}

const char *symfile_source(struct symfile *file)
{
	const char *limited = file->symtab.cut || (file->debuginfo && debuginfo_limited(file->debuginfo)) ? ", cut at a bound" : "";

	if (!file->elf)
		snprintf(file->source, sizeof file->source, "none: no " MACHINE_FILE_NAME " ELF file");
	else if (file->debuginfo)
		snprintf(file->source, sizeof file->source, "debug information%s%s%s", file->debug_from[0] ? " of " : "", file->debug_from, limited);
	else
		snprintf(file->source, sizeof file->source, "%s%s%s%s", symbols_from(file), file->why_not[0] ? ": " : "", file->why_not, limited);
	return file->source;
}

uint64_t symfile_bytes(const struct symfile *file)
{
	uint64_t bytes = file->debug_bytes + file->functions.count * sizeof *file->functions.extents + file->symtab.entries.count * sizeof *file->symtab.entries.items;

	for (unsigned i = 0; i < file->symtab.tables; i++)
		bytes += file->symtab.strings[i].size;
	return bytes;
}
