/* Relocations of a mapped library that fill slots with the addresses of functions it calls. */
#include "inject/got.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "inject/machine.h"
#include "inject/memory.h"
#include "inject/target.h"

enum { RELOCATIONS_MAX = 1 << 22, SYMBOLS_MAX = 1 << 20, SLOTS_LIMIT = 1 << 16, CHUNK = 1024, WINDOW_BYTES = 32768, NAME_BYTES = 32, WANTED_MAX = 32 };

/* A slot and its symbol's number; called: only calls read it. */
struct candidate { uint64_t at; uint32_t symbol; bool called; };
struct candidates { struct candidate *items; size_t count, capacity; };
struct wanted { uint32_t symbol, name; };

/* A piece of the string table, as names are looked at in nearly its order. */
struct window { uint64_t start, size; char bytes[WINDOW_BYTES]; };

static bool inside(const struct image *image, uint64_t addr, uint64_t size)
{
	return addr >= image->low && addr <= image->high && size <= image->high - addr;
}

static bool in_segment(const struct image *image, uint64_t addr, bool executable)
{
	for (uint32_t i = 0; i < image->segment_count; i++) {
		const struct image_segment *segment = &image->segments[i];

		if (addr >= segment->start && addr < segment->end && segment->end - addr >= sizeof(uint64_t) && (executable ? segment->executable : segment->writable))
			return true;
	}
	return false;
}

/* The loader protects whole pages, and leaves a last one alone that is only in part RELRO (glibc 2.31 to 2.43). */
static bool is_protected(const struct image *image, uint64_t at)
{
	return at + sizeof(uint64_t) > (image->relro_start & ~0xfffull) && at < (image->relro_end & ~0xfffull);
}

/* Relocations of one table that fill a slot with a symbol's address. False: no memory. */
static bool read_table(const struct image *image, uint64_t table, uint64_t bytes, uint64_t skip, struct candidates *out)
{
	uint64_t count = bytes / sizeof(Elf64_Rela);
	Elf64_Rela chunk[CHUNK];

	if (!table || count > RELOCATIONS_MAX || !inside(image, table, count * sizeof *chunk))
		return true;
	for (uint64_t at = skip; at < count; at += CHUNK) {
		uint64_t here = count - at < CHUNK ? count - at : CHUNK;

		if (memory_read(&image->memory, table + at * sizeof *chunk, chunk, here * sizeof *chunk) < 0)
			return true;
		for (uint64_t i = 0; i < here; i++) {
			uint32_t type = (uint32_t)ELF64_R_TYPE(chunk[i].r_info);
			uint64_t slot = image->bias + chunk[i].r_offset;
			struct candidate *candidate;

			if ((type != MACHINE_JUMP_SLOT && type != MACHINE_GLOB_DAT) || slot % sizeof(uint64_t) || !in_segment(image, slot, false))
				continue;
			candidate = list_add(out, RELOCATIONS_MAX);
			if (!candidate)
				return false;
			*candidate = (struct candidate){ slot, (uint32_t)ELF64_R_SYM(chunk[i].r_info), type == MACHINE_JUMP_SLOT };
		}
	}
	return true;
}

/* NAME_BYTES of the string table from OFFSET on, as many as there are; the rest is zero. */
static bool name_read(const struct image *image, struct window *window, uint32_t offset, char out[NAME_BYTES])
{
	uint64_t left, length;

	if (offset >= image->strtab_size)
		return false;
	if (offset < window->start || offset - window->start >= window->size || (window->size - (offset - window->start) < NAME_BYTES && window->start + window->size < image->strtab_size)) {
		left = image->strtab_size - offset;
		window->start = offset;
		window->size = left < WINDOW_BYTES ? left : WINDOW_BYTES;
		if (!inside(image, image->strtab + offset, window->size) || memory_read(&image->memory, image->strtab + offset, window->bytes, window->size) < 0) {
			window->size = 0;
			return false;
		}
	}
	left = window->size - (offset - window->start);
	length = left < NAME_BYTES ? left : NAME_BYTES;
	memset(out, 0, NAME_BYTES);
	memcpy(out, window->bytes + (offset - window->start), length);
	out[NAME_BYTES - 1] = '\0';
	return true;
}

/* Which undefined symbols below LIMIT have these names. */
static size_t find_wanted(const struct image *image, uint32_t limit, const char *const *names, size_t name_count, struct window *window, struct wanted out[WANTED_MAX])
{
	Elf64_Sym chunk[CHUNK];
	char name[NAME_BYTES];
	size_t found = 0;

	for (uint32_t at = 1; at < limit; at += CHUNK) {
		uint32_t here = limit - at < CHUNK ? limit - at : CHUNK;
		uint64_t from = image->symtab + (uint64_t)at * sizeof *chunk;

		if (!inside(image, from, here * sizeof *chunk) || memory_read(&image->memory, from, chunk, here * sizeof *chunk) < 0)
			break;
		for (uint32_t i = 0; i < here; i++) {
			if (chunk[i].st_shndx != SHN_UNDEF || !name_read(image, window, chunk[i].st_name, name))
				continue;
			for (size_t n = 0; n < name_count && found < WANTED_MAX; n++)
				if (strcmp(name, names[n]) == 0)
					out[found++] = (struct wanted){ at + i, (uint32_t)n };
		}
	}
	return found;
}

/* What code reads as data it may keep and compare with the function's address from elsewhere: such a slot is left alone as one that is read-only. */
static bool add_slot(const struct image *image, const struct candidate *candidate, uint32_t name, struct got *out, bool *read_only)
{
	struct got_slot *slot;
	uint64_t value;

	if (!candidate->called || is_protected(image, candidate->at)) {
		*read_only = true;
		return true;
	}
	if (memory_read(&image->memory, candidate->at, &value, sizeof value) < 0)
		return true;
	slot = list_add(&out->slots, SLOTS_LIMIT);
	if (!slot)
		return false;
	*slot = (struct got_slot){ candidate->at, value, name, !in_segment(image, value, true) };
	return true;
}

/* All slots of IMAGE, and which symbols of theirs have these names. False: no memory. */
static bool find_slots(const struct image *image, const char *const *names, size_t name_count, struct candidates *candidates, struct wanted wanted[WANTED_MAX], size_t *found)
{
	struct window *window = calloc(1, sizeof *window);
	uint32_t limit = 0;
	bool done = false;

	*found = 0;
	if (!window || !image->symtab || !image->strtab) {
		done = window != NULL;
		goto out;
	}
	if (!read_table(image, image->jmprel, image->jmprel_size, 0, candidates) || !read_table(image, image->rela, image->rela_size, image->rela_relative, candidates))
		goto out;
	for (size_t i = 0; i < candidates->count; i++)
		if (candidates->items[i].symbol >= limit && candidates->items[i].symbol < SYMBOLS_MAX)
			limit = candidates->items[i].symbol + 1;
	*found = find_wanted(image, limit, names, name_count, window, wanted);
	done = true;
out:
	free(window);
	return done;
}

bool got_read(const struct image *image, const char *const *names, size_t name_count, struct got *out, bool *read_only)
{
	struct candidates candidates = { 0 };
	struct wanted wanted[WANTED_MAX];
	size_t found;
	bool done = find_slots(image, names, name_count, &candidates, wanted, &found);

	for (size_t i = 0; i < candidates.count && done; i++)
		for (size_t w = 0; w < found && done; w++)
			if (candidates.items[i].symbol == wanted[w].symbol)
				done = add_slot(image, &candidates.items[i], wanted[w].name, out, read_only);
	list_done(&candidates);
	return done;
}

bool got_slot_find(const struct image *image, const char *name, remote_addr *at)
{
	struct candidates candidates = { 0 };
	struct wanted wanted[WANTED_MAX];
	size_t found;
	bool done = find_slots(image, &name, 1, &candidates, wanted, &found);

	*at = 0;
	for (size_t i = 0; i < candidates.count && found && !*at; i++)
		if (candidates.items[i].symbol == wanted[0].symbol)
			*at = candidates.items[i].at;
	list_done(&candidates);
	return done;
}

/* ---- all libraries of a target ---- */

/* Libraries with the first of the functions. partly: others have some of the functions without that one. */
struct definers { struct image images[GOT_DEFINERS_MAX]; size_t count; bool partly; };

static bool is_left_out(const struct target *target, const struct image *image)
{
	return image->base == target->python.base || image->base == target->executable.base || strncmp(image->path, "/memfd:", 7) == 0 ||
	       strcmp(image->soname, "libpthread.so.0") == 0 || strcmp(image->soname, "libdl.so.2") == 0;
}

/* The library that most slots lead to; libc where none does. */
static void choose_definer(struct target *target, const struct definers *definers, const char *const *names, size_t name_count, struct got *out)
{
	const struct image *best = &target->libc;
	size_t most = 0;

	for (size_t d = 0; d < definers->count; d++) {
		uint64_t first = image_symbol(&definers->images[d], names[0], NULL);
		size_t count = 0;

		for (size_t i = 0; i < out->slots.count; i++)
			count += out->slots.items[i].name == 0 && out->slots.items[i].value == first;
		if (count > most) {
			best = &definers->images[d];
			most = count;
		}
	}
	for (size_t n = 0; n < name_count; n++)
		out->functions[n] = image_symbol(best, names[n], NULL);
	out->one_definer = definers->count == 1 && definers->images[0].base == target->libc.base && !definers->partly;
}

static bool defines_any(const struct image *image, const char *const *names, size_t name_count)
{
	for (size_t n = 0; n < name_count; n++)
		if (image_symbol(image, names[n], NULL))
			return true;
	return false;
}

static int compare_slots(const void *left, const void *right)
{
	const struct got_slot *a = left, *b = right;

	return a->at < b->at ? -1 : a->at > b->at;
}

int target_got(struct target *target, const char *const *names, size_t name_count, struct got *out, struct error *err)
{
	struct definers definers = { 0 };
	struct image image;

	memset(out, 0, sizeof *out);
	for (size_t i = 0; i < target->maps.count; i++) {
		const struct mapping *mapping = &target->maps.list[i];
		size_t before = out->slots.count;
		bool read_only = false;

		if (mapping->offset != 0 || !mapping->readable || mapping->inode == 0 || !image_open(&target->memory, &target->maps, mapping, &image) || image.base == target->loader.base)
			continue;
		if (image_symbol(&image, names[0], NULL)) {
			if (definers.count < GOT_DEFINERS_MAX)
				definers.images[definers.count++] = image;
			continue;
		}
		definers.partly |= defines_any(&image, names, name_count);
		if (is_left_out(target, &image))
			continue;
		if (!got_read(&image, names, name_count, out, &read_only)) {
			out->cut = out->slots.count == SLOTS_LIMIT;
			if (!out->cut) {
				got_done(out);
				return fail(err, ERR_MEMORY, "looking at the libraries of process %d", (int)target->pid);
			}
			break;
		}
		out->libraries += out->slots.count > before || read_only;
		out->read_only += out->slots.count == before && read_only;
	}
	choose_definer(target, &definers, names, name_count, out);
	if (out->slots.count)
		qsort(out->slots.items, out->slots.count, sizeof *out->slots.items, compare_slots);
	return 0;
}

void got_done(struct got *got)
{
	list_done(&got->slots);
	memset(got, 0, sizeof *got);
}
